import type { Problems } from "../core/errors"
import { type BulkItems, readItems, shownFailures } from "../http/bulk-items"
import { check } from "../http/validate"
import { forUpdate } from "../store/columns"
import type { Tx } from "../store/store"
import { rowsByExternalId, type SubscriberRow } from "./find-subscriber"
import * as schemas from "./schemas"
import { stricterStatus } from "./stricter"
import { readListed, type SubscriberInput } from "./subscriber-input"
import { changed, insertAll, newRow, type SubscriberChange, updateAll } from "./subscribers"

type BulkMode = "upsert" | "skip"

interface SubscriberBulk extends BulkItems<SubscriberInput> {
  mode: BulkMode
}

/** Reads 1 to 1,000 subscribers. A broken one is named in the answer, and does not stop the others. */
export function readBulk(body: unknown, problems: Problems): SubscriberBulk {
  const { mode = "upsert" } = (body ?? {}) as { mode?: BulkMode }
  check(schemas.BulkMode, { mode }, problems)
  const list = {
    name: "subscribers",
    least: 1,
    most: schemas.MOST_AT_ONCE,
    schema: schemas.BulkSubscriber,
    read: readListed,
  }
  return { mode, ...readItems(body, list, problems) }
}

/**
 * Adds those that are new, and changes or skips the others. One that stands in the list twice is added
 * by its first place and found there by its second. What is equal already is not written again, and
 * counts as updated.
 */
export async function saveAll(tx: Tx, project_id: string, { mode, ...bulk }: SubscriberBulk) {
  const counts = { created: 0, updated: 0, skipped: 0 }
  let left = Map.groupBy(
    bulk.given.map(({ item }) => item),
    ({ external_id }) => external_id,
  )
  while (left.size > 0) left = await saveSome(tx, { project_id, mode, left, counts })
  return { ...counts, failed: shownFailures(bulk) }
}

interface Saving {
  project_id: string
  mode: BulkMode
  /** By external id. */
  left: Map<string, SubscriberInput[]>
  counts: { created: number; updated: number; skipped: number }
}

/** Returns what another transaction added meanwhile: it is found when it is looked for again. */
async function saveSome(tx: Tx, { project_id, mode, left, counts }: Saving) {
  const names = [...left.keys()].sort() // everywhere the same order of locks
  const rows = await forUpdate(rowsByExternalId(tx, project_id, names))
  const known = new Map(rows.map((row) => [row.external_id, row]))
  const changes: SubscriberChange[] = []
  const fresh: SubscriberRow[] = []
  for (const name of names) {
    const items = left.get(name) ?? []
    const before = known.get(name)
    const first = before ?? newRow(project_id, items[0] ?? { external_id: name, fields: {} })
    const more = before ? items : items.slice(1)
    const after = mode === "skip" ? first : more.reduce(joined, first)
    if (before) changes.push({ before, after })
    else fresh.push(after)
  }
  const added = new Set((await insertAll(tx, fresh)).map((row) => row.external_id))
  await updateAll(tx, changes)
  for (const [name, items] of left) {
    if (!known.has(name) && !added.has(name)) continue
    const again = items.length - (added.has(name) ? 1 : 0)
    counts.created += items.length - again
    counts[mode === "skip" ? "skipped" : "updated"] += again
  }
  return new Map([...left].filter(([name]) => !known.has(name) && !added.has(name)))
}

/** An unsubscribed person stays so, whatever another list says. */
const joined = (row: SubscriberRow, { fields }: SubscriberInput): SubscriberRow =>
  changed(row, { ...fields, status: stricterStatus(row.status, fields.status ?? row.status) })
