import { and, eq, isNull } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { isPast, millis } from "../core/time"
import { type Caller, codeOfSilence, projectCaller } from "../identity/caller"
import type { AudienceChannel } from "../lib/preferences"
import { accept, allowanceOf, type MessageEntry, storedShareOf } from "../messages/accept"
import { decideAll, type MessageQuery } from "../messages/audience-decisions"
import type { ChunkPlan, SkipReason } from "../messages/planner"
import type { NewMessage } from "../messages/tables"
import { throttledRefusal } from "../reputation/gate"
import { forUpdate, skipLocked } from "../store/columns"
import { bumpAll } from "../store/counters"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import type { SendDecision } from "../subscribers/decision"
import { refusalsByCountry } from "../tenancy/country-limit"
import { limitsForUpdate, type SendBucket, takeFromBucket } from "../tenancy/quotas"
import { audienceSourceOf, nextRange, type WalkedRecipient } from "./audience-source"
import { FOUND, sentName, skippedName } from "./fan-out"
import { type FanOutRow, fanOutParts, fanOuts } from "./tables"

export interface ChannelPlan {
  channel: AudienceChannel
  chunk: ChunkPlan
}

/** What a chunk is written with, read before its transaction. */
export interface ChunkInput {
  fan_out_id: string
  part: number
  plans: readonly ChannelPlan[]
}

/** What came of a chunk: it goes on at once, later, or not at all, because the fan-out is over or fails now. */
export type ChunkResult =
  | "more"
  | "part_done"
  | "over"
  | { wait_seconds: number }
  | { fails: string }

const FROZEN = "account_frozen"
const FROZEN_SECONDS = 5

const NO_PROVIDER = "no_provider"
const NO_PROVIDER_SECONDS = 60

const COUNTRY_LIMIT = "country_limit"

/** Not until the next hour: an allowed country lifts the limit at once. */
const COUNTRY_LIMIT_SECONDS = 60

/**
 * Writes the messages of the next recipients of a part together with its cursor: so nobody is written to
 * twice, and nobody is left out. A subscriber that left the topic gets nothing. Of the fan-out it holds this
 * part only, and never waits for the row of the fan-out: whatever ends a fan-out holds that row, then the parts.
 */
export async function writeChunk(tx: Tx, input: ChunkInput): Promise<ChunkResult> {
  const { fan_out_id } = input
  const [part] = await findPartForUpdate(tx, input)
  if (!part) return "over" // what ends a fan-out removes its parts
  if (part.cursor >= part.until) return "part_done"
  const [fan_out] = await findFanOut(tx, { id: fan_out_id })
  if (!fan_out) return "over"
  if (fan_out.expires_at !== null && isPast(fan_out.expires_at)) return { fails: "expired" }
  const caller = await projectCaller(tx, fan_out.project_id)
  if (!caller) return { fails: await codeOfSilence(tx, fan_out.project_id) }
  if (caller.sending_status === "frozen") {
    await setStatus(tx, fan_out, "paused", FROZEN)
    return { wait_seconds: FROZEN_SECONDS }
  }
  await setStatus(tx, fan_out, "fanning_out", null)
  const source = audienceSourceOf(fan_out)
  const about = await source.topicOf(tx, fan_out)
  if (!about) return { fails: source.gone }
  const { project_settings } = caller
  if (!project_settings.sandbox) {
    const { channels } = fan_out
    const quotas = channels.map((channel) => allowanceOf(caller, channel))
    const buckets = channels.map((channel) => bucketOf(caller, channel))
    await limitsForUpdate(tx, quotas, buckets)
  }
  const range = await nextRange(tx, fan_out, part, project_settings)
  const { members, found } = range
  const recipients = whollyKnown(found, input)
  const step = await walkOn(tx, { ...input, ...about, fan_out, caller, recipients })
  if (step.pauses) {
    const walking = { ...fan_out, status: "fanning_out", status_reason: null } as const
    await setStatus(tx, walking, "paused", step.pauses)
  }
  const is_last = range.is_last && step.done === found.length
  const next = found[step.done]
  // Before the next one, so that members that get nothing do not keep it from being the first.
  const cursor = next ? next.number - 1 : (members.at(-1)?.number ?? part.cursor)
  const last = is_last ? part.until : cursor
  await moveCursor(tx, { ...part, cursor: last })
  if (step.wait_seconds !== undefined) return { wait_seconds: step.wait_seconds }
  return is_last ? "part_done" : "more"
}

