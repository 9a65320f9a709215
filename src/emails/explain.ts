import { and, asc, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { about, type Event } from "../events/feed"
import { apiKeys } from "../identity/tables"
import { EXPIRED } from "../messages/change"
import { isOpen } from "../messages/facts"
import { CANCELLED } from "../messages/settle"
import { asTheyStand, type MessageView } from "../messages/standing"
import { attempts } from "../messages/tables"
import type { Reader } from "../store/store"
import { statistics } from "../tracking/tracking"
import { type DeliveryStatus, deliveries } from "../webhooks/tables"
import { find } from "./emails"
import { preferenceStep, quietHoursStep } from "./explain-decision"

/** The stages of a message's way (contract 20, section 2), in their order. */
export const STAGES = [
  "auth",
  "quota",
  "sending_status",
  "sender",
  "template",
  "suppression",
  "preference",
  "quiet_hours",
  "queue",
  "reputation",
  "provider",
  "attempt",
  "outcome",
  "tracking",
  "webhooks",
] as const

export const STEP_OUTCOMES = ["pass", "wait", "fail", "none"] as const

/** What one stage did with the message. */
export interface ExplainedStep {
  at: string
  stage: (typeof STAGES)[number]
  /** A stable word for what decided. */
  rule: string
  /** `none`: the stage had nothing to do. */
  outcome: (typeof STEP_OUTCOMES)[number]
  /** For people. */
  detail: string
}

type Step = Omit<ExplainedStep, "stage">

type Attempt = typeof attempts.$inferSelect

interface DeliveredEvent {
  event_type: string
  webhook_id: string
  status: DeliveryStatus
  attempt: number
  created_at: string
}

/** Everything that is known of one email. */
export interface EmailFacts {
  message: MessageView
  key_name: string | null
  attempts: Attempt[]
  events: Event[]
  deliveries: DeliveredEvent[]
  hits: { opens: HitCount; clicks: HitCount }
}

interface HitCount {
  total: number
  human: number
  machine: number
}

const MOST_ATTEMPTS = 50
const MOST_DELIVERIES = 100

/** The whole way of one email, each stage with its reason. Throws 404 for a foreign one. */
export async function explain(db: Reader, project_id: string, id: string) {
  const [message] = await asTheyStand(db, [await find(db, project_id, id)])
  if (!message) return fail("not_found", "There is no such email.")
  const events = await about(db, project_id, id)
  return explained({
    message,
    key_name: await nameOfKey(db, project_id, message.api_key_id),
    attempts: await db
      .select()
      .from(attempts)
      .where(eq(attempts.message_id, id))
      .orderBy(asc(attempts.attempt))
      .limit(MOST_ATTEMPTS),
    events,
    deliveries: await deliveriesOf(db, project_id, events),
    hits: await statistics(db, message),
  })
}

async function nameOfKey(db: Reader, project_id: string, id: string | null) {
  if (id === null) return null
  const ours = and(eq(apiKeys.id, id), eq(apiKeys.project_id, project_id))
  const [row] = await db.select({ name: apiKeys.name }).from(apiKeys).where(ours)
  return row?.name ?? null
}

async function deliveriesOf(db: Reader, project_id: string, events: Event[]) {
  if (events.length === 0) return []
  const { event_type, webhook_id, status, attempt, created_at } = deliveries
  const ids = events.slice(-MOST_DELIVERIES).map((event) => event.id)
  const ours = and(eq(deliveries.project_id, project_id), inArray(deliveries.event_id, ids))
  return db
    .select({ event_type, webhook_id, status, attempt, created_at })
    .from(deliveries)
    .where(ours)
    .orderBy(asc(deliveries.id))
    .limit(MOST_DELIVERIES)
}

/** The explanation of what is known. Pure. */
export function explained(facts: EmailFacts) {
  const steps: Record<(typeof STAGES)[number], Step[]> = {
    auth: [authStep(facts)],
    quota: [quotaStep(facts)],
    sending_status: [atAccept(facts, "accepted", "pass", "The account could send.")],
    sender: [senderStep(facts)],
    template: [templateStep(facts)],
    suppression: suppressionSteps(facts),
    preference: [preferenceStep(facts.message)],
    quiet_hours: [quietHoursStep(facts.message)],
    queue: queueSteps(facts),
    reputation: [reputationStep(facts)],
    provider: providerSteps(facts),
    attempt: facts.attempts.map(attemptStep),
    outcome: [outcomeStep(facts)],
    tracking: [trackingStep(facts)],
    webhooks: webhookSteps(facts),
  }
  const { id, status } = facts.message
  return {
    email_id: id,
    verdict: status,
    summary: summaryOf(facts),
    steps: STAGES.flatMap((stage) =>
      steps[stage].map(({ at, ...step }) => ({ at, stage, ...step })),
    ),
  }
}

const atAccept = (
  { message }: EmailFacts,
  rule: string,
  outcome: Step["outcome"],
  detail: string,
): Step => ({ at: message.created_at, rule, outcome, detail })

function authStep(facts: EmailFacts): Step {
  const { source, api_key_id, idempotency_key } = facts.message
  const by =
    api_key_id === null ? "a person with a session" : `the API key ${facts.key_name ?? api_key_id}`
  const again = idempotency_key === null ? "" : ` Its idempotency key was ${idempotency_key}.`
  const rule = api_key_id === null ? "session" : "api_key"
  return atAccept(facts, rule, "pass", `It came over ${source} by ${by}.${again}`)
}

function quotaStep(facts: EmailFacts): Step {
  const { sandbox, recipients } = facts.message
  if (sandbox) return atAccept(facts, "sandbox", "none", "Mail from the sandbox counts nothing.")
  const units = recipients.length === 1 ? "1 recipient" : `${recipients.length} recipients`
  return atAccept(facts, "counted", "pass", `It counted ${units} of the month's quota.`)
}

function senderStep(facts: EmailFacts): Step {
  const { sender_domain, error } = facts.message
  if (error?.code === "domain_not_verified") {
    return {
      at: facts.message.updated_at,
      rule: error.code,
      outcome: lost(facts),
      detail: error.message,
    }
  }
  return atAccept(facts, "domain", "pass", `The project could send from ${sender_domain}.`)
}

/** What stopped it: it waits while it is open, else it failed. */
const lost = ({ message }: EmailFacts) => (isOpen(message.status) ? "wait" : "fail")

function templateStep(facts: EmailFacts): Step {
  const template = facts.message.envelope?.template
  if (!template) return atAccept(facts, "no_template", "none", "It was not made from a template.")
  const detail = `It was rendered from version ${template.version} of ${template.name}.`
  return atAccept(facts, "template", "pass", detail)
}

const SUPPRESSED = "suppressed_recipient"

function suppressionSteps(facts: EmailFacts): Step[] {
  const { envelope, recipients, updated_at } = facts.message
  const left_out = (envelope?.left_out ?? []).map(({ email }) =>
    atAccept(facts, "copy_left_out", "pass", `${email} is suppressed and was left out.`),
  )
  const later = recipients
    .filter(({ status_reason }) => status_reason === SUPPRESSED)
    .map(({ email }): Step => {
      const detail = `${email} was suppressed between accepting and sending.`
      return { at: updated_at, rule: SUPPRESSED, outcome: "fail", detail }
    })
  const steps = [...left_out, ...later]
  const none = "No recipient was suppressed."
  return steps.length > 0 ? steps : [atAccept(facts, "not_suppressed", "pass", none)]
}

function queueSteps(facts: EmailFacts): Step[] {
  const { message, attempts: tried } = facts
  const { scheduled_at, next_attempt_at, status, status_reason, error, updated_at } = message
  const steps: Step[] = []
  if (scheduled_at) {
    const is_waiting = tried.length === 0 && status === "queued"
    const detail = `It was scheduled for ${scheduled_at}.`
    steps.push(atAccept(facts, "scheduled", is_waiting ? "wait" : "pass", detail))
  }
  if (isOpen(status) && status_reason !== null) {
    const until = next_attempt_at === null ? "" : ` It is tried again at ${next_attempt_at}.`
    const detail = `${sentence(status_reason)}${until}`
    steps.push({ at: updated_at, rule: "deferred", outcome: "wait", detail })
  }
  if (status === "failed" && error && STOPS.has(error.code)) {
    steps.push({ at: updated_at, rule: error.code, outcome: "fail", detail: error.message })
  }
  const [first] = tried
  if (first) {
    const seconds = (Date.parse(first.started_at) - Date.parse(message.created_at)) / 1000
    const detail = `Its first attempt began ${seconds.toFixed(1)} s after it was accepted.`
    steps.push({ at: first.started_at, rule: "claimed", outcome: "pass", detail })
  }
  if (steps.length > 0) return steps
  if (status === "sending") return [{ at: updated_at, ...BEING_SENT }]
  if (!isOpen(status)) return [{ at: updated_at, ...NEVER_CLAIMED }]
  return [atAccept(facts, "queued", "wait", "It waits for its turn.")]
}

/** It was taken back, or its publish expired. Attempts that are used up have another code. */
const STOPS: ReadonlySet<string> = new Set([CANCELLED, EXPIRED])

/** The attempt stands here once it has ended. */
const BEING_SENT = {
  rule: "claimed",
  outcome: "pass",
  detail: "Its first attempt goes on.",
} as const

const NEVER_CLAIMED = {
  rule: "ended",
  outcome: "none",
  detail: "It ended before its first attempt.",
} as const

/** The words of a server often end without a period. */
const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

const HELD_BY_COMPLAINTS = "held_by_complaints"

function reputationStep(facts: EmailFacts): Step {
  const { status_reason, updated_at } = facts.message
  if (status_reason !== HELD_BY_COMPLAINTS) {
    return atAccept(facts, "not_held", "pass", "No tag or template of it is held.")
  }
  const detail =
    "A tag or the template of it had too many complaints. It waits until that is released."
  return { at: updated_at, rule: HELD_BY_COMPLAINTS, outcome: "wait", detail }
}

function providerSteps({ message, attempts: tried }: EmailFacts): Step[] {
  if (tried.length === 0) {
    const detail = "No provider was asked yet."
    return [{ at: message.created_at, rule: "not_asked", outcome: "none", detail }]
  }
  return tried.flatMap(({ provider, started_at, attempt }, place): Step[] => {
    const before = tried[place - 1]?.provider
    if (before === provider) return []
    const detail =
      before === undefined
        ? `Attempt ${attempt} went to ${provider}.`
        : `Attempt ${attempt} went to ${provider} instead of ${before}.`
    const rule = before === undefined ? "chosen" : "failover"
    return [{ at: started_at, rule, outcome: "pass", detail }]
  })
}

const ATTEMPT_OUTCOMES: Record<string, Step["outcome"]> = {
  delivered: "pass",
  sent: "pass",
  retry: "wait",
  login_refused: "wait",
}

function attemptStep(one: Attempt): Step {
  const { attempt, started_at, outcome, mx, tls, response, duration_ms } = one
  const server = mx === null ? "" : ` at ${mx}${tls === null ? "" : ` with ${tls}`}`
  const answer = response === null ? "" : ` The answer was: ${response}`
  return {
    at: started_at,
    rule: outcome,
    outcome: ATTEMPT_OUTCOMES[outcome] ?? "fail",
    detail: `Attempt ${attempt}${server} ended with ${outcome} after ${duration_ms} ms.${answer}`,
  }
}

function outcomeStep({ message }: EmailFacts): Step {
  const { status, status_reason, error, updated_at } = message
  const reason = status_reason === null ? "" : ` (${status_reason})`
  const told = error === null ? "" : ` ${error.message}`
  const outcome = isOpen(status) ? "wait" : ENDED_WELL.has(status) ? "pass" : "fail"
  return { at: updated_at, rule: status, outcome, detail: `It is ${status}${reason}.${told}` }
}

const ENDED_WELL = new Set(["sent", "delivered"])

function trackingStep(facts: EmailFacts): Step {
  const track = facts.message.envelope?.track
  const what = [track?.opens ? "openings" : [], track?.clicks ? "clicks" : []].flat()
  if (what.length === 0) return atAccept(facts, "not_tracked", "none", "Nothing of it is tracked.")
  const { opens, clicks } = facts.hits
  const counts = [
    track?.opens ? `Opened: ${countOf(opens)}.` : [],
    track?.clicks ? `Clicked: ${countOf(clicks)}.` : [],
  ].flat()
  const detail = `Its ${what.join(" and ")} are tracked. ${counts.join(" ")}`
  return atAccept(facts, "tracked", "pass", detail)
}

const countOf = ({ total, human, machine }: HitCount): string =>
  total === 0 ? "never" : `${total} in all, ${human} by people, ${machine} by machines`

function webhookSteps(facts: EmailFacts): Step[] {
  if (facts.deliveries.length === 0) {
    return [atAccept(facts, "no_webhook", "none", "No webhook asked for its events.")]
  }
  return facts.deliveries.map(({ event_type, webhook_id, status, attempt, created_at }) => ({
    at: created_at,
    rule: status,
    outcome: WEBHOOK_OUTCOMES[status],
    detail: `${event_type} to the webhook ${webhook_id}: ${status} after ${attempt} attempts.`,
  }))
}

const WEBHOOK_OUTCOMES: Record<DeliveryStatus, Step["outcome"]> = {
  pending: "wait",
  failed: "wait",
  held: "wait",
  success: "pass",
  exhausted: "fail",
}

/** One sentence on where it stands and why. */
function summaryOf({ message, attempts: tried }: EmailFacts): string {
  const { status, recipient, status_reason, next_attempt_at, scheduled_at } = message
  const last = tried.at(-1)?.response
  if (status === "sending") return `The email to ${recipient} is being sent.`
  if (isOpen(status) && tried.length === 0 && scheduled_at) {
    return `The email to ${recipient} waits for ${scheduled_at}.`
  }
  if (isOpen(status)) {
    const why = sentence(status_reason ?? "its turn")
    const until = next_attempt_at === null ? "" : ` The next attempt is at ${next_attempt_at}.`
    return `The email to ${recipient} waits: ${why}${until}`
  }
  if (ENDED_WELL.has(status))
    return `The email to ${recipient} was ${status} after ${times(tried)}.`
  const answer = last ? ` The last answer was: ${last}` : ""
  return `The email to ${recipient} ended ${status}${status_reason === null ? "" : `, because of ${status_reason}`}.${answer}`
}

const times = ({ length }: Attempt[]) => (length === 1 ? "1 attempt" : `${length} attempts`)
