import { DELETED, QUIET_HOURS, REASONS } from "../messages/decided"
import { isOpen } from "../messages/facts"
import type { MessageView } from "../messages/standing"
import type { DecisionReason } from "../subscribers/decision"

interface DecisionStep {
  at: string
  /** A stable word for what decided. */
  rule: string
  outcome: "pass" | "wait" | "fail" | "none"
  /** For people. */
  detail: string
}

/** The rows that let a message go out, each with a stable word and what it says to people. */
const ROWS: Record<number, [rule: string, detail: string]> = {
  4: ["critical", "The message is critical, so preferences do not count."],
  7: ["preference", "The subscriber chose to get such messages."],
  8: ["default", "The defaults of the project allow it."],
  9: ["allowed", "Nobody chose anything against it."],
  11: ["allowed", "Nobody chose anything against it."],
}

/** Row 4 lets a message out that is critical, and one whose publish did not ask for preferences. */
const UNASKED: [rule: string, detail: string] = [
  "preferences_ignored",
  "The publish has `respect_preferences` false, so preferences do not count.",
]

const rowOf = (envelope: MessageView["envelope"]) =>
  envelope?.decision?.row === 4 && envelope.ignores_preferences
    ? UNASKED
    : ROWS[envelope?.decision?.row ?? 0]

const REFUSALS = new Set(["preference", "frequency_cap", DELETED])

/** What the preferences and the frequency cap said, when it was accepted or before it left. */
export function preferenceStep(message: MessageView): DecisionStep {
  const { envelope, status_reason, error, created_at, updated_at } = message
  const { category, decision } = envelope ?? {}
  const rule_against = decision?.reason
  if (decision && rule_against && rule_against !== QUIET_HOURS) {
    const rule = rule_against
    const why = REASONS[rule as DecisionReason]
    const detail = rule === DELETED ? why : `${why} That is row ${decision.row} of the decision.`
    return { at: created_at, rule, outcome: "fail", detail }
  }
  if (status_reason !== null && REFUSALS.has(status_reason)) {
    const why = error?.message ?? REASONS.preference
    const detail = `${why} That was found between accepting and sending.`
    return { at: updated_at, rule: status_reason, outcome: "fail", detail }
  }
  const [rule, text] = rowOf(message.envelope) ?? []
  if (decision && rule !== undefined) {
    const about = category === undefined ? "" : ` The category is ${category}.`
    const detail = `${text} That is row ${decision.row} of the decision.${about}`
    return { at: created_at, rule, outcome: "pass", detail }
  }
  if (category === undefined) {
    const detail = "It names neither a subscriber nor a category."
    return { at: created_at, rule: "no_category", outcome: "none", detail }
  }
  const detail = `The category is ${category}. Its recipient can end it by one click.`
  return { at: created_at, rule: "category", outcome: "pass", detail }
}

/** Whether quiet hours moved it, when it was accepted or before it left. */
export function quietHoursStep(message: MessageView): DecisionStep {
  const { envelope, status, status_reason, next_attempt_at, created_at, updated_at } = message
  if (status_reason === QUIET_HOURS && isOpen(status)) {
    const until = next_attempt_at === null ? "" : ` It is tried again at ${next_attempt_at}.`
    const detail = `${REASONS.quiet_hours}${until}`
    return { at: updated_at, rule: QUIET_HOURS, outcome: "wait", detail }
  }
  const until = envelope?.decision?.deferred_until
  if (!until) {
    const detail = "No quiet hours moved it."
    return { at: created_at, rule: "no_quiet_hours", outcome: "none", detail }
  }
  const detail = `Quiet hours moved it to their end at ${until}.`
  const outcome = isOpen(status) ? "wait" : "pass"
  return { at: created_at, rule: QUIET_HOURS, outcome, detail }
}
