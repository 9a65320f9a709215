import { and, eq, inArray, isNull } from "drizzle-orm"
import { conflict, fail } from "../core/errors"
import { newId } from "../core/ids"
import { isPast, now } from "../core/time"
import { emit } from "../events/emit"
import type { Caller } from "../identity/caller"
import { underHold } from "../jobs/holds"
import { DROPPED, enqueue, type JobKind, jobRows, type NewWork } from "../jobs/jobs"
import { jobs } from "../jobs/tables"
import { PRIORITIES, RESTORE_HOLD, type RetrySchedule } from "../jobs/work-item"
import { AUDIENCE_CHANNELS, type AudienceChannel } from "../lib/preferences"
import { fieldsOf } from "../lib/record-fields"
import { refuseFrozen } from "../messages/accept"
import { keepShared, type SharedValues } from "../messages/contents"
import {
  type ChannelPlanner,
  type FrozenIntent,
  type Planners,
  type PreparedChannel,
  SKIP_REASONS,
  type SkipReason,
} from "../messages/planner"
import { findAudience } from "../messages/send-fields"
import { forUpdate } from "../store/columns"
import { bumpAll, type Totals, totalsOf } from "../store/counters"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import type { TemplateSources } from "../templates/render-templates-task"
import { projectName } from "../templates/rendering"
import { Publish, type PublishIntent } from "./publish-input"
import { type FanOutRow, type FanOutStatus, fanOutParts, fanOuts } from "./tables"

const DAY_SECONDS = 86_400
const MINUTE = 60

/** A fault of ours: soon at first, then every minute for a day. */
const schedule: RetrySchedule = (attempt, age_seconds) =>
  age_seconds > DAY_SECONDS ? undefined : Math.min(2 ** attempt, MINUTE)

interface Start {
  fan_out_id: string
}

/** Fixes the audience of a fan-out and shares it among the nodes. */
export const fanOutStart: JobKind<Start> = { name: "fan_out.start", schedule }

export interface PartOfWalk extends Start {
  part: number
}

export const fanOutPart: JobKind<PartOfWalk> = { name: "fan_out.part", schedule }

/** Ends messages of a fan-out that wait, once it is cancelled or expired. */
export const fanOutStopped: JobKind<Start & { below?: string }> = {
  name: "fan_out.stopped",
  schedule,
}

export const partWork = (
  payload: PartOfWalk,
  project_id: string,
  run_at?: string,
): NewWork<PartOfWalk> => ({
  payload,
  project_id,
  priority: PRIORITIES.bulk,
  ...(run_at !== undefined && { run_at }),
})

export interface FanOutParts {
  store: Store
  planners: Planners
}

interface PreparedFanOut {
  channels: AudienceChannel[]
  intent: FrozenIntent
  values: SharedValues
  texts: Map<string, TemplateSources>
}

/**
 * Everything that may be refused before the transaction: category, template, account, and what each channel asks
 * for. The texts are frozen as they are now, with all that they include, in every language. Throws what a send would.
 */
export async function prepare(
  { store: { read }, planners }: FanOutParts,
  caller: Caller,
  intent: PublishIntent,
): Promise<PreparedFanOut> {
  const { channels, category, exclude, respect_preferences, template, content } = intent
  const { project_id, key_id: api_key_id, project_settings } = caller
  if (category !== null) await findAudience(read, project_id, { category })
  const texts: PreparedFanOut["texts"] = new Map()
  const prepared: [AudienceChannel, PreparedChannel][] = []
  for (const channel of channels) {
    const asked = { template, content: content?.[channel] }
    const own = await plannerOf(planners, channel).prepare(caller, asked)
    for (const [name, sources] of own.texts) texts.set(name, sources)
    prepared.push([channel, own])
  }
  const frozen: FrozenIntent = { category, exclude, respect_preferences, api_key_id }
  // Contract 00, section 6: after what the request names.
  for (const channel of channels) await refuseFrozen(read, caller, channel, 1)
  for (const [channel, own] of prepared) frozen[channel] = await own.freeze()
  const project = { id: project_id, name: await projectName(read, project_id) }
  const { locale, timezone } = project_settings
  const values = { variables: intent.variables ?? {}, project, locale, timezone }
  return { channels, intent: frozen, values, texts }
}

/** The planner of a channel of a fan-out, which no request can name before it is built. */
export function plannerOf(planners: Planners, channel: AudienceChannel): ChannelPlanner {
  const planner = planners[channel]
  if (!planner) throw new Error(`The channel ${channel} cannot be published to.`)
  return planner
}

export interface FanOutTimes {
  /** Null, or a time that has passed, is now. */
  scheduled_at: string | null
  expires_at: string | null
  dedupe_key: string | null
}

