import { ApiError } from "../core/errors"
import type { Caller } from "../identity/caller"
import type { Reader } from "../store/store"
import * as told from "./explain"
import type { SendEmail } from "./fields"
import * as asked from "./preflight"
import { textOfHtml } from "./text-of-html"

interface Stage {
  name: string
  /** Before the send, for a preflight (contract 20, section 1.2). */
  ask?: (inquiry: asked.Inquiry) => asked.Answer | Promise<asked.Answer>
  /** Afterwards, for an explanation (contract 20, section 2). */
  read?: (facts: told.EmailFacts) => told.ExplainedStep[]
}

/** The way of an email, stage by stage, in the order of both answers. */
const WAY = [
  { name: "auth", read: told.auth },
  { name: "quota", read: told.quota },
  { name: "sending_status", read: () => [["accepted", "pass", "The account could send."]] },
  { name: "sender", ask: asked.sender, read: told.sender },
  { name: "sender", ask: asked.account },
  { name: "domain", ask: asked.domain },
  { name: "template", read: told.template },
  { name: "suppression", ask: asked.suppression, read: told.suppression },
  { name: "suppression", ask: asked.copies },
  { name: "preference", ask: asked.preference, read: told.preference },
  { name: "quiet_hours", read: told.quietHours },
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
  { name: "queue", read: told.queue },
  { name: "reputation", read: told.reputation },
  { name: "provider", read: told.provider },
  { name: "attempt", read: told.attempt },
  { name: "outcome", read: told.outcome },
  { name: "tracking", read: told.tracking },
  { name: "webhooks", read: told.webhooks },
] as const satisfies Stage[]

type Row = (typeof WAY)[number]
type Query = Extract<Row, { ask: unknown }>
type Told = Extract<Row, { read: unknown }>

const ASKED = WAY.filter((stage): stage is Query => "ask" in stage)
const TOLD = WAY.filter((stage): stage is Told => "read" in stage)

/** The names of what a preflight asks, and of what an explanation tells, each once. */
export const CHECKS = [...new Set(ASKED.map(({ name }) => name))]
export const STAGES = TOLD.map(({ name }) => name)

export const CHECK_OUTCOMES = ["pass", "warn", "fail"] as const
export const STEP_OUTCOMES = ["pass", "wait", "fail", "none"] as const satisfies told.StepOutcome[]

const SEVERITY = { pass: 0, warn: 1, fail: 2 }

interface Check {
  name: Query["name"]
  /** `fail` is what accept would refuse. */
  outcome: (typeof CHECK_OUTCOMES)[number]
  detail: string
}

/**
 * Everything that accepting this email would check, and what its receivers will make of it. Nothing
 * is sent, counted, fetched or stored. Rejects only for trouble of this machine.
 */
export async function preflight(parts: asked.PreflightParts, caller: Caller, email: SendEmail) {
  const inquiry = await asked.inquire(parts, caller, email)
  const errors: { code: string; message: string; details: Record<string, unknown> }[] = []
  const warnings: { code: Check["name"]; message: string }[] = []
  const checks = new Map<string, Check>()
  for (const { name, ask } of ASKED) {
    const answer = await asked.tried(() => ask(inquiry))
    const outcome = answer instanceof ApiError ? "fail" : Array.isArray(answer) ? "warn" : "pass"
    const texts = answer instanceof ApiError ? [answer.message] : [answer].flat()
    if (answer instanceof ApiError) {
      const { code, message, details } = answer
      errors.push({ code, message, details: { ...details } })
    }
    if (outcome === "warn") warnings.push(...texts.map((message) => ({ code: name, message })))
    const before = checks.get(name)
    if (before && SEVERITY[before.outcome] >= SEVERITY[outcome]) continue
    const more = texts.length > 1 ? ` ${texts.length - 1} more are in the warnings.` : ""
    checks.set(name, { name, outcome, detail: `${texts[0]}${more}` })
  }
  const { subject, html, text: own } = inquiry.email
  const text = own ?? (await textOfHtml(parts.workers, html ?? ""))
  const rendered = { subject, html, text, size_bytes: inquiry.size_bytes }
  return { ok: errors.length === 0, errors, warnings, rendered, checks: [...checks.values()] }
}

/** The whole way of one email, each stage with its reason. Throws 404 for a foreign one. */
export const explain = async (db: Reader, project_id: string, id: string) =>
  explained(await told.factsOf(db, project_id, id))

/** The explanation of what is known. Pure. */
export function explained(facts: told.EmailFacts) {
  const { id, status, created_at } = facts.message
  const steps = TOLD.flatMap(({ name: stage, read }) =>
    read(facts).map(([rule, outcome, detail, at = created_at]) => {
      return { at, stage, rule, outcome, detail }
    }),
  )
  return { email_id: id, verdict: status, summary: told.summaryOf(facts), steps }
}
