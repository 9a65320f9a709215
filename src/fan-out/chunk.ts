import { and, eq, isNull } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { isPast, millis } from "../core/time"
import { isReachable, newEmail, type SendRules } from "../emails/prepare"
import type { Caller } from "../identity/caller"
import { codeOfSilence, projectCaller } from "../identity/project-caller"
import { comparable, type Mailbox } from "../lib/address"
import { accept, allowanceOf, type MessageEntry, storedShareOf } from "../messages/accept"
import { type AskedMessage, decideAll } from "../messages/audience-decisions"
import { nameFor, type SharedLanguages } from "../messages/contents"
import { keptOf } from "../messages/decided"
import type { NewMessage } from "../messages/pipeline"
import { topicFields } from "../messages/send-fields"
import { throttledRefusal } from "../reputation/gate"
import { bumpAll, type Changes } from "../store/counters"
import { skipLocked } from "../store/dialect"
import type { Tx } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import { packedSubscriber, templateSubscriber } from "../subscribers/template-subscriber"
import { holdLimits, type SendBucket, takeFromBucket } from "../tenancy/quotas"
import type { topics } from "../topics/tables"
import { FOUND, type SkipReason, sentName, skippedName } from "./fan-out-counts"
import { nextStretch, type WalkedRecipient } from "./recipients"
import { type FanOutRow, fanOuts } from "./tables"
import { holdPart, lookupFanOut, lookupTopic, moveCursor } from "./walk-rows"

