import { and, eq, inArray, sql } from "drizzle-orm"
import type { Workers } from "../core/workers"
import { API_VERSION } from "../events/api-version"
import { events } from "../events/tables"
import type { Reader, Store } from "../store/store"
import type { Claimed } from "./queue"
import { deliveries } from "./tables"
import { render } from "./transform"

/** The plain envelopes of these events, as the compact JSON that travels. By id. */
export async function bodiesOf(db: Reader, event_ids: string[]): Promise<Map<string, string>> {
  const wanted = [...new Set(event_ids)]
  if (wanted.length === 0) return new Map()
  const { id, type, created_at } = events
  const data = sql<string>`${events.data}` // the text of the column, not what it says
  const rows = await db
    .select({ id, type, created_at, data })
    .from(events)
    .where(inArray(id, wanted))
  return new Map(rows.map((row) => [row.id, bodyOf(row)]))
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
  { id, owner, body }: Claimed,
  transform: string | null,
  plain: string | undefined,
): Promise<Body | undefined> {
  // Stored, but nothing but the envelope: so it was at the first attempt, too.
  if (body !== null) return { text: body, transform_failed: body === plain }
  if (plain === undefined) return undefined
  if (transform === null) return { text: plain, transform_failed: false }
  const rendered = await render(workers, transform, JSON.parse(plain))
  const text = rendered ?? plain
  const ours = and(eq(deliveries.id, id), eq(deliveries.owner, owner ?? ""))
  await store.tx((tx) => tx.update(deliveries).set({ body: text }).where(ours))
  return { text, transform_failed: rendered === undefined }
}
