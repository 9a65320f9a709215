import { type Static, Type as t } from "@sinclair/typebox"
import { closedObject, ONE_LINE, oneOf, orNull } from "../../http/field-schemas"
import type { Drafting } from "../ai-schemas"
import type { Prompt } from "../ai-task"
import { FENCE_RULE, fencedFields } from "../fenced"

/** What texts of templates may hold, for the prompts that ask for such texts. */
export const HANDLEBARS_RULE = `Texts are Handlebars. They use variables as {{name}}, {{#if name}}…{{/if}} and {{#each list}}…{{/each}}.
A text that may be missing is {{default name "there"}}. There are no partials, no {{{…}}} and no other helpers.
Prefer the variables that the data names. Their values are not known to you.
HTML has inline styles, and neither scripts, nor frames, nor forms, nor attributes for events.`

const SYSTEM = `You write templates of messages that a company sends to its customers.
Answer with one JSON object {"template": {…}} that follows the schema, and with nothing else.
The brief says what the message is for. Follow the tone and the locale where the data has them.
The name is short, in lower case, with hyphens between its words.
For email give subject, html and text. For push and in_app give title and body. For sms give body.
All other texts are null. A subject or a title is one line.
List each variable that the texts use, with its type, and whether the message is useless without it.
${HANDLEBARS_RULE}
${FENCE_RULE}`

/** With something that is no space. */
export const LINE = `(?=.*\\S)${ONE_LINE}`

const text = orNull(t.String())
const texts = { subject: text, html: text, text, title: text, body: text }

const Variable = closedObject({
  key: t.String(),
  type: oneOf("string", "number", "boolean", "object", "array", "date", "url"),
  required: t.Boolean(),
  description: text,
})

export const DraftedByModel = closedObject({
  template: closedObject({ name: t.String(), ...texts, variables: t.Array(Variable) }),
})

/** The data that every request for a text of a template has. */
export const styleFields = (
  { channel, tone, locale }: Omit<Static<typeof Drafting>, "brief">,
  known: string[],
) => ({ channel, tone, locale, variables: known.join("\n") })

export const draftTemplate = (wanted: Static<typeof Drafting>, known: string[]): Prompt => ({
  version: "draft-template-1",
  system: SYSTEM,
  user: fencedFields({ ...styleFields(wanted, known), brief: wanted.brief }),
  schema: { name: "template", schema: DraftedByModel },
  max_output_tokens: 8_000,
})
