import { and, asc, eq, inArray } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { about, type Event } from "../events/feed"
import type { Caller } from "../identity/caller"
import { apiKeys } from "../identity/tables"
import { EXPIRED } from "../messages/change"
import { DELETED, QUIET_HOURS, REASONS } from "../messages/decided"
import { asTheyStand, type MessageView } from "../messages/message-list"
import { CANCELLED } from "../messages/settle"
import { isOpen } from "../messages/status-changes"
import { attempts } from "../messages/tables"
import { HELD_BY_COMPLAINTS } from "../reputation/gate"
import { rowById } from "../store/rows"
import type { Reader } from "../store/store"
import type { DecisionReason } from "../subscribers/decision"
import { statistics } from "../tracking/tracking"
import { type DeliveryStatus, deliveries } from "../webhooks/tables"
import { find, textOfHtml } from "./emails"
import type { SendEmail } from "./fields"
import * as asked from "./preflight"

interface Stage {
  name: string
  /** Before the send, for a preflight (contract 20, section 1.2). */
  ask?: (inquiry: asked.Inquiry) => asked.Answer | Promise<asked.Answer>
  /** Afterwards, for an explanation (contract 20, section 2). */
  read?: (facts: EmailFacts) => ExplainedStep[]
}

/** The way of an email, stage by stage, in the order of both answers. */
const WAY: Stage[] = [
  { name: "auth", read: auth },
  { name: "quota", read: quota },
  { name: "sending_status", read: () => [["accepted", "pass", "The account could send."]] },
  { name: "sender", ask: asked.sender, read: sender },
  { name: "sender", ask: asked.account },
  { name: "domain", ask: asked.domain },
  { name: "template", read: template },
  { name: "suppression", ask: asked.suppression, read: suppression },
  { name: "suppression", ask: asked.copies },
  { name: "preference", ask: asked.preference, read: preference },
  { name: "quiet_hours", read: quietHours },
  { name: "authentication", ask: asked.authentication },
  { name: "dkim_alignment", ask: asked.dkimAlignment },
  { name: "spf_alignment", ask: asked.spfAlignment },
  { name: "dmarc", ask: asked.dmarc },
  { name: "rendering", ask: asked.rendering },
  { name: "size", ask: asked.size },
  { name: "links", ask: asked.links },
  { name: "accessibility", ask: asked.accessibility },
  { name: "spam_content", ask: asked.spamContent },
  { name: "unsubscribe_header", ask: asked.unsubscribeHeader },
  { name: "queue", read: queue },
  { name: "reputation", read: reputation },
  { name: "provider", read: provider },
  { name: "attempt", read: attempt },
  { name: "outcome", read: outcome },
  { name: "tracking", read: tracking },
  { name: "webhooks", read: webhooks },
]

/** The names of what a preflight asks, and of what an explanation tells, each once. */
export const CHECKS = [...new Set(WAY.flatMap(({ name, ask }) => (ask ? [name] : [])))]
export const STAGES = WAY.flatMap(({ name, read }) => (read ? [name] : []))

/** In the order of their weight. `fail` is what accept would refuse. */
export const CHECK_OUTCOMES = ["pass", "warn", "fail"] as const

type CheckOutcome = (typeof CHECK_OUTCOMES)[number]

/** `none`: the stage had nothing to do. */
export const STEP_OUTCOMES = ["pass", "wait", "fail", "none"] as const

type StepOutcome = (typeof STEP_OUTCOMES)[number]

/**
 * Everything that accepting this email would check, and what its receivers will make of it. Nothing
 * is sent, counted, fetched or stored. Rejects only for trouble of this machine.
 */
export async function preflight(parts: asked.PreflightParts, caller: Caller, email: SendEmail) {
  const inquiry = await asked.inquire(parts, caller, email)
  const errors: { code: string; message: string; details: Record<string, unknown> }[] = []
  const warnings: { code: string; message: string }[] = []
  const checks = new Map<string, { name: string; outcome: CheckOutcome; detail: string }>()
  for (const { name, ask } of WAY) {
    if (!ask) continue
    const answer = await asked.tried(() => ask(inquiry))
    const refusal = answer instanceof ApiError ? answer : undefined
    if (refusal) {
      const { code, message, details } = refusal
      errors.push({ code, message, details: { ...details } })
    }
    if (Array.isArray(answer)) warnings.push(...answer.map((message) => ({ code: name, message })))
    const outcome = refusal ? "fail" : Array.isArray(answer) ? "warn" : "pass"
    const before = checks.get(name)?.outcome
    if (before && CHECK_OUTCOMES.indexOf(before) >= CHECK_OUTCOMES.indexOf(outcome)) continue
    const [text, ...others] = answer instanceof ApiError ? [answer.message] : [answer].flat()
    const more = others.length > 0 ? ` ${others.length} more are in the warnings.` : ""
    checks.set(name, { name, outcome, detail: `${text}${more}` })
  }
  const { subject, html, text: own } = inquiry.email
  const text = own ?? (await textOfHtml(parts.workers, html ?? ""))
  const rendered = { subject, html, text, size_bytes: inquiry.size_bytes }
  return { ok: errors.length === 0, errors, warnings, rendered, checks: [...checks.values()] }
}