/** The status that is told. Where another transaction changes the row just now, the next chunk tells it. */
async function setStatus(
  tx: Tx,
  { id, ...row }: FanOutRow,
  status: "paused" | "fanning_out",
  status_reason: string | null,
) {
  if (row.status === status && row.status_reason === status_reason) return
  const open = and(eq(fanOuts.id, id), isNull(fanOuts.completed_at))
  const [free] = await skipLocked(tx.select({ id: fanOuts.id }).from(fanOuts).where(open))
  if (free) await tx.update(fanOuts).set({ status, status_reason }).where(open)
}

/**
 * Those before the first one that lacks something its messages need. Another process may have walked
 * on meanwhile, or a merge may have put another subscriber there. The next chunk begins with it.
 */
function whollyKnown(found: WalkedRecipient[], { plans }: ChunkInput): WalkedRecipient[] {
  const first = found.findIndex(({ member }) => !plans.every(({ chunk }) => chunk.isReady(member)))
  return first === -1 ? found : found.slice(0, first)
}

interface Walk extends ChunkInput {
  fan_out: FanOutRow
  caller: Caller
  topic: MessageQuery["topic"]
  recipients: WalkedRecipient[]
}

interface WalkStep {
  done: number
  wait_seconds?: number
  pauses?: string
}

type Planned = MessageEntry[] | SkipReason

async function walkOn(tx: Tx, walk: Walk): Promise<WalkStep> {
  let step: WalkStep = { done: walk.recipients.length }
  const planned: (ChannelPlan & { list: Planned[] })[] = []
  for (const { channel, chunk } of walk.plans) {
    const list = await plannedIn(tx, walk, { channel, chunk })
    const pace = await paced(tx, walk, { channel, chunk }, list.slice(0, step.done))
    if (pace.done < step.done) step = pace
    planned.push({ channel, chunk, list })
  }
  const owner = walk.fan_out_id
  const bumps = [{ owner, name: FOUND, by: step.done }]
  for (const { list, ...plan } of planned) {
    const names = await acceptIn(tx, plan, list.slice(0, step.done))
    for (const name of names) bumps.push({ owner, name, by: 1 })
  }
  await bumpAll(tx, bumps)
  return step
}

/** Accepts what is planned in one channel. Resolves with the counter of each recipient. */
async function acceptIn(
  tx: Tx,
  { channel, chunk }: ChannelPlan,
  list: Planned[],
): Promise<string[]> {
  const entries = list.flatMap((one) => (typeof one === "string" ? [] : one))
  const answers = await (chunk.accept ? chunk.accept(tx, entries) : accept(tx, entries))
  let at = 0
  return list.map((one) => {
    if (typeof one === "string") return skippedName(channel, one)
    const theirs = answers.slice(at, at + one.length)
    at += one.length
    const refusal = theirs.find((answer) => answer instanceof ApiError)
    if (refusal && !USED_UP.has(refusal.code)) throw refusal
    const is_sent = theirs.some((answer) => !(answer instanceof ApiError))
    return is_sent ? sentName(channel) : skippedName(channel, "quota")
  })
}

/** The month's quota, or what the project may store: the walk goes on, because both may change meanwhile. */
const USED_UP: ReadonlySet<string> = new Set(["payment_required", "plan_limit_exceeded"])

async function plannedIn(
  tx: Tx,
  { fan_out, caller, topic, recipients }: Walk,
  { channel, chunk }: ChannelPlan,
): Promise<Planned[]> {
  const { category, respect_preferences } = fan_out.intent
  const queries = recipients.map(
    ({ member }): MessageQuery => ({
      subscriber: member,
      address: chunk.addressOf(member),
      channel,
      stream: "broadcast",
      category,
      topic,
      ignores_preferences: !respect_preferences,
      at: millis(),
    }),
  )
  const project = { id: fan_out.project_id, settings: caller.project_settings }
  const decisions = await decideAll(tx, project, queries)
  const { sandbox } = caller.project_settings
  const allowance = sandbox ? null : { ...allowanceOf(caller, channel), sends_per_second: null }
  const share = storedShareOf(caller, fan_out.project_id)
  return recipients.map(({ member }, at): Planned => {
    const decision = decisions[at]
    if (chunk.addressOf(member) === null) return "no_address"
    if (!decision?.is_allowed) return skipOf(decision)
    const planned = chunk.plan(caller, member, decision)
    return typeof planned === "string"
      ? planned
      : planned.map((message) => ({
          ...{ message, allowance, share },
          send: message.batch_id ?? undefined,
        }))
  })
}