export async function create(
  tx: Tx,
  caller: Pick<Caller, "account_id" | "project_id">,
  topic: { id: string; key: string },
  prepared: PreparedFanOut,
  { scheduled_at, expires_at, dedupe_key }: FanOutTimes,
): Promise<FanOutRow> {
  const at = scheduled_at === null || isPast(scheduled_at) ? null : scheduled_at
  const row: FanOutRow = {
    id: newId(),
    account_id: caller.account_id,
    project_id: caller.project_id,
    kind: "publish",
    status: at === null ? "queued" : "scheduled",
    status_reason: null,
    topic_id: topic.id,
    topic_key: topic.key,
    audience: null,
    channels: prepared.channels,
    intent: prepared.intent,
    dedupe_key,
    scheduled_at: at,
    expires_at,
    created_at: now(),
    started_at: null,
    completed_at: null,
  }
  await tx.insert(fanOuts).values(row)
  const { values, texts, intent } = prepared
  await keepShared(tx, row.id, { values, texts, is_uncounted: !intent.respect_preferences })
  const payload = { fan_out_id: row.id }
  const { project_id } = row
  await enqueue(tx, fanOutStart, { payload, project_id, ...(at !== null && { run_at: at }) })
  return row
}

/** The fan-out of a topic, or 404: an absent one and a foreign one answer alike. */
export async function find(
  db: Reader,
  project_id: string,
  topic_id: string,
  id: string,
): Promise<FanOutRow> {
  const ours = and(eq(fanOuts.project_id, project_id), eq(fanOuts.topic_id, topic_id))
  return (await rowById(db, fanOuts, id, ours)) ?? fail("not_found", "There is no such publish.")
}

/**
 * Cancels a fan-out: nobody else is written to, and messages that wait are not sent. Waits for the chunks that
 * are being written. Throws 404, and 409 for one that is over.
 */
export async function cancel(
  tx: Tx,
  project_id: string,
  topic_id: string,
  id: string,
): Promise<FanOutRow> {
  await find(tx, project_id, topic_id, id)
  const ended = await end(tx, id, "cancelled", null)
  if (ended) return ended
  const { status } = await find(tx, project_id, topic_id, id) // it may have ended while this waited
  const rest = status === "completed" ? STILL_WAITING : ""
  return conflict("finished", id, `The publish is ${status} already.${rest}`)
}

/** Quiet hours defer messages beyond the end of their publish. */
const STILL_WAITING =
  " GET /v1/scheduled lists the messages that still wait. Cancel each one with DELETE /v1/scheduled/{scheduled_id}."

/**
 * Ends a fan-out that is not over yet; undefined for one that is. It holds the fan-out, then waits for the
 * chunks that are being written: none begins after that. Messages that wait end by a job: after a cancel at
 * once, and at the expiry of each other fan-out that has one.
 */
export async function end(
  tx: Tx,
  id: string,
  status: FanOutStatus,
  status_reason: string | null,
): Promise<FanOutRow | undefined> {
  const open = and(eq(fanOuts.id, id), isNull(fanOuts.completed_at))
  const [row] = await forUpdate(tx.select().from(fanOuts).where(open))
  if (!row) return undefined
  const parts = eq(fanOutParts.fan_out_id, id)
  await forUpdate(tx.select().from(fanOutParts).where(parts).orderBy(fanOutParts.part))
  await tx.delete(fanOutParts).where(parts)
  const change = { status, status_reason, completed_at: now() }
  await tx.update(fanOuts).set(change).where(open)
  const { project_id, expires_at } = row
  const run_at = status === "cancelled" ? change.completed_at : expires_at
  if (run_at !== null) {
    await enqueue(tx, fanOutStopped, { payload: { fan_out_id: id }, project_id, run_at })
  }
  return { ...row, ...change }
}

/**
 * Ends a fan-out one of whose jobs is given up, for this reason. One that an operator dropped after a restore ends as
 * its sender would have ended it.
 */
export const giveUp = (tx: Tx, id: string, reason: string): Promise<FanOutRow | undefined> =>
  reason === DROPPED ? end(tx, id, "cancelled", null) : end(tx, id, "failed", "internal_error")

/**
 * The Publish records of the contract (43, section 3), in the order of the rows. One that a restored copy holds says so
 * in its `status_reason`.
 */
export async function toResponses(db: Reader, rows: FanOutRow[]) {
  const counts = await countsOf(db, rows)
  const held = await heldFanOuts(db, rows)
  return rows.map((row) =>
    fieldsOf(Publish, {
      ...row,
      topic_key: row.topic_key ?? "",
      status_reason: held.has(row.id) ? RESTORE_HOLD : row.status_reason,
      audience: row.audience ?? 0,
      channels: counts.get(row.id) ?? {},
    }),
  )
}

