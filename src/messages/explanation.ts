import { Type as t } from "@sinclair/typebox"
import { and, asc, eq, inArray } from "drizzle-orm"
import { about, type Event } from "../events/feed"
import { apiKeys } from "../identity/tables"
import { text as sample, time, word } from "../lib/record-fields"
import { kindOf } from "../providers/provider"
import { refusalFor, waitingReason } from "../providers/routing"
import { rowById } from "../store/rows"
import type { Reader } from "../store/store"
import type { DecisionReason } from "../subscribers/decision"
import { type DeliveryStatus, deliveries } from "../webhooks/tables"
import { EXPIRED } from "./change"
import { DELETED, QUIET_HOURS, REASONS } from "./decided"
import { serviceOf } from "./message-envelope"
import { asTheyStand, type MessageView } from "./message-list"
import { CANCELLED } from "./settle"
import { isOpen, type Message, unitOf } from "./status-changes"
import { attempts } from "./tables"

/** `none`: the stage had nothing to do. */
export const STEP_OUTCOMES = ["pass", "wait", "fail", "none"] as const

type StepOutcome = (typeof STEP_OUTCOMES)[number]

/**
 * What one stage did: a stable word for what decided, the outcome, a text for people, and when. Without
 * a time it was when the message was accepted.
 */
export type ExplainedStep = [rule: string, outcome: StepOutcome, detail: string, at?: string]

/** One stage of the way of a message, and what it tells of one (contract 20, section 2). */
export interface ExplainedStage<Facts = MessageFacts> {
  name: string
  read?: ((facts: Facts) => ExplainedStep[]) | undefined
}

export const namesOf = <Facts>(stages: ExplainedStage<Facts>[]): string[] =>
  stages.flatMap(({ name, read }) => (read ? [name] : []))

/** The fields of an explanation, beside the id. `summary` is an example. */
export const explanationFields = (statuses: string[], stages: string[], summary: string) => ({
  verdict: word(statuses),
  summary: sample(summary),
  steps: t.Array(
    t.Object({
      at: time(),
      stage: word(stages),
      rule: sample("counted"),
      outcome: word(STEP_OUTCOMES, "`none` means that the stage had nothing to do."),
      detail: sample("It used 1 recipient of the month's quota."),
    }),
    { description: "In the order of the stages." },
  ),
})

/** The explanation of what is known of a message, which people call by this noun. Pure. */
export function explanationOf<Facts extends MessageFacts>(
  facts: Facts,
  noun: string,
  stages: ExplainedStage<Facts>[],
) {
  const { status, created_at } = facts.message
  const steps = stages.flatMap(({ name: stage, read = () => [] }) =>
    read(facts).map(([rule, outcome, detail, at = created_at]) => {
      return { at, stage, rule, outcome, detail }
    }),
  )
  return { verdict: status, summary: summaryOf(facts, noun), steps }
}

/** Everything that is known of one message. */
export interface MessageFacts {
  message: MessageView
  key_name: string | null
  attempts: (typeof attempts.$inferSelect)[]
  deliveries: Awaited<ReturnType<typeof deliveriesOf>>
  /** Why it waits for a provider. */
  refusal?: string | undefined
}

const MOST_ATTEMPTS = 50
const MOST_DELIVERIES = 100

export async function factsOf(db: Reader, row: Message): Promise<MessageFacts> {
  const { id, project_id, channel, api_key_id } = row
  const [message] = await asTheyStand(db, [row])
  if (!message) throw new Error("a message has no view")
  const of_project = eq(apiKeys.project_id, project_id)
  const key = await rowById(db, apiKeys, api_key_id ?? "", of_project)
  const tried = db.select().from(attempts).where(eq(attempts.message_id, id))
  const refusal =
    isOpen(row.status) && !row.sandbox
      ? await refusalFor(db, kindOf(channel), project_id, serviceOf(row))
      : undefined
  return {
    message,
    key_name: key?.name ?? null,
    attempts: await tried.orderBy(asc(attempts.attempt)).limit(MOST_ATTEMPTS),
    deliveries: await deliveriesOf(db, project_id, await about(db, project_id, id)),
    refusal: refusal && waitingReason(refusal),
  }
}

