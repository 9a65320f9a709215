import { monotonic } from "../../core/time"

/** What was looked up is good for a while; what failed is looked up again. Bounded in number. */
export class Remembered<Value> {
  readonly #known = new Map<string, { value: Promise<Value>; until: number }>()
  readonly #ms: number
  readonly #most: number

  constructor(ms: number, most: number) {
    this.#ms = ms
    this.#most = most
  }

  /** The value of the key, by `load` where there is none yet. Callers that ask meanwhile wait for the same value. */
  get(key: string, load: () => Promise<Value>): Promise<Value> {
    const known = this.#known.get(key)
    if (known && known.until > monotonic()) return known.value
    const value = load()
    this.#known.delete(key)
    this.#known.set(key, { value, until: monotonic() + this.#ms })
    value.catch(() => this.#forget(key, value))
    const [oldest] = this.#known.keys()
    if (this.#known.size > this.#most && oldest !== undefined) this.#known.delete(oldest)
    return value
  }

  has(key: string): boolean {
    return (this.#known.get(key)?.until ?? 0) > monotonic()
  }

  forget(key: string): void {
    this.#known.delete(key)
  }

  #forget(key: string, value: Promise<Value>) {
    if (this.#known.get(key)?.value === value) this.#known.delete(key)
  }
}
