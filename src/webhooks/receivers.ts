import { inArray } from "drizzle-orm"
import { millis, millisFrom } from "../core/time"
import type { Reader } from "../store/store"
import { type Receiver, type RequestSettings, receiverOf } from "./attempt"
import { webhooks } from "./tables"
import type { OpenEndpoint } from "./walk"

const MOST = 5000

/** A change in the same millisecond as the one before could not be told from it. */
const SETTLED_MILLISECONDS = 1000

interface Known {
  updated_at: string
  receiver: Receiver
}

/** The endpoints that deliveries go to, read again only where their row says that it changed. */
export class Receivers {
  readonly #requests: RequestSettings
  readonly #known = new Map<string, Known>()

  constructor(requests: RequestSettings) {
    this.#requests = requests
  }

  /** `page` is what the queue just said of them. One that is in it and not in the result was deleted. */
  async of(db: Reader, page: readonly OpenEndpoint[], ids: readonly string[]) {
    const said = new Map(page.map(({ webhook_id, updated_at }) => [webhook_id, updated_at]))
    const found = new Map<string, Receiver>()
    const unknown: string[] = []
    for (const id of new Set(ids)) {
      const known = this.#known.get(id)
      if (known && known.updated_at === said.get(id)) found.set(id, known.receiver)
      else unknown.push(id)
    }
    if (unknown.length === 0) return found
    const rows = await db.select().from(webhooks).where(inArray(webhooks.id, unknown))
    if (this.#known.size + rows.length > MOST) this.#known.clear()
    for (const row of rows) {
      const receiver = receiverOf(this.#requests, row)
      found.set(row.id, receiver)
      const settled = millisFrom(row.updated_at) < millis() - SETTLED_MILLISECONDS
      if (settled) this.#known.set(row.id, { updated_at: row.updated_at, receiver })
    }
    return found
  }
}