async function deliveriesOf(db: Reader, project_id: string, events: Event[]) {
  if (events.length === 0) return []
  const { event_type, webhook_id, status, attempt, created_at } = deliveries
  const ids = events.slice(-MOST_DELIVERIES).map((event) => event.id)
  return db
    .select({ event_type, webhook_id, status, attempt, created_at })
    .from(deliveries)
    .where(and(eq(deliveries.project_id, project_id), inArray(deliveries.event_id, ids)))
    .orderBy(asc(deliveries.id))
    .limit(MOST_DELIVERIES)
}

function auth({ message, key_name }: MessageFacts): ExplainedStep[] {
  const { source, api_key_id, idempotency_key } = message
  const [rule, by] =
    api_key_id === null
      ? ["session", "a person with a session"]
      : ["api_key", `the API key ${key_name ?? api_key_id}`]
  const repeated = idempotency_key === null ? "" : ` Its idempotency key was ${idempotency_key}.`
  return [[rule, "pass", `It came over ${source} by ${by}.${repeated}`]]
}

function source({ message: { fan_out_id, envelope } }: MessageFacts): ExplainedStep[] {
  if (fan_out_id === null) return [["single", "none", "It is no part of a publish."]]
  const topic = envelope?.topic === undefined ? "" : ` to the topic ${envelope.topic}`
  return [["publish", "pass", `It is one message of the publish ${fan_out_id}${topic}.`]]
}

function quota({ message }: MessageFacts): ExplainedStep[] {
  const { sandbox, channel, units, recipients } = message
  if (sandbox) return [["sandbox", "none", "Messages from the sandbox use no quota."]]
  const [count, unit] = [units ?? recipients.length, unitOf(channel)]
  return [
    ["counted", "pass", `It used ${count} ${unit}${count === 1 ? "" : "s"} of the month's quota.`],
  ]
}

function template({ message }: MessageFacts): ExplainedStep[] {
  const used = message.envelope?.template
  if (!used) return [["no_template", "none", "It was not made from a template."]]
  return [["template", "pass", `It was rendered from version ${used.version} of ${used.name}.`]]
}

const SUPPRESSED = "suppressed_recipient"

function suppression({ message }: MessageFacts): ExplainedStep[] {
  const steps: ExplainedStep[] = []
  for (const { email: address } of message.envelope?.left_out ?? []) {
    steps.push(["copy_left_out", "pass", `${address} is suppressed and was left out.`])
  }
  for (const { email: address, status_reason } of message.recipients) {
    if (status_reason !== SUPPRESSED) continue
    const detail = `${address} was suppressed between accepting and sending.`
    steps.push([SUPPRESSED, "fail", detail, message.updated_at])
  }
  return steps.length > 0 ? steps : [["not_suppressed", "pass", "No recipient was suppressed."]]
}

/** The rows of the decision that let a message go out, each with a stable word and what it says to people. */
const ALLOWING: Record<number, [rule: string, detail: string]> = {
  4: ["critical", "The message is critical, so Belfry does not ask the preferences."],
  7: ["preference", "The subscriber chose to get such messages."],
  8: ["default", "The defaults of the project allow it."],
  9: ["allowed", "Nobody chose anything against it."],
  11: ["allowed", "Nobody chose anything against it."],
}

/** Row 4 lets out a message that is critical, and one whose publish did not ask for preferences. */
const UNASKED: [rule: string, detail: string] = [
  "preferences_ignored",
  "The publish has `respect_preferences` false, so Belfry does not ask the preferences.",
]

const BY_CLICK = " Its recipient can end it by one click."

const REFUSALS = new Set(["preference", "frequency_cap", DELETED])

