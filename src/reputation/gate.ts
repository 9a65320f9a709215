import { createHash } from "node:crypto"
import { and, desc, eq, isNotNull, isNull, lt, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { settings } from "../core/config"
import { ApiError, fail } from "../core/errors"
import { newId } from "../core/ids"
import { isoFrom, millis, now, secondsFromNow } from "../core/time"
import type { Caller } from "../identity/caller"
import { type AnyWorkRows, holders, unhold } from "../jobs/holds"
import { enqueue } from "../jobs/jobs"
import { DeferredError } from "../jobs/work-item"
import { cached } from "../store/cached"
import { forUpdate } from "../store/columns"
import { removeSome } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { type CountedName, complainedOf, countsOf, hourOf, KEPT_HOURS } from "./hour-counts"
import { reputationAlert } from "./owner-mail"
import {
  firstHour,
  less,
  percentText,
  ratesOf,
  type Thresholds,
  thresholds,
  windowStart,
} from "./sending-status"
import { complaintHolds } from "./tables"

/** Seconds after which a rejected send may be tried again: a new message has a new draw. */
const RETRY_AFTER = 60

/** What of a caller decides whether its account may send. */
export type SendingCaller = Pick<Caller, "sending_status" | "sending_status_reason" | "reputation">

/** The refusal of everything that a frozen account sends (403); undefined for every other account. */
export function frozenRefusal(caller: SendingCaller): ApiError | undefined {
  if (caller.sending_status !== "frozen") return undefined
  const text = `The account is frozen (${caller.sending_status_reason}). Only the operator of this instance can lift this.`
  return new ApiError("account_frozen", text, detailsOf(caller))
}

/**
 * The refusal of a send that is in the rejected share of a throttled account (429). A hash of the
 * message's id decides, so the same message always gets the same answer, and a new one a new draw.
 */
export function throttledRefusal(caller: SendingCaller, message_id: string): ApiError | undefined {
  if (caller.sending_status !== "throttled") return undefined
  const share = caller.reputation?.rejected_share ?? 0
  if (drawOf(message_id) >= share) return undefined
  const text = `The account is throttled (${caller.sending_status_reason}): ${percentText(share)} of its sends are rejected. Send this one again in ${RETRY_AFTER} s.`
  return new ApiError("account_throttled", text, { ...detailsOf(caller), retry_after: RETRY_AFTER })
}

const detailsOf = ({ sending_status_reason: reason, reputation }: SendingCaller) => ({
  reason,
  bounce_rate: reputation?.bounce_rate ?? 0,
  complaint_rate: reputation?.complaint_rate ?? 0,
})

const RANGE = 2 ** 32

/** 0 to 1, evenly over all ids. */
export const drawOf = (message_id: string): number =>
  createHash("sha256").update(message_id).digest().readUInt32BE(0) / RANGE

/** The reason of a message that waits because people complained about its tag or template. */
export const HELD_BY_COMPLAINTS = "held_by_complaints"

const HOLD = "complaints:"

/** The name of a hold in the engine of work. */
export const holdName = (id: string) => `${HOLD}${id}`

export const isComplaintHold = (by: string | null): boolean => by?.startsWith(HOLD) ?? false

export type ComplaintHold = typeof complaintHolds.$inferSelect

const isHeld = isNotNull(complaintHolds.held_at)

/** A hold of another node is known this much later. */
const RECENT_MS = 1000

const holdsOfProjects = cached<ComplaintHold[]>({ tables: ["complaint_holds"] })

/** What is held of a project now. */
export const heldIn = async (db: Reader, project_id: string): Promise<ComplaintHold[]> =>
  holdsOfProjects(
    db,
    project_id,
    () =>
      db
        .select()
        .from(complaintHolds)
        .where(and(eq(complaintHolds.project_id, project_id), isHeld))
        .orderBy(complaintHolds.id),
    RECENT_MS,
  )

/** The most that an answer lists. */
const MOST_HELD = 100

/** What is held of an account, or of one project of it; the latest first. */
export const heldOf = (
  db: Reader,
  { account_id, project_id }: { account_id: string; project_id: string | undefined },
): Promise<ComplaintHold[]> =>
  db
    .select()
    .from(complaintHolds)
    .where(
      and(
        eq(complaintHolds.account_id, account_id),
        project_id === undefined ? undefined : eq(complaintHolds.project_id, project_id),
        isHeld,
      ),
    )
    .orderBy(desc(complaintHolds.held_at))
    .limit(MOST_HELD)

interface Tagged {
  project_id: string
  tags: string[]
  template_id: string | null
}

/** Throws DeferredError for a message whose tag or template is held. */
export async function requireReleased(db: Reader, message: Tagged): Promise<void> {
  const { project_id, tags, template_id } = message
  if (tags.length === 0 && template_id === null) return
  if (!settings()["reputation.enforced"]) return
  const found = (await heldIn(db, project_id)).find(({ dimension, name }) =>
    dimension === "tag" ? tags.includes(name) : template_id === name,
  )
  if (found) throw new DeferredError(HELD_BY_COMPLAINTS, null, holdName(found.id))
}

/** Holds the tags and templates of an account whose complaints reached the threshold. */
export async function holdComplained(store: Store, account_id: string): Promise<void> {
  if (!settings()["reputation.enforced"]) return
  const limits = thresholds()
  const since = firstHour(millis(), limits.window_ms)
  for (const one of await complainedOf(store.read, account_id, since)) {
    if (await isOver(store.read, one, limits)) await store.tx((tx) => holdOne(tx, one, limits))
  }
}

/** The window of a name begins anew when it is released. */
async function rateOf(db: Reader, one: CountedName, limits: Thresholds) {
  const [hold] = await db.select().from(complaintHolds).where(isOf(one))
  const start = windowStart(hold ?? null, limits, millis())
  const counts = less(await countsOf(db, one, start.hour), start.base)
  return { hold, counts, ...ratesOf(counts) }
}

async function isOver(db: Reader, one: CountedName, limits: Thresholds): Promise<boolean> {
  const { hold, counts, complaint_rate } = await rateOf(db, one, limits)
  if (hold?.held_at) return false
  const { min_sent, complaint_rate: most } = limits.held
  return counts.sent >= min_sent && complaint_rate >= most
}

async function holdOne(tx: Tx, one: CountedName, limits: Thresholds) {
  const { account_id, project_id, dimension, name } = one
  if (dimension !== "tag" && dimension !== "template") return
  const { counts, bounce_rate, complaint_rate } = await rateOf(tx, one, limits)
  const fresh = { id: newId(), account_id, project_id, dimension, name }
  const changes = { held_at: now(), complaint_rate, updated_at: now() }
  const made = await tx
    .insert(complaintHolds)
    .values({ ...fresh, ...changes, window_start: null, base: null })
    .onConflictDoUpdate({
      target: [complaintHolds.project_id, complaintHolds.dimension, complaintHolds.name],
      set: changes,
      setWhere: isNull(complaintHolds.held_at),
    })
    .returning({ id: complaintHolds.id })
  if (made.length === 0) return // another node was faster
  await record(tx, audit.SYSTEM, one, "reputation.held", { after: { ...changes, ...counts } })
  const payload = { account_id, kind: "held" as const, reason: null, bounce_rate, complaint_rate }
  const named = { ...payload, name: `the ${dimension} ${name}` }
  await enqueue(tx, reputationAlert, { payload: named, project_id: null })
}

const isOf = ({ project_id, dimension, name }: CountedName): SQL | undefined =>
  and(
    eq(complaintHolds.project_id, project_id),
    eq(complaintHolds.dimension, dimension as "tag"),
    eq(complaintHolds.name, name),
  )

/**
 * Releases a tag or template, and queues its messages again. Throws 404 where it is not held. Its
 * window begins now, so that old complaints do not hold it again. Returns how many messages waited.
 */
export async function release(
  store: Store,
  rows: AnyWorkRows,
  one: CountedName,
  by: audit.By,
): Promise<number> {
  const id = await store.tx(async (tx) => {
    const [hold] = await forUpdate(
      tx
        .select()
        .from(complaintHolds)
        .where(and(isOf(one), isHeld)),
    )
    if (!hold) {
      return fail("not_found", `The ${one.dimension} ${one.name} is not held in this project.`)
    }
    const at_ms = millis()
    const base = await countsOf(tx, one, hourOf(at_ms))
    const changes = { held_at: null, window_start: isoFrom(at_ms), base, updated_at: now() }
    await tx.update(complaintHolds).set(changes).where(eq(complaintHolds.id, hold.id))
    const told = { before: { held_at: hold.held_at, complaint_rate: hold.complaint_rate } }
    await record(tx, by, one, "reputation.released", told)
    return hold.id
  })
  return unholdAll(store, rows, holdName(id))
}

async function unholdAll(store: Store, rows: AnyWorkRows, by: string): Promise<number> {
  let all = 0
  for (;;) {
    const some = await unhold(store, rows, by)
    if (some === 0) return all
    all += some
  }
}

/**
 * Queues what was held just when its hold ended, or while the process that released it died; and all that was held
 * before `reputation.enforced` was switched off.
 */
export async function releaseStranded(store: Store, rows: AnyWorkRows): Promise<void> {
  for (const by of await holders(store.read, rows)) {
    if (!isComplaintHold(by)) continue
    const own = and(eq(complaintHolds.id, by.slice(HOLD.length)), isHeld)
    const found = await store.read.select({ id: complaintHolds.id }).from(complaintHolds).where(own)
    if (found.length === 0 || !settings()["reputation.enforced"]) await unholdAll(store, rows, by)
  }
}

/** The target of an entry is the name: neither a tag nor its hold is a record that one can read. */
const record = (
  tx: Tx,
  by: audit.By,
  { account_id, project_id, dimension, name }: CountedName,
  action: string,
  change: audit.AuditChange,
) =>
  audit.record(tx, by, {
    account_id,
    project_id,
    action,
    target: { type: dimension, id: name },
    ...change,
  })

const PURGE_LIMIT = 200

/**
 * Forgets up to 200 names that were released so long ago that none of their counts is kept. Returns how
 * many.
 */
export function purgeReleased(store: Store): Promise<number> {
  const { id, held_at, window_start } = complaintHolds
  const old = and(isNull(held_at), lt(window_start, secondsFromNow(-KEPT_HOURS * 3600)))
  return removeSome(store, complaintHolds, { id, old, most: PURGE_LIMIT })
}