/** The whole way of one email, each stage with its reason. Throws 404 for a foreign one. */
export const explain = async (db: Reader, project_id: string, id: string) =>
  explained(await factsOf(db, project_id, id))

/** The explanation of what is known. Pure. */
export function explained(facts: EmailFacts) {
  const { id, status, created_at } = facts.message
  const steps = WAY.flatMap(({ name: stage, read = () => [] }) =>
    read(facts).map(([rule, outcome, detail, at = created_at]) => {
      return { at, stage, rule, outcome, detail }
    }),
  )
  return { email_id: id, verdict: status, summary: summaryOf(facts), steps }
}

/**
 * What one stage did: a stable word for what decided, the outcome, a text for people, and when. Without
 * a time it was when the email was accepted.
 */
type ExplainedStep = [rule: string, outcome: StepOutcome, detail: string, at?: string]

/** Everything that is known of one email. */
type EmailFacts = Awaited<ReturnType<typeof factsOf>>

const MOST_ATTEMPTS = 50
const MOST_DELIVERIES = 100

/** Throws 404 for an email of another project. */
async function factsOf(db: Reader, project_id: string, id: string) {
  const [message] = await asTheyStand(db, [await find(db, project_id, id)])
  if (!message) return fail("not_found", "There is no such email.")
  const { opens, clicks } = await statistics(db, message)
  const of_project = eq(apiKeys.project_id, project_id)
  const key = await rowById(db, apiKeys, message.api_key_id ?? "", of_project)
  const tried = db.select().from(attempts).where(eq(attempts.message_id, id))
  return {
    message,
    key_name: key?.name ?? null,
    attempts: await tried.orderBy(asc(attempts.attempt)).limit(MOST_ATTEMPTS),
    deliveries: await deliveriesOf(db, project_id, await about(db, project_id, id)),
    hits: { opens, clicks },
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

function auth({ message, key_name }: EmailFacts): ExplainedStep[] {
  const { source, api_key_id, idempotency_key } = message
  const [rule, by] =
    api_key_id === null
      ? ["session", "a person with a session"]
      : ["api_key", `the API key ${key_name ?? api_key_id}`]
  const repeated = idempotency_key === null ? "" : ` Its idempotency key was ${idempotency_key}.`
  return [[rule, "pass", `It came over ${source} by ${by}.${repeated}`]]
}

function quota({ message: { sandbox, recipients } }: EmailFacts): ExplainedStep[] {
  if (sandbox) return [["sandbox", "none", "Mail from the sandbox uses no quota."]]
  const units = recipients.length === 1 ? "1 recipient" : `${recipients.length} recipients`
  return [["counted", "pass", `It used ${units} of the month's quota.`]]
}

function sender({ message }: EmailFacts): ExplainedStep[] {
  const { sender_domain, error, status, updated_at } = message
  if (error?.code === "domain_not_verified") {
    return [[error.code, isOpen(status) ? "wait" : "fail", error.message, updated_at]]
  }
  return [["domain", "pass", `The project could send from ${sender_domain}.`]]
}

function template({ message }: EmailFacts): ExplainedStep[] {
  const used = message.envelope?.template
  if (!used) return [["no_template", "none", "It was not made from a template."]]
  return [["template", "pass", `It was rendered from version ${used.version} of ${used.name}.`]]
}

const SUPPRESSED = "suppressed_recipient"

function suppression({ message }: EmailFacts): ExplainedStep[] {
  const steps: ExplainedStep[] = []
  for (const { email } of message.envelope?.left_out ?? []) {
    steps.push(["copy_left_out", "pass", `${email} is suppressed and was left out.`])
  }
  for (const { email, status_reason } of message.recipients) {
    if (status_reason !== SUPPRESSED) continue
    const detail = `${email} was suppressed between accepting and sending.`
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

const REFUSALS = new Set(["preference", "frequency_cap", DELETED])

/** What the preferences and the frequency cap said, when it was accepted or before it left. */
function preference({ message }: EmailFacts): ExplainedStep[] {
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
    : [["category", "pass", `The category is ${category}. Its recipient can end it by one click.`]]
}

/** Whether quiet hours moved it, when it was accepted or before it left. */
function quietHours({ message }: EmailFacts): ExplainedStep[] {
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

function queue({ message, attempts: [first] }: EmailFacts): ExplainedStep[] {
  const { created_at, scheduled_at, status, status_reason, error, updated_at } = message
  const steps: ExplainedStep[] = []
  if (scheduled_at) {
    const outcome = !first && status === "queued" ? "wait" : "pass"
    steps.push(["scheduled", outcome, `It was scheduled for ${scheduled_at}.`])
  }
  if (isOpen(status) && status_reason !== null) {
    steps.push(["deferred", "wait", `${sentence(status_reason)}${againAt(message)}`, updated_at])
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

const HELD = "A tag or the template of it had too many complaints. It waits until that is released."

function reputation({ message: { status_reason, updated_at } }: EmailFacts): ExplainedStep[] {
  if (status_reason === HELD_BY_COMPLAINTS) return [[status_reason, "wait", HELD, updated_at]]
  return [["not_held", "pass", "No tag or template of it is held."]]
}

function provider({ attempts: tried }: EmailFacts): ExplainedStep[] {
  if (tried.length === 0) return [["not_asked", "none", "No provider was asked yet."]]
  return tried.flatMap(({ provider, started_at, attempt }, place): ExplainedStep[] => {
    const before = tried[place - 1]?.provider
    if (before === provider) return []
    const [rule, instead] =
      before === undefined ? ["chosen", ""] : ["failover", ` instead of ${before}`]
    return [[rule, "pass", `Attempt ${attempt} used ${provider}${instead}.`, started_at]]
  })
}

const ENDED_WELL = new Set(["sent", "delivered"])
const COMES_AGAIN = new Set(["retry", "login_refused"])

/** What a status, or the outcome of an attempt, is to a person. */
const outcomeOf = (word: string, waits: boolean): StepOutcome =>
  waits ? "wait" : ENDED_WELL.has(word) ? "pass" : "fail"

function attempt({ attempts: tried }: EmailFacts): ExplainedStep[] {
  return tried.map(({ attempt, started_at, outcome, mx, tls, response, duration_ms }) => {
    const server = mx === null ? "" : ` at ${mx}${tls === null ? "" : ` with ${tls}`}`
    const answer = response === null ? "" : ` The answer was: ${response}`
    const detail = `Attempt ${attempt}${server} ended with ${outcome} after ${duration_ms} ms.${answer}`
    return [outcome, outcomeOf(outcome, COMES_AGAIN.has(outcome)), detail, started_at]
  })
}

function outcome({ message }: EmailFacts): ExplainedStep[] {
  const { status, status_reason, error, updated_at } = message
  const reason = status_reason === null ? "" : ` (${status_reason})`
  const why = error === null ? "" : ` ${error.message}`
  const detail = `It is ${status}${reason}.${why}`
  return [[status, outcomeOf(status, isOpen(status)), detail, updated_at]]
}

function tracking({ message, hits: { opens, clicks } }: EmailFacts): ExplainedStep[] {
  const track = message.envelope?.track
  const names = [track?.opens && "openings", track?.clicks && "clicks"].filter(Boolean)
  if (names.length === 0) return [["not_tracked", "none", "Nothing of it is tracked."]]
  const opened = track?.opens ? ` Opened: ${countOf(opens)}.` : ""
  const clicked = track?.clicks ? ` Clicked: ${countOf(clicks)}.` : ""
  return [["tracked", "pass", `Its ${names.join(" and ")} are tracked.${opened}${clicked}`]]
}

const countOf = ({ total, human, machine }: EmailFacts["hits"]["opens"]): string =>
  total === 0 ? "never" : `${total} in all, ${human} by people, ${machine} by machines`

const WEBHOOK_ENDS: Partial<Record<DeliveryStatus, StepOutcome>> = {
  success: "pass",
  exhausted: "fail",
}

function webhooks({ deliveries: sent }: EmailFacts): ExplainedStep[] {
  if (sent.length === 0) return [["no_webhook", "none", "No webhook asked for its events."]]
  return sent.map(({ event_type, webhook_id, status, attempt, created_at }) => {
    const detail = `${event_type} to the webhook ${webhook_id}: ${status} after ${attempt} attempts.`
    return [status, WEBHOOK_ENDS[status] ?? "wait", detail, created_at]
  })
}

/** One sentence on where it stands and why. */
function summaryOf({ message, attempts: tried }: EmailFacts): string {
  const { status, address: recipient, status_reason, next_attempt_at, scheduled_at } = message
  const email = `The email to ${recipient}`
  if (status === "sending") return `${email} is being sent.`
  if (isOpen(status)) {
    if (tried.length === 0 && scheduled_at) return `${email} waits for ${scheduled_at}.`
    const until = next_attempt_at === null ? "" : ` The next attempt is at ${next_attempt_at}.`
    return `${email} waits: ${sentence(status_reason ?? "its turn")}${until}`
  }
  const times = tried.length === 1 ? "1 attempt" : `${tried.length} attempts`
  if (ENDED_WELL.has(status)) return `${email} was ${status} after ${times}.`
  const response = tried.at(-1)?.response
  const why = status_reason === null ? "" : `, because of ${status_reason}`
  return `${email} ended ${status}${why}.${response ? ` The last answer was: ${response}` : ""}`
}