/** What the preferences and the frequency cap said, when it was accepted or before it left. */
function preference({ message }: MessageFacts): ExplainedStep[] {
  const { envelope, status_reason, error, updated_at } = message
  const { category, decision, ignores_preferences } = envelope ?? {}
  const row = decision?.row ?? 0
  const by_row = ` That is row ${row} of the decision.`
  const against = decision?.reason
  if (against && against !== QUIET_HOURS) {
    const why = REASONS[against as DecisionReason]
    return [[against, "fail", against === DELETED ? why : `${why}${by_row}`]]
  }
  if (status_reason !== null && REFUSALS.has(status_reason)) {
    const why = error?.message ?? REASONS.preference
    const detail = `${why} That was found between accepting and sending.`
    return [[status_reason, "fail", detail, updated_at]]
  }
  const allowing = row === 4 && ignores_preferences ? UNASKED : ALLOWING[row]
  if (allowing) {
    const named = category === undefined ? "" : ` The category is ${category}.`
    return [[allowing[0], "pass", `${allowing[1]}${by_row}${named}`]]
  }
  return category === undefined
    ? [["no_category", "none", "It names neither a subscriber nor a category."]]
    : [["category", "pass", `The category is ${category}.${envelope?.unsubscribe ? BY_CLICK : ""}`]]
}

/** Whether quiet hours moved it, when it was accepted or before it left. */
function quietHours({ message }: MessageFacts): ExplainedStep[] {
  const { envelope, status, status_reason, updated_at } = message
  if (status_reason === QUIET_HOURS && isOpen(status)) {
    return [[QUIET_HOURS, "wait", `${REASONS.quiet_hours}${againAt(message)}`, updated_at]]
  }
  const until = envelope?.decision?.deferred_until
  if (!until) return [["no_quiet_hours", "none", "No quiet hours moved it."]]
  const outcome = isOpen(status) ? "wait" : "pass"
  return [[QUIET_HOURS, outcome, `Quiet hours moved it to their end at ${until}.`]]
}

const againAt = ({ next_attempt_at }: MessageView): string =>
  next_attempt_at === null ? "" : ` It is tried again at ${next_attempt_at}.`

/** It was taken back, or its publish expired. Attempts that are used up have another code. */
const STOPS: ReadonlySet<string> = new Set([CANCELLED, EXPIRED])

function queue({ message, attempts: [first] }: MessageFacts): ExplainedStep[] {
  const { created_at, scheduled_at, status, status_reason, error, updated_at } = message
  const steps: ExplainedStep[] = []
  if (scheduled_at) {
    const outcome = !first && status === "queued" ? "wait" : "pass"
    steps.push(["scheduled", outcome, `It was scheduled for ${scheduled_at}.`])
  }
  if (isOpen(status) && status_reason !== null) {
    steps.push(["deferred", "wait", `${sentence(status_reason)}${againAt(message)}`, updated_at])
  }
  if (status === CANCELLED) {
    steps.push([CANCELLED, "fail", "It was cancelled before it was sent.", updated_at])
  }
  if (status === "failed" && error && STOPS.has(error.code)) {
    steps.push([error.code, "fail", error.message, updated_at])
  }
  if (first) {
    const seconds = (Date.parse(first.started_at) - Date.parse(created_at)) / 1000
    const detail = `Its first attempt began ${seconds.toFixed(1)} s after it was accepted.`
    steps.push(["claimed", "pass", detail, first.started_at])
  }
  if (steps.length > 0) return steps
  if (status === "sending")
    return [["claimed", "pass", "Its first attempt is running.", updated_at]]
  if (!isOpen(status)) return [["ended", "none", "It ended before its first attempt.", updated_at]]
  return [["queued", "wait", "It waits for its turn."]]
}

/** The words of a server often end without a period. */
const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

function provider({ message, attempts: tried, refusal }: MessageFacts): ExplainedStep[] {
  const steps = tried.flatMap((one, place) => providersOf(one, tried[place - 1]?.provider))
  if (refusal) steps.push(["waits", "wait", refusal, message.updated_at])
  if (steps.length > 0) return steps
  return [["not_asked", "none", "No provider was asked yet."]]
}

/** How the transcript of an attempt begins a line about the next provider (`providers/failover.ts`). */
const NEXT = "* trying the next provider: "

