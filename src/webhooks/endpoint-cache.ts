import { millis, millisFrom } from "../core/time"

const MOST = 10_000

/** A change in the same millisecond as the one before cannot be told from it. */
const SETTLED_MILLISECONDS = 1000

interface Version {
  id: string
  updated_at: string
}

/** Values made of the rows of endpoints. A row that has changed since then has another `updated_at`. */
export class EndpointCache<Value> {
  readonly #cached = new Map<string, { updated_at: string; value: Value }>()

  /** Undefined where the value was made of another version of the row. */
  get({ id, updated_at }: Version): Value | undefined {
    const cached = this.#cached.get(id)
    return cached?.updated_at === updated_at ? cached.value : undefined
  }

  set({ id, updated_at }: Version, value: Value) {
    if (millisFrom(updated_at) >= millis() - SETTLED_MILLISECONDS) return
    if (this.#cached.size >= MOST) this.#cached.clear()
    this.#cached.set(id, { updated_at, value })
  }
}
