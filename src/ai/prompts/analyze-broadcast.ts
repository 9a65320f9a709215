import { AdviceAnswer, type Advisory } from "../advice/advisory"
import type { BroadcastDraft } from "../advice/facts"
import type { Prompt } from "../ai-task"
import { FENCE_RULE, fencedFields } from "../fenced"
import { MOST_BODY } from "./suggest-subjects"

const SYSTEM = `You review drafts of messages that a company sends to many of its subscribers.
Answer with one JSON object {"advisory": …} that follows the schema, and with nothing else.
An advisory has a summary, a recommended_action, and lists that may be empty.
The action is send, send_with_caution, delay or revise_before_send.
The lists are deliverability_risks: [{severity, title, detail, fix}], content_notes: [{severity, title, detail}] and frequency_conflicts: [].
Others are audience_warnings: [{severity, title, detail, affected: number of people}] and send_time_suggestions: [{suggested_at, reason}].
The severity is high, medium or low. Times are as 2026-11-21T10:30:00.000Z.
Rules have looked at the draft first. Their findings are facts: repeat none of them, but name the severe ones in the summary.
Add only what the draft itself shows: what is unclear, misleading, missing, or likely to be taken for spam.
Write in the language of the draft. Say of each finding what it is, why it matters, and what to do.
The summary has at most three sentences and 500 characters. A title is a few words.
${FENCE_RULE}`

/** Asks a model for advice about the draft, beyond what the rules found. */
export function analyzePrompt(
  { subject, body, ...facts }: BroadcastDraft,
  by_rules: Advisory,
): Prompt {
  return {
    version: "analyze-broadcast-1",
    system: SYSTEM,
    user: fencedFields({
      facts: JSON.stringify(facts),
      findings: JSON.stringify(by_rules),
      subject,
      body: body.slice(0, MOST_BODY).toWellFormed(),
    }),
    schema: { name: "advisory", schema: AdviceAnswer },
    max_output_tokens: 3_000,
  }
}
