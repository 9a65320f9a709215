import { and, asc, eq, inArray, isNotNull, lte } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { emitAll } from "../events/emit"
import { projects } from "../identity/tables"
import { comparable } from "../lib/address"
import { forUpdate } from "../store/columns"
import { bumpAll } from "../store/counters"
import { newRowInserter, prepared } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { notifyProviders } from "./provider-lists"
import {
  generalBounces,
  type SuppressionChannel,
  type SuppressionOrigin,
  type SuppressionReason,
  type SuppressionRow,
  type SuppressionScopeType,
  softFailures,
  suppressions,
} from "./tables"

/** Which messages a suppression is about. A category and a topic have a key. */
interface SuppressionScope {
  type: SuppressionScopeType
  key: string | null
}

/** Everything that the project sends. */
const WHOLE_PROJECT: SuppressionScope = { type: "project", key: null }

/** One address that gets no more messages, or none of one kind. */
export interface NewSuppression {
  channel: SuppressionChannel
  /** In any spelling. */
  address: string
  reason: SuppressionReason
  origin: SuppressionOrigin
  /** Default: the whole project. */
  scope?: SuppressionScope | undefined
  source_message_id?: string | null | undefined
  /** The reply that caused it, of any length. */
  diagnostic?: string | null | undefined
  note?: string | null | undefined
  /** Null, and without it: until it is removed. */
  expires_at?: string | null | undefined
}

/**
 * Suppresses an address, in the transaction of what caused it, and emits `suppression.created`. An
 * address that is suppressed already stays as it is, unless the new suppression lasts longer: then
 * the old one gives way to it. Returns what is new; undefined where nothing is.
 */
export async function suppress(
  tx: Tx,
  project_id: string,
  given: NewSuppression,
): Promise<SuppressionRow | undefined> {
  const [added] = await suppressAll(tx, project_id, [given])
  return added
}

/** As `suppress`, for many addresses at once. Returns those that are new. */
export async function suppressAll(
  tx: Tx,
  project_id: string,
  list: NewSuppression[],
): Promise<SuppressionRow[]> {
  const rows = longestOfEach(list.map((one) => rowOf(project_id, one)))
  if (rows.length === 0) return []
  const account_id = await accountOf(tx, project_id)
  if (account_id === undefined) return [] // the project was purged meanwhile
  const fresh = await insertRows(tx, rows)
  const known = rows.filter(({ id }) => !fresh.has(id))
  const replacing = known.length > 0 ? await makeWay(tx, project_id, known) : []
  const replaced = replacing.length > 0 ? await insertRows(tx, replacing) : new Set()
  const added = rows.filter(({ id }) => fresh.has(id) || replaced.has(id))
  await count(tx, added, 1)
  await emitAll(
    tx,
    added.map((row) => eventOf(account_id, row, "created", row.created_at)),
  )
  return added
}

/** Which suppressions go: of an address, all of them or those of one scope or reason. */
interface Unsuppressed {
  channel: SuppressionChannel
  /** In any spelling. */
  address: string
  scope?: SuppressionScope | undefined
  reason?: SuppressionReason | undefined
  /** Only those that are not about the whole project. */
  is_partial?: boolean
}

/**
 * Removes suppressions of an address, audits that and emits `suppression.deleted` for each. Returns
 * what was removed.
 */
export async function unsuppress(
  tx: Tx,
  project_id: string,
  { channel, address, scope, reason, is_partial = false }: Unsuppressed,
  by: audit.By = audit.SYSTEM,
): Promise<SuppressionRow[]> {
  const all = await forUpdate(rowsOf(tx, project_id, channel, [comparable(address)]))
  const meant = all.filter(
    (row) =>
      (reason === undefined || row.reason === reason) &&
      !(is_partial && row.scope_type === "project") &&
      (scope === undefined || (row.scope_type === scope.type && row.scope_key === keyOf(scope))),
  )
  await removeRows(tx, project_id, meant, by)
  return meant
}