/** What a chunk is written with, read before its transaction. */
export interface ChunkInput {
  fan_out_id: string
  part: number
  /** Of the project, outside of the sandbox. */
  rules: Pick<SendRules, "unsubscribe" | "replyAddress" | "to_mailbox" | "mailbox_takes_all">
  languages: SharedLanguages
  /** The subjects of the next recipients, by subscriber or by the name of their texts. */
  subjects: ReadonlyMap<string, string | null>
  at: string
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

/**
 * Writes the messages of the next recipients of a part together with its cursor: so nobody is written to
 * twice, and nobody is left out. A subscriber that left the topic gets nothing. Of the fan-out it holds this
 * part only, and never waits for the row of the fan-out: whatever ends a fan-out holds that row, then the parts.
 */
export async function writeChunk(tx: Tx, input: ChunkInput): Promise<ChunkResult> {
  const { fan_out_id } = input
  const part = await holdPart(tx, input)
  if (!part) return "over" // what ends a fan-out removes its parts
  if (part.cursor >= part.until) return "part_done"
  const fan_out = await lookupFanOut(tx, fan_out_id)
  if (!fan_out) return "over"
  if (fan_out.expires_at !== null && isPast(fan_out.expires_at)) return { fails: "expired" }
  const caller = await projectCaller(tx, fan_out.project_id)
  if (!caller) return { fails: await codeOfSilence(tx, fan_out.project_id) }
  if (caller.sending_status === "frozen") {
    await setStatus(tx, fan_out, "paused", FROZEN)
    return { wait_seconds: FROZEN_SECONDS }
  }
  await setStatus(tx, fan_out, "fanning_out", null)
  const topic = await lookupTopic(tx, fan_out.topic_id)
  if (!topic) return { fails: "topic_not_found" }
  const { project_settings } = caller
  if (!project_settings.sandbox)
    await holdLimits(tx, allowanceOf(caller, "email"), bucketOf(caller))
  const stretch = await nextStretch(tx, fan_out, part, project_settings)
  const { members, found } = stretch
  const recipients = withSubjects(found, input)
  const step = await walkOn(tx, { ...input, fan_out, caller, topic, recipients })
  if (step.pauses) {
    const walking = { ...fan_out, status: "fanning_out", status_reason: null } as const
    await setStatus(tx, walking, "paused", step.pauses)
  }
  const is_last = stretch.is_last && step.done === found.length
  const last = is_last ? part.until : cursorAfter(members, found, step.done, part.cursor)
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
 * Those before the first one whose subject was not rendered. Another process may have walked on meanwhile, or
 * a merge may have put another subscriber there. The next chunk begins with it.
 */
function withSubjects(
  found: WalkedRecipient[],
  { languages, subjects }: ChunkInput,
): WalkedRecipient[] {
  const has = ({ member }: WalkedRecipient) =>
    subjects.has(member.id) || subjects.has(nameFor(languages, "email", member.locale))
  const first = found.findIndex((one) => !has(one))
  return first === -1 ? found : found.slice(0, first)
}

/** The number of the last member that is behind the walk. */
function cursorAfter(
  members: { number: number }[],
  recipients: WalkedRecipient[],
  done: number,
  before: number,
): number {
  if (done === recipients.length) return members.at(-1)?.number ?? before
  return recipients[done - 1]?.number ?? before
}

interface Walk extends ChunkInput {
  fan_out: FanOutRow
  caller: Caller
  topic: typeof topics.$inferSelect
  recipients: WalkedRecipient[]
}

interface WalkStep {
  /** How many of the recipients are behind the walk. */
  done: number
  /** It does not go on at once. */
  wait_seconds?: number
  /** Why it is paused meanwhile, where it is. */
  pauses?: string
}

/** Decides, writes and counts, as far as the pace of the project allows. */
async function walkOn(tx: Tx, walk: Walk): Promise<WalkStep> {
  const decisions = await decisionsOf(tx, walk)
  const { sandbox } = walk.caller.project_settings
  const allowance = sandbox
    ? null
    : { ...allowanceOf(walk.caller, "email"), sends_per_second: null }
  const counted = { ...walk, allowance, share: storedShareOf(walk.caller, walk.fan_out.project_id) }
  const planned = walk.recipients.map(({ member }, at) => plan(counted, member, decisions[at]))
  const { done, ...pace } = await paced(tx, walk, planned)
  const reached = planned.slice(0, done)
  const entries = reached.filter((one) => "message" in one)
  const answers = await accept(tx, entries)
  const changes: Changes = new Map([[FOUND, done]])
  const count = (name: string) => changes.set(name, (changes.get(name) ?? 0) + 1)
  for (const one of reached) if ("skip" in one) count(skippedName("email", one.skip))
  for (const answer of answers) {
    if (!(answer instanceof ApiError)) count(sentName("email"))
    else if (USED_UP.has(answer.code)) count(skippedName("email", "quota"))
    else throw answer
  }
  await bumpAll(tx, walk.fan_out_id, changes)
  return { done, ...pace }
}

/** The month's emails, or what the project may store: the walk goes on, because both may change meanwhile. */
const USED_UP: ReadonlySet<string> = new Set(["payment_required", "plan_limit_exceeded"])

function decisionsOf(tx: Tx, walk: Walk): Promise<SendDecision[]> {
  const { fan_out, caller, topic, recipients } = walk
  const { category, respect_preferences } = fan_out.intent
  const about = { key: topic.key, default: topic.default }
  const asked = recipients.map(
    ({ member }): AskedMessage => ({
      subscriber: member,
      address: member.email === null ? null : comparable(member.email),
      channel: "email",
      stream: "broadcast",
      category,
      topic: about,
      ignores_preferences: !respect_preferences,
      at: millis(),
    }),
  )
  const project = { id: fan_out.project_id, settings: caller.project_settings }
  return decideAll(tx, project, asked)
}

type Planned = MessageEntry | { skip: SkipReason }

/** A walk, and what its messages count under. */
type CountedWalk = Walk & Pick<MessageEntry, "allowance" | "share">

function plan(
  walk: CountedWalk,
  member: AudienceMember,
  decision: SendDecision | undefined,
): Planned {
  if (member.email === null) return { skip: "no_address" }
  if (!decision?.is_allowed) return { skip: skipOf(decision) }
  return entryFor(walk, member, member.email, decision)
}

const skipOf = (decision: SendDecision | undefined): SkipReason => {
  const reason = decision?.reason
  return reason === "suppressed" || reason === "frequency_cap" ? reason : "preference"
}

function entryFor(
  walk: CountedWalk,
  member: AudienceMember,
  address: string,
  decision: SendDecision,
): MessageEntry {
  const { fan_out, caller, rules, languages, at, allowance, share } = walk
  const { account_id, project_id } = fan_out
  const { category, api_key_id, email, respect_preferences } = fan_out.intent
  const { sandbox, reply_tracking } = caller.project_settings
  const shared = nameFor(languages, "email", member.locale)
  const about = { project_id, address }
  const message = newEmail({
    account_id,
    project_id,
    api_key_id,
    sandbox,
    scheduled_at: decision.deferred_until,
    fan_out_id: fan_out.id,
    subscriber_id: member.id,
    category,
    to: { email: address, name: member.name },
    cc: NO_COPIES,
    bcc: NO_COPIES,
    tags: [],
    metadata: {},
    attachments: [],
    from: email.from,
    reply_to: email.reply_to,
    replyAddress: reply_tracking ? rules.replyAddress : undefined,
    subject: walk.subjects.get(shared) ?? walk.subjects.get(member.id) ?? "",
    batch_id: null,
    idempotency_key: null,
    source: "topic",
    stream: "broadcast",
    content: {
      shared,
      subscriber: packedSubscriber(templateSubscriber(member)),
    },
    track: email.track ?? undefined,
    kind: {
      ...topicFields(fan_out.topic_key ?? "", category, about, rules.unsubscribe),
      decision: keptOf(decision),
      ...(email.template && { template: email.template }),
      ...(!respect_preferences && { ignores_preferences: true as const }),
    },
    template_id: email.template?.id ?? null,
  })
  message.created_at = at
  return { message, allowance, ...(share && { share }) }
}

/** A published mail has one recipient. */
const NO_COPIES: Mailbox[] = []

const THROTTLED_SECONDS = 1

/** The rest of the bucket is for single sends, whose callers wait for the answer. */
const SHARE_OF_BUCKET = 0.8

const bucketOf = ({ project_id, limits }: Caller): SendBucket => ({
  project_id,
  channel: "email",
  limit: limits.sends_per_second,
  share: SHARE_OF_BUCKET,
})

/**
 * How far the walk may go now: the send bucket, a throttled account, and a recipient that nothing can deliver to stop it
 * before the end.
 */
async function paced(tx: Tx, walk: Walk, planned: Planned[]): Promise<WalkStep> {
  const { caller, recipients, rules } = walk
  const counted: { at: number; message: NewMessage }[] = []
  let unreachable: number | undefined
  for (const [at, one] of planned.entries()) {
    if (!("message" in one) || one.message.sandbox) continue
    if (!isReachable(recipients[at]?.member.email ?? "", rules)) {
      unreachable = at
      break
    }
    counted.push({ at, message: one.message })
  }
  const throttled = counted.find(({ message }) => throttledRefusal(caller, message.id))
  const before = throttled ? counted.filter(({ at }) => at < throttled.at) : counted
  const refusals = await takeFromBucket(
    tx,
    bucketOf(caller),
    before.map(() => 1),
  )
  const full = before[refusals.findIndex((refusal) => refusal !== null)]
  if (full) return { done: full.at, wait_seconds: THROTTLED_SECONDS }
  if (throttled) return { done: throttled.at, wait_seconds: THROTTLED_SECONDS }
  if (unreachable === undefined) return { done: recipients.length }
  return { done: unreachable, wait_seconds: NO_PROVIDER_SECONDS, pauses: NO_PROVIDER }
}