function providersOf(
  { provider, started_at, attempt, transcript }: MessageFacts["attempts"][number],
  before: string | undefined,
): ExplainedStep[] {
  const next = transcript.filter((line) => line.startsWith(NEXT))
  const names = next.map((line) => line.slice(NEXT.length)).join(", then ")
  if (names !== "") {
    const detail = `Attempt ${attempt} tried ${names}, because the provider before could not take it.`
    return [["failover", "pass", detail, started_at]]
  }
  if (before === provider) return []
  const [rule, instead] =
    before === undefined ? ["chosen", ""] : ["failover", ` instead of ${before}`]
  return [[rule, "pass", `Attempt ${attempt} used ${provider}${instead}.`, started_at]]
}

const ENDED_WELL = new Set(["sent", "delivered"])
const COMES_AGAIN = new Set(["retry", "login_refused"])

/** What a status, or the outcome of an attempt, is to a person. */
const outcomeOf = (word: string, waits: boolean): StepOutcome =>
  waits ? "wait" : ENDED_WELL.has(word) ? "pass" : "fail"

function attempt({ attempts: tried }: MessageFacts): ExplainedStep[] {
  return tried.map(({ attempt, started_at, outcome, mx, tls, response, duration_ms }) => {
    const server = mx === null ? "" : ` at ${mx}${tls === null ? "" : ` with ${tls}`}`
    const answer = response === null ? "" : ` The answer was: ${response}`
    const detail = `Attempt ${attempt}${server} ended with ${outcome} after ${duration_ms} ms.${answer}`
    return [outcome, outcomeOf(outcome, COMES_AGAIN.has(outcome)), detail, started_at]
  })
}

function outcome({ message }: MessageFacts): ExplainedStep[] {
  const { status, status_reason, error, updated_at } = message
  const reason = status_reason ? ` (${status_reason})` : ""
  const why = error?.message && error.message !== status_reason ? ` ${error.message}` : ""
  const detail = `It is ${status}${reason}.${why}`
  return [[status, outcomeOf(status, isOpen(status)), detail, updated_at]]
}

const WEBHOOK_ENDS: Partial<Record<DeliveryStatus, StepOutcome>> = {
  success: "pass",
  exhausted: "fail",
}

function webhooks({ deliveries: sent }: MessageFacts): ExplainedStep[] {
  if (sent.length === 0) return [["no_webhook", "none", "No webhook asked for its events."]]
  return sent.map(({ event_type, webhook_id, status, attempt, created_at }) => {
    const detail = `${event_type} to the webhook ${webhook_id}: ${status} after ${attempt} attempts.`
    return [status, WEBHOOK_ENDS[status] ?? "wait", detail, created_at]
  })
}

/** One sentence on where it stands and why. */
function summaryOf({ message, attempts: tried }: MessageFacts, noun: string): string {
  const { status, address: recipient, status_reason, next_attempt_at, scheduled_at } = message
  const it = `The ${noun} to ${recipient}`
  if (status === "sending") return `${it} is being sent.`
  if (isOpen(status)) {
    if (tried.length === 0 && scheduled_at) return `${it} waits for ${scheduled_at}.`
    const until = next_attempt_at === null ? "" : ` The next attempt is at ${next_attempt_at}.`
    return `${it} waits: ${sentence(status_reason ?? "its turn")}${until}`
  }
  const times = tried.length === 1 ? "1 attempt" : `${tried.length} attempts`
  const how = status_reason ? ` (${status_reason})` : ""
  if (ENDED_WELL.has(status)) return `${it} was ${status}${how} after ${times}.`
  const response = tried.at(-1)?.response
  const why = status_reason ? `, because of ${status_reason.replace(/\.$/, "")}` : ""
  return `${it} ended ${status}${why}.${response ? ` The last answer was: ${response}` : ""}`
}

/** What every channel tells of its messages, by the names of the stages. */
export const COMMON = {
  ...{ auth, source, quota, template, suppression, preference, quietHours, queue },
  ...{ provider, attempt, outcome, webhooks },
  sendingStatus: (): ExplainedStep[] => [["accepted", "pass", "The account could send."]],
}