/**
 * Removes rows that the transaction holds. Without `by` they ended by themselves: that is not audited,
 * and no provider is told.
 */
export async function removeRows(
  tx: Tx,
  project_id: string,
  rows: SuppressionRow[],
  by?: audit.By,
): Promise<void> {
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  await tx.delete(suppressions).where(inArray(suppressions.id, ids))
  await count(tx, rows, -1)
  const account_id = await accountOf(tx, project_id)
  if (account_id === undefined) return
  const at = now()
  await emitAll(
    tx,
    rows.map((row) => eventOf(account_id, row, "deleted", at)),
  )
  if (!by) return
  await notifyProviders(tx, project_id, rows)
  const entries = rows.map((row) => ({
    project_id,
    action: "suppression.deleted",
    target: { type: "suppression", id: row.id },
    before: audited(row),
  }))
  await audit.recordAll(tx, by, account_id, entries)
}

/**
 * Removes all suppressions of an address without a word in the audit log or the feed, and what counts
 * towards new ones: the person behind it is erased. Returns how many suppressions there were.
 */
export async function forgetAddress(
  tx: Tx,
  project_id: string,
  channel: SuppressionChannel,
  address: string,
): Promise<number> {
  const rows = await forUpdate(rowsOf(tx, project_id, channel, [address]))
  const ids = rows.map(({ id }) => id)
  await tx.delete(suppressions).where(inArray(suppressions.id, ids))
  await count(tx, rows, -1)
  await tx
    .delete(softFailures)
    .where(
      and(
        eq(softFailures.project_id, project_id),
        eq(softFailures.channel, channel),
        eq(softFailures.address, address),
      ),
    )
  await tx
    .delete(generalBounces)
    .where(and(eq(generalBounces.project_id, project_id), eq(generalBounces.address, address)))
  return rows.length
}

/** The scope as a text: the log would leave out a field that is called key. */
const audited = ({ scope_type, scope_key, ...row }: SuppressionRow) => ({
  ...row,
  scope: scope_key === "" ? scope_type : `${scope_type} ${scope_key}`,
})

/** The Suppression record of the contract (20, section 5). */
export function toResponse({ project_id: _, scope_type: type, scope_key, ...row }: SuppressionRow) {
  const { id, channel, address, reason, origin, ...rest } = row
  return { id, channel, address, reason, origin, scope: scopeOf(type, scope_key), ...rest }
}

export const scopeOf = (type: SuppressionScopeType, key: string): SuppressionScope => ({
  type,
  key: key === "" ? null : key,
})

const keyOf = ({ key }: SuppressionScope): string => key ?? ""

function rowOf(project_id: string, given: NewSuppression): SuppressionRow {
  const { channel, address, reason, origin, scope = WHOLE_PROJECT } = given
  return {
    id: newId(),
    project_id,
    channel,
    address: channel === "email" ? comparable(address) : address,
    reason,
    origin,
    scope_type: scope.type,
    scope_key: keyOf(scope),
    source_message_id: given.source_message_id ?? null,
    diagnostic: given.diagnostic?.slice(0, MOST_DIAGNOSTIC).toWellFormed() ?? null,
    note: given.note ?? null,
    expires_at: given.expires_at ?? null,
    created_at: now(),
  }
}

/** Characters that are kept of a reply. */
export const MOST_DIAGNOSTIC = 1_000

/** What is unique in a project. */
const placeOf = ({ channel, address, scope_type, scope_key }: SuppressionRow): string =>
  [channel, address, scope_type, scope_key].join("\n")

/** Each place once, in one order everywhere, so that no two transactions wait for each other's rows. */
function longestOfEach(rows: SuppressionRow[]): SuppressionRow[] {
  const places = new Map<string, SuppressionRow>()
  for (const row of rows) {
    const known = places.get(placeOf(row))
    if (!known || lastsLonger(row, known)) places.set(placeOf(row), row)
  }
  return [...places.keys()].sort().flatMap((place) => places.get(place) ?? [])
}