const skipOf = (decision: SendDecision | undefined): SkipReason => {
  const reason = decision?.reason
  return reason === "suppressed" || reason === "frequency_cap" ? reason : "preference"
}

const THROTTLED_SECONDS = 1

/** The rest of the bucket is for single sends, whose callers wait for the answer. */
const SHARE_OF_BUCKET = 0.8

const bucketOf = ({ project_id, limits }: Caller, channel: AudienceChannel): SendBucket => ({
  project_id,
  channel,
  limit: limits.sends_per_second,
  share: SHARE_OF_BUCKET,
})

/** How far the walk may go: the bucket, a country's hour, throttling and recipients out of reach stop it early. */
async function paced(
  tx: Tx,
  { caller, recipients }: Walk,
  { channel, chunk }: ChannelPlan,
  planned: Planned[],
): Promise<WalkStep> {
  const counted: { at: number; message: NewMessage }[] = []
  let unreachable: number | undefined
  for (const [at, one] of planned.entries()) {
    const [entry] = typeof one === "string" ? [] : one
    if (!entry || entry.message.sandbox) continue
    const member = recipients[at]?.member
    if (!member || !chunk.isReachable(member)) {
      unreachable = at
      break
    }
    counted.push({ at, message: entry.message })
  }
  const throttled = counted.find(({ message }) => throttledRefusal(caller, message.id))
  const unthrottled = throttled ? counted.filter(({ at }) => at < throttled.at) : counted
  const by_country = await refusalsByCountry(
    tx,
    unthrottled.map(({ message }) => message),
  )
  const crowded = unthrottled[by_country.findIndex((refusal) => refusal !== null)]
  const before = crowded ? unthrottled.filter(({ at }) => at < crowded.at) : unthrottled
  const refusals = await takeFromBucket(
    tx,
    bucketOf(caller, channel),
    before.map(() => 1),
  )
  const full = before[refusals.findIndex((refusal) => refusal !== null)]
  if (full) return { done: full.at, wait_seconds: THROTTLED_SECONDS }
  if (crowded)
    return { done: crowded.at, wait_seconds: COUNTRY_LIMIT_SECONDS, pauses: COUNTRY_LIMIT }
  if (throttled) return { done: throttled.at, wait_seconds: THROTTLED_SECONDS }
  if (unreachable === undefined) return { done: planned.length }
  return { done: unreachable, wait_seconds: NO_PROVIDER_SECONDS, pauses: NO_PROVIDER }
}

// A publish has thousands of chunks, so what each of them reads and writes is prepared.

const { fan_out_id, part } = fanOutParts

const findFanOut = prepared({ id: fanOuts.id }, (db: Reader, slot) =>
  db.select().from(fanOuts).where(eq(fanOuts.id, slot.id)),
)

/** How far a part is walked; none where its fan-out is over. */
export const findPart = prepared({ fan_out_id, part }, (db: Reader, slot) =>
  db
    .select()
    .from(fanOutParts)
    .where(and(eq(fan_out_id, slot.fan_out_id), eq(part, slot.part))),
)

/** As `findPart`, and nobody else walks in it before the transaction ends. */
const findPartForUpdate = prepared({ fan_out_id, part }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select()
      .from(fanOutParts)
      .where(and(eq(fan_out_id, slot.fan_out_id), eq(part, slot.part))),
  ),
)

const moveCursor = prepared({ fan_out_id, part, cursor: fanOutParts.cursor }, (tx: Tx, slot) =>
  tx
    .update(fanOutParts)
    .set({ cursor: slot.cursor })
    .where(and(eq(fan_out_id, slot.fan_out_id), eq(part, slot.part))),
)
