import { and, eq, gt, inArray, lte, sql } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { forUpdate } from "../store/columns"
import { newRowInserter } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { suppressAll } from "./suppressions"
import { generalBounces, softFailures } from "./tables"

/** Contract 20, sections 3 and 5. What is older counts no more. */
const WITHIN_SECONDS = 7 * 86_400

/** Contract 20, section 5. */
const MOST_FAILURES = 3
const SUPPRESSED_SECONDS = 30 * 86_400

const PURGE_LIMIT = 500

/** A message that was given up, because the recipient's server deferred it all the time. */
export interface SoftFailure {
  /** In comparable form. */
  address: string
  message_id: string
  /** Its last words. */
  diagnostic: string | null
}

/** Remembers the failures. An address with three of them within seven days is suppressed for thirty. */
export async function noteSoftFailures(
  tx: Tx,
  project_id: string,
  list: SoftFailure[],
): Promise<void> {
  if (list.length === 0) return
  const known = { project_id, channel: "email" as const, created_at: now() }
  const rows = list.map(({ diagnostic: _, ...one }) => ({ ...known, ...one }))
  await insertFailures(tx, rows.sort(byAddress))
  const latest = new Map(list.map((one) => [one.address, one]))
  const ours = and(
    eq(softFailures.project_id, project_id),
    eq(softFailures.channel, "email"),
    inArray(softFailures.address, [...latest.keys()]),
  )
  const since = gt(softFailures.created_at, secondsFromNow(-WITHIN_SECONDS))
  const { address } = softFailures
  const failed = await tx.select({ address }).from(softFailures).where(and(ours, since))
  const counts = Map.groupBy(failed, (row) => row.address)
  const full = [...latest].filter(([one]) => (counts.get(one)?.length ?? 0) >= MOST_FAILURES)
  if (full.length === 0) return
  await suppressAll(
    tx,
    project_id,
    full.map(([one, { message_id: source_message_id, diagnostic }]) => ({
      channel: "email",
      address: one,
      reason: "bounce",
      origin: "event",
      source_message_id,
      diagnostic,
      expires_at: secondsFromNow(SUPPRESSED_SECONDS),
    })),
  )
  const counted = full.map(([one]) => one)
  await tx.delete(softFailures).where(and(ours, inArray(address, counted)))
}

type FailureKey = Pick<typeof softFailures.$inferSelect, "address" | "message_id">

/** In one order everywhere, so that no two transactions wait for each other's rows. */
const byAddress = (one: FailureKey, other: FailureKey): number =>
  one.address + one.message_id < other.address + other.message_id ? -1 : 1

const insertFailures = newRowInserter(softFailures, "message_id")

/** Forgets up to 500 failures that count no more. Returns how many. */
export async function purgeSoftFailures(store: Store): Promise<number> {
  const { address, channel, message_id, project_id, created_at } = softFailures
  const old = lte(created_at, secondsFromNow(-WITHIN_SECONDS))
  const rows = await store.read.select().from(softFailures).where(old).limit(PURGE_LIMIT)
  if (rows.length === 0) return 0
  await store.tx(async (tx) => {
    for (const [one, some] of Map.groupBy(rows, (row) => `${row.project_id}\n${row.address}`)) {
      const [owner = "", of = ""] = one.split("\n")
      const ids = some.map((row) => row.message_id)
      const these = and(eq(project_id, owner), eq(channel, "email"), eq(address, of))
      await tx.delete(softFailures).where(and(these, inArray(message_id, ids), old))
    }
  })
  return rows.length
}

/** Contract 20, section 3. */
const APART_SECONDS = 86_400

/**
 * Remembers permanent refusals that name nothing, of addresses in comparable form. Returns the addresses that had one a
 * day or more before, and within seven days.
 */
export async function repeatedly(
  tx: Tx,
  project_id: string,
  addresses: string[],
): Promise<Set<string>> {
  const at = now()
  // In one order everywhere, so that no two transactions wait for each other's rows.
  const each = [...new Set(addresses)].sort()
  const rows = each.map((address) => ({ project_id, address, first_at: at, latest_at: at }))
  const fresh = await insertBounces(tx, rows)
  const known = each.filter((address) => !fresh.has(address))
  if (known.length === 0) return new Set()
  const { address, first_at, latest_at } = generalBounces
  const ours = (some: string[]) =>
    and(eq(generalBounces.project_id, project_id), inArray(address, some))
  const before = await forUpdate(
    tx.select().from(generalBounces).where(ours(known)).orderBy(address),
  )
  const since = secondsFromNow(-WITHIN_SECONDS)
  const until = secondsFromNow(-APART_SECONDS)
  const counts = (time: string) => time > since && time <= until
  const again = before.filter((row) => counts(row.first_at) || counts(row.latest_at))
  const full = new Set(again.map((row) => row.address))
  await tx.delete(generalBounces).where(ours([...full]))
  // Between the two times lies less than a day, so they tell all that a later one needs to know.
  const [after, today] = [since, at].map((time) => sql.param(time, latest_at))
  const first = sql`CASE WHEN ${first_at} > ${after} THEN ${first_at} WHEN ${latest_at} > ${after} THEN ${latest_at} ELSE ${today} END`
  await tx.update(generalBounces).set({ first_at: first, latest_at: at }).where(ours(known))
  return full
}

const insertBounces = newRowInserter(generalBounces, "address")

/** Forgets up to 500 addresses whose refusals count no more. Returns how many. */
export async function purgeGeneralBounces(store: Store): Promise<number> {
  const { project_id, address, latest_at } = generalBounces
  const old = lte(latest_at, secondsFromNow(-WITHIN_SECONDS))
  const rows = await store.read.select().from(generalBounces).where(old).limit(PURGE_LIMIT)
  if (rows.length === 0) return 0
  await store.tx(async (tx) => {
    for (const [owner, some] of Map.groupBy(rows, (row) => row.project_id)) {
      const these = inArray(
        address,
        some.map((row) => row.address),
      )
      await tx.delete(generalBounces).where(and(eq(project_id, owner), these, old))
    }
  })
  return rows.length
}