type Lasting = Pick<SuppressionRow, "expires_at">

const lastsLonger = ({ expires_at: one }: Lasting, { expires_at: other }: Lasting): boolean =>
  other !== null && (one === null || one > other)

/** Those of the rows whose places are free now, because what stood there ends earlier, or is gone. */
async function makeWay(tx: Tx, project_id: string, rows: SuppressionRow[]) {
  const live = new Map<string, SuppressionRow>()
  for (const channel of new Set(rows.map((row) => row.channel))) {
    const ours = rows.filter((row) => row.channel === channel).map(({ address }) => address)
    const found = await forUpdate(rowsOf(tx, project_id, channel, ours))
    for (const row of found) live.set(placeOf(row), row)
  }
  const outlasting = rows.filter((row) => {
    const known = live.get(placeOf(row))
    return !known || lastsLonger(row, known)
  })
  const ending = outlasting.flatMap((row) => live.get(placeOf(row)) ?? [])
  await removeRows(tx, project_id, ending)
  return outlasting
}

const insertRows = newRowInserter(suppressions, "id")

const rowsOf = (db: Reader, project_id: string, channel: SuppressionChannel, addresses: string[]) =>
  db
    .select()
    .from(suppressions)
    .where(
      and(
        eq(suppressions.project_id, project_id),
        eq(suppressions.channel, channel),
        inArray(suppressions.address, addresses),
      ),
    )
    .orderBy(suppressions.id)

/** Of every list that is filtered by one of these columns alone. */
export const counterOf = (filter?: string): string =>
  filter === undefined ? "suppressions" : `suppressions.${filter}`

const count = (tx: Tx, rows: SuppressionRow[], by: 1 | -1): Promise<void> =>
  bumpAll(
    tx,
    rows.flatMap(({ project_id: owner, channel, reason, origin }) =>
      [undefined, `channel.${channel}`, `reason.${reason}`, `origin.${origin}`].map((filter) => {
        return { owner, name: counterOf(filter), by }
      }),
    ),
  )

function eventOf(
  account_id: string,
  { id, project_id, channel, address, reason, origin }: SuppressionRow,
  what: "created" | "deleted",
  timestamp: string,
) {
  const data = { id, channel, address, reason, origin, timestamp }
  return { account_id, project_id, subject_id: id, type: `suppression.${what}`, data }
}

async function accountOf(db: Reader, project_id: string): Promise<string | undefined> {
  const [project] = await findProject(db, { project_id })
  return project?.account_id
}

const findProject = prepared({ project_id: projects.id }, (db: Reader, slot) =>
  db
    .select({ account_id: projects.account_id })
    .from(projects)
    .where(eq(projects.id, slot.project_id)),
)

const PURGE_LIMIT = 200

/**
 * Removes up to 200 suppressions that have expired, and emits `suppression.deleted` for each. They did
 * not count any more. Returns how many.
 */
export async function purgeExpired(store: Store): Promise<number> {
  const { id, expires_at } = suppressions
  const over = and(isNotNull(expires_at), lte(expires_at, now()))
  const old = await store.read.select({ id }).from(suppressions).where(over).limit(PURGE_LIMIT)
  if (old.length === 0) return 0
  const ids = old.map((row) => row.id)
  await store.tx(async (tx) => {
    const found = tx
      .select()
      .from(suppressions)
      .where(and(inArray(id, ids), over))
    const rows = await forUpdate(found.orderBy(asc(id)))
    const projects = Map.groupBy(rows, ({ project_id }) => project_id)
    for (const owner of [...projects.keys()].sort()) {
      await removeRows(tx, owner, projects.get(owner) ?? [])
    }
  })
  return old.length
}
