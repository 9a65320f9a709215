import { sql } from "drizzle-orm"
import type { Workers } from "../core/workers"
import { API_VERSION } from "../events/api-version"
import { events } from "../events/tables"
import { isAmong } from "../store/among"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { type Claimed, leased } from "./queue"
import { deliveries } from "./tables"
import { render } from "./transform"

/** The plain envelopes of these events, as the compact JSON that travels. By id. */
export async function bodiesOf(db: Reader, event_ids: string[]): Promise<Map<string, string>> {
  const wanted = [...new Set(event_ids)]
  if (wanted.length === 0) return new Map()
  const rows = await eventsOf(db, { ids: JSON.stringify(wanted) })
  return new Map(rows.map((row) => [row.id, bodyOf(row)]))
}

const eventsOf = prepared({ ids: events.type }, (db: Reader, slot) => {
  const { id, type, created_at } = events
  const data = sql<string>`${events.data}` // the text of the column, not what it says
  return db.select({ id, type, created_at, data }).from(events).where(isAmong(id, slot.ids))
})

const MOST_CHARACTERS = 4_000_000

/** The bodies of late: one event goes to many endpoints, and what it says never changes. */
export class Bodies {
  readonly #known = new Map<string, string>()
  #characters = 0

  /** As `bodiesOf`. */
  async of(db: Reader, event_ids: string[]): Promise<ReadonlyMap<string, string>> {
    const unknown = event_ids.filter((id) => !this.#known.has(id))
    if (unknown.length === 0) return this.#known
    if (this.#characters > MOST_CHARACTERS) {
      this.#known.clear()
      this.#characters = 0
      return this.of(db, event_ids)
    }
    for (const [id, body] of await bodiesOf(db, unknown)) {
      if (this.#known.has(id)) continue
      this.#known.set(id, body)
      this.#characters += body.length
    }
    return this.#known
  }
}

/** The stored text goes in as it is, so that every attempt of every node sends the same bytes. */
const bodyOf = (event: { id: string; type: string; created_at: string; data: string }): string =>
  `{"id":${JSON.stringify(event.id)},"type":${JSON.stringify(event.type)},` +
  `"api_version":"${API_VERSION}","created_at":"${event.created_at}","data":${event.data}}`

export interface Body {
  text: string
  transform_failed: boolean
}

/**
 * What is sent. An endpoint's transform runs before the first attempt, and what it gave is stored
 * before it leaves; where it gives no JSON, that is the plain envelope. Rejects with
 * `service_unavailable` when it could not be tried.
 */
export async function bodyFor(
  { store, workers }: { store: Store; workers: Workers },
  claimed: Claimed,
  transform: string | null,
  plain: string | undefined,
): Promise<Body | undefined> {
  const { body } = claimed
  // Stored, but nothing but the envelope: so it was at the first attempt, too.
  if (body !== null) return { text: body, transform_failed: body === plain }
  if (plain === undefined) return undefined
  // A transform that came between two attempts must not change what the first one said.
  if (transform === null || claimed.attempts > 0) return { text: plain, transform_failed: false }
  const rendered = await render(workers, transform, JSON.parse(plain))
  const text = rendered ?? plain
  await store.tx((tx) => tx.update(deliveries).set({ body: text }).where(leased(claimed)))
  return { text, transform_failed: rendered === undefined }
}
