import { Type as t } from "@sinclair/typebox"
import { closedObject } from "../../http/field-schemas"
import type { Prompt } from "../ai-task"
import { FENCE_RULE, fencedFields } from "../fenced"
import { LINE } from "./draft-template"

const SYSTEM = `You write subject lines for messages that a company sends to its customers.
Answer with one JSON object {"suggestions": […]} that follows the schema, and with nothing else.
Give exactly 5 suggestions that differ in their idea, in the language of the message.
For push and in_app a subject is a title. For sms it is the beginning of the text.
A subject is one line of plain text that keeps what the message promises, with at most 60 characters.
It may use a variable as {{name}}, and only a variable that the data names.
predicted_open_rate is a number from 0 to 1. The rationale is one sentence.
The warnings name what could make people or spam filters distrust the subject. Often there are none.
${FENCE_RULE}`

const Suggestion = closedObject({
  subject: t.String({ maxLength: 255, pattern: LINE }),
  predicted_open_rate: t.Number({ minimum: 0, maximum: 1 }),
  rationale: t.String(),
  warnings: t.Array(t.String()),
})

export const SuggestedSubjects = closedObject({ suggestions: t.Array(Suggestion) })

/** Enough to know what a message says. What lies behind costs more than it tells. */
export const MOST_BODY = 20_000

export const suggestSubjects = (channel: string, message: string, variables: string[]): Prompt => ({
  version: "suggest-subjects-1",
  system: SYSTEM,
  user: fencedFields({
    ...{ channel, variables: variables.join("\n") },
    message: message.slice(0, MOST_BODY).toWellFormed(),
  }),
  schema: { name: "suggestions", schema: SuggestedSubjects },
  max_output_tokens: 1_500,
})
