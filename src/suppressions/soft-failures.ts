import { and, eq, gt, inArray, lte } from "drizzle-orm"
import { now, secondsFromNow } from "../core/time"
import { newRowInserter } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { suppressAll } from "./suppressions"
import { softFailures } from "./tables"

/** Contract 20, section 5. */
const MOST_FAILURES = 3
const WITHIN_SECONDS = 7 * 86_400
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
