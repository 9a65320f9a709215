import { ApiError } from "../core/errors"
import type { Caller } from "../identity/caller"
import {
  COMMON,
  type ExplainedStage,
  type ExplainedStep,
  explanationOf,
  factsOf,
  type MessageFacts,
  namesOf,
} from "../messages/explanation"
import { isOpen } from "../messages/status-changes"
import { HELD_BY_COMPLAINTS } from "../reputation/gate"
import type { Reader } from "../store/store"
import { statistics } from "../tracking/tracking"
import { find, textOfHtml } from "./emails"
import type { SendEmail } from "./fields"
import * as asked from "./preflight"

interface Stage extends ExplainedStage<EmailFacts> {
  /** Before the send, for a preflight (contract 20, section 1.2). */
  ask?: (inquiry: asked.Inquiry) => asked.Answer | Promise<asked.Answer>
}

/** The way of an email, stage by stage, in the order of both answers. */
const WAY: Stage[] = [
  { name: "auth", read: COMMON.auth },
  { name: "source", read: COMMON.source },
  { name: "quota", read: COMMON.quota },
  { name: "sending_status", read: COMMON.sendingStatus },
  { name: "sender", ask: asked.sender, read: sender },
  { name: "sender", ask: asked.account },
  { name: "domain", ask: asked.domain },
  { name: "template", read: COMMON.template },
  { name: "suppression", ask: asked.suppression, read: COMMON.suppression },
  { name: "suppression", ask: asked.copies },
  { name: "preference", ask: asked.preference, read: COMMON.preference },
  { name: "quiet_hours", read: COMMON.quietHours },
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
  { name: "queue", read: COMMON.queue },
  { name: "reputation", read: reputation },
  { name: "provider", read: COMMON.provider },
  { name: "attempt", read: COMMON.attempt },
  { name: "outcome", read: COMMON.outcome },
  { name: "tracking", read: tracking },
  { name: "webhooks", read: COMMON.webhooks },
]

/** The names of what a preflight asks, and of what an explanation tells, each once. */
export const CHECKS = [...new Set(WAY.flatMap(({ name, ask }) => (ask ? [name] : [])))]
export const STAGES = namesOf(WAY)

/** In the order of their weight. `fail` is what accept would refuse. */
export const CHECK_OUTCOMES = ["pass", "warn", "fail"] as const

type CheckOutcome = (typeof CHECK_OUTCOMES)[number]

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
export async function explain(db: Reader, project_id: string, id: string) {
  const facts = await factsOf(db, await find(db, project_id, id))
  const { opens, clicks } = await statistics(db, facts.message)
  return explained({ ...facts, hits: { opens, clicks } })
}

/** The explanation of what is known. Pure. */
export const explained = (facts: EmailFacts) => ({
  email_id: facts.message.id,
  ...explanationOf(facts, "email", WAY),
})

interface EmailFacts extends MessageFacts {
  hits: Pick<Awaited<ReturnType<typeof statistics>>, "opens" | "clicks">
}

function sender({ message }: EmailFacts): ExplainedStep[] {
  const { sender_domain, error, status, updated_at } = message
  if (error?.code === "domain_not_verified") {
    return [[error.code, isOpen(status) ? "wait" : "fail", error.message, updated_at]]
  }
  return [["domain", "pass", `The project could send from ${sender_domain}.`]]
}

const HELD = "A tag or the template of it had too many complaints. It waits until that is released."

function reputation({ message: { status_reason, updated_at } }: EmailFacts): ExplainedStep[] {
  if (status_reason === HELD_BY_COMPLAINTS) return [[status_reason, "wait", HELD, updated_at]]
  return [["not_held", "pass", "No tag or template of it is held."]]
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
