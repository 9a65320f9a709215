import { type Static, Type as t } from "@sinclair/typebox"
import { closedObject } from "../../http/field-schemas"
import type { Rewriting } from "../ai-schemas"
import type { Prompt } from "../ai-task"
import { FENCE_RULE, fencedFields } from "../fenced"
import { HANDLEBARS_RULE, styleFields } from "./draft-template"

const SYSTEM = `You rewrite one block of a template of messages that a company sends to its customers.
Answer with one JSON object {"block": {"content": …}} that follows the schema, and with nothing else.
The instruction says what to change about the content. Keep everything else, its variables and its form.
Content that is HTML stays HTML, and plain text stays plain text.
Follow the tone and the locale where the data has them. The content has at most max_length characters.
${HANDLEBARS_RULE}
${FENCE_RULE}`

export const RewrittenByModel = closedObject({ block: closedObject({ content: t.String() }) })

export const rewriteBlock = (wanted: Static<typeof Rewriting>, known: string[]): Prompt => ({
  version: "rewrite-block-1",
  system: SYSTEM,
  user: fencedFields({
    ...{ ...styleFields(wanted, known), max_length: wanted.max_length },
    ...{ type: wanted.block.type, content: wanted.block.content },
    instruction: wanted.instruction,
  }),
  schema: { name: "block", schema: RewrittenByModel },
  max_output_tokens: 4_000,
})
