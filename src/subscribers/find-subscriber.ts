import { and, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { isUuid } from "../core/ids"
import { forUpdate, idList, isAmong } from "../store/columns"
import { rowById, rowForUpdate } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { subscribers } from "./tables"

export type SubscriberRow = typeof subscribers.$inferSelect

/** Postgres stores no such character, and refuses to look for it. */
const NUL = "\0"

export const noSubscriber = (): never =>
  fail("subscriber_not_found", "There is no such subscriber in this project.")

/** By its id, or by its external id where the text is no UUID. Throws 404 `subscriber_not_found`. */
export const find = async (
  db: Reader,
  project_id: string,
  id_or_external: string,
): Promise<SubscriberRow> => (await lookup(db, project_id, id_or_external)) ?? noSubscriber()

/** As `find`; undefined where there is none. */
export const lookup = (
  db: Reader,
  project_id: string,
  id_or_external: string,
): Promise<SubscriberRow | undefined> =>
  isUuid(id_or_external)
    ? rowById(db, subscribers, id_or_external, ofProject(project_id))
    : lookupExternal(db, project_id, id_or_external)

/** As `find`, and no other transaction changes the row before this one ends. */
export const findForUpdate = async (
  tx: Tx,
  project_id: string,
  id_or_external: string,
): Promise<SubscriberRow> =>
  (isUuid(id_or_external)
    ? await rowForUpdate(tx, subscribers, id_or_external, ofProject(project_id))
    : await externalForUpdate(tx, project_id, id_or_external)) ?? noSubscriber()

/** By its external id, which may look like a UUID here. Throws 404 `subscriber_not_found`. */
export const findExternal = async (
  db: Reader,
  project_id: string,
  external_id: string,
): Promise<SubscriberRow> => (await lookupExternal(db, project_id, external_id)) ?? noSubscriber()

/** As `findExternal`; undefined where there is none. */
export async function lookupExternal(
  db: Reader,
  project_id: string,
  external_id: string,
): Promise<SubscriberRow | undefined> {
  if (external_id.includes(NUL)) return undefined
  const [row] = await byExternalId(db, { project_id, external_id })
  return row
}

/** As `lookupExternal`, and locks the row until the transaction ends. */
export async function externalForUpdate(
  tx: Tx,
  project_id: string,
  external_id: string,
): Promise<SubscriberRow | undefined> {
  if (external_id.includes(NUL)) return undefined
  const wanted = and(ofProject(project_id), eq(subscribers.external_id, external_id))
  const [row] = await forUpdate(tx.select().from(subscribers).where(wanted))
  return row
}

type NamedSubscriber = Pick<SubscriberRow, "id" | "external_id">

/**
 * Subscribers of the project by the names that a request has for them, as `find` reads them. A name that
 * no subscriber has is not in the map. `lock` may lock the rows.
 */
export async function lookupAll(
  db: Reader,
  project_id: string,
  names: readonly string[],
  lock: <Query extends object>(query: Query) => Query = (query) => query,
): Promise<Map<string, NamedSubscriber>> {
  const found = new Map<string, NamedSubscriber>()
  const isExternal = (name: string) => !isUuid(name) && !name.includes(NUL)
  const [ids, externals] = [names.filter(isUuid), names.filter(isExternal)]
  for (const [column, list] of [[id, ids] as const, [external_id, externals] as const]) {
    if (list.length === 0) continue
    const named = and(ofProject(project_id), inArray(column, list))
    const rows = db.select({ id, external_id }).from(subscribers).where(named)
    for (const row of await lock(rows.orderBy(id))) {
      found.set(column === id ? row.id : row.external_id, row)
    }
  }
  return found
}

/** Those with these external ids, in the order of the ids. */
export const rowsByExternalId = (db: Reader, project_id: string, external_ids: string[]) =>
  db
    .select()
    .from(subscribers)
    .where(and(ofProject(project_id), inArray(subscribers.external_id, external_ids)))
    .orderBy(subscribers.external_id)

/** The ids of those with these external ids, by external id. */
export async function idsByExternalId(
  db: Reader,
  project_id: string,
  external_ids: readonly string[],
): Promise<Map<string, string>> {
  if (external_ids.length === 0) return new Map()
  const named = and(ofProject(project_id), inArray(external_id, [...external_ids]))
  const rows = await db.select({ id, external_id }).from(subscribers).where(named)
  return new Map(rows.map((row) => [row.external_id, row.id]))
}

export const ofProject = (project_id: string) => eq(subscribers.project_id, project_id)

const { id, project_id, external_id } = subscribers

const byExternalId = prepared({ project_id, external_id }, (db: Reader, slot) =>
  db
    .select()
    .from(subscribers)
    .where(and(eq(project_id, slot.project_id), eq(external_id, slot.external_id))),
)

export const byIds = prepared({ project_id, ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(subscribers)
    .where(and(eq(project_id, slot.project_id), isAmong(db, id, slot.ids))),
)