const WALKING = [fanOutStart.name, fanOutPart.name]

/** Of these fan-outs, the ids of those that wait since a restore: the job that starts or walks them is held. */
async function heldFanOuts(db: Reader, rows: FanOutRow[]): Promise<Set<string>> {
  const open = rows.filter(({ completed_at }) => completed_at === null)
  if (open.length === 0) return new Set()
  const { payload, project_id, name } = jobs
  const projects = [...new Set(open.map((row) => row.project_id))]
  const ours = and(inArray(project_id, projects), inArray(name, WALKING))
  // A project has at most 1,000 open publishes, and each of them few jobs.
  const of_restore = and(underHold(jobRows, RESTORE_HOLD), ours)
  const held = await db.select({ payload }).from(jobs).where(of_restore)
  return new Set(held.map((job) => (job.payload as { fan_out_id: string }).fan_out_id))
}

/** Ends a part that is walked through, and with the last one the fan-out. */
export async function endPart(tx: Tx, fan_out_id: string, part: number): Promise<void> {
  await rowForUpdate(tx, fanOuts, fan_out_id) // before the part, as whatever ends a fan-out
  const ours = and(eq(fanOutParts.fan_out_id, fan_out_id), eq(fanOutParts.part, part))
  await tx.delete(fanOutParts).where(ours)
  await completeIfDone(tx, fan_out_id)
}

/** Once no part is left. What the walk has not met of its audience left the topic before. */
export async function completeIfDone(tx: Tx, id: string): Promise<void> {
  const row = await rowForUpdate(tx, fanOuts, id)
  if (!row || row.completed_at !== null) return
  const left = tx.select({ part: fanOutParts.part }).from(fanOutParts)
  if ((await left.where(eq(fanOutParts.fan_out_id, id)).limit(1)).length > 0) return
  const gone = Math.max(0, (row.audience ?? 0) - (await foundOf(tx, id)))
  const bumps = row.channels.map((channel) => {
    return { owner: id, name: skippedName(channel, "preference"), by: gone }
  })
  await bumpAll(tx, bumps)
  const ended = await end(tx, id, "completed", null)
  if (!ended) return
  const counts = await countsOf(tx, [ended])
  const { account_id, project_id, topic_key, audience, completed_at } = ended
  await emit(tx, {
    account_id,
    project_id,
    subject_id: id,
    type: "topic.publish_completed",
    data: {
      publish_id: id,
      topic_key,
      audience,
      counts: counts.get(id) ?? {},
      timestamp: completed_at,
    },
  })
}

interface ChannelCounts {
  planned: number
  sent: number
  skipped: Record<SkipReason, number>
  failed: number
}

/** Recipients that the walk has met. The rest of the audience left before it came. */
export const FOUND = "found"

export const sentName = (channel: AudienceChannel) => `${channel}.sent`

export const skippedName = (channel: AudienceChannel, reason: SkipReason) =>
  `${channel}.skipped.${reason}`

/** What settling counts (`messages/change.ts`). */
const failedName = (channel: AudienceChannel) => `${channel}.failed`

const NAMES = [
  FOUND,
  ...AUDIENCE_CHANNELS.flatMap((channel) => [
    sentName(channel),
    failedName(channel),
    ...SKIP_REASONS.map((reason) => skippedName(channel, reason)),
  ]),
]

async function countsOf(
  db: Reader,
  rows: Pick<FanOutRow, "id" | "audience" | "channels">[],
): Promise<Map<string, Partial<Record<AudienceChannel, ChannelCounts>>>> {
  const ids = rows.map(({ id }) => id)
  const totals = await totalsOf(db, ids, NAMES)
  return new Map(
    rows.map(({ id, audience, channels }) => {
      const sums = totals.get(id) ?? new Map()
      const counts = channels.map((channel) => [channel, channelCounts(sums, channel, audience)])
      return [id, Object.fromEntries(counts)]
    }),
  )
}

function channelCounts(
  sums: Totals,
  channel: AudienceChannel,
  audience: number | null,
): ChannelCounts {
  const countOf = (name: string) => sums.get(name) ?? 0
  const skipped = SKIP_REASONS.map((reason) => [reason, countOf(skippedName(channel, reason))])
  return {
    planned: audience ?? 0,
    sent: countOf(sentName(channel)),
    skipped: Object.fromEntries(skipped),
    failed: countOf(failedName(channel)),
  }
}

async function foundOf(db: Reader, id: string): Promise<number> {
  const totals = await totalsOf(db, [id], [FOUND])
  return totals.get(id)?.get(FOUND) ?? 0
}
