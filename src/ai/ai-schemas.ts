import { type TProperties, Type as t } from "@sinclair/typebox"
import { localeText, oneOf, optionalText, orNull } from "../http/field-schemas"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { anything, count, flag, maybe, rarely, text, time, word } from "../lib/record-fields"
import { VariableRecord } from "../templates/schemas"
import { AI_ACTIONS, AI_TIERS } from "./actions"
import { AdvisorySchema } from "./advice/advisory"

const channel = oneOf(...AUDIENCE_CHANNELS)
export const project_id = t.String({ description: "The project of the caller." })
/** An answer with a name of its own in the OpenAPI document. */
export const titled = <Fields extends TProperties>(title: string, fields: Fields) =>
  t.Object(fields, { title })
const said = (maxLength: number) => t.String({ minLength: 1, maxLength, pattern: "\\S" })

const style = {
  tone: t.Optional(oneOf("neutral", "friendly", "formal", "urgent")),
  locale: t.Optional(localeText()),
  variables: t.Optional(t.Array(t.String({ minLength: 1, maxLength: 100 }), { maxItems: 200 })),
}

export const Suggesting = t.Object({ channel, project_id, template_body: said(262_144) })

export const Drafting = t.Object({ channel, project_id, brief: said(4000), ...style })

const BLOCK_TYPES = ["heading", "paragraph", "button", "list", "html"] as const

export const Rewriting = t.Object({
  ...{ channel, project_id, instruction: said(1000), ...style },
  block: t.Object({
    id: optionalText({ maxLength: 100 }),
    type: oneOf(...BLOCK_TYPES),
    content: said(262_144),
  }),
  max_length: t.Optional(t.Integer({ minimum: 1, maximum: 262_144 })),
})

export const Generating = t.Object({ project_id, description: said(4000) })

export const Analyzing = t.Object({
  project_id,
  draft: t.Object({
    channel,
    subject: t.Optional(orNull(t.String({ maxLength: 998 }))),
    body: t.String(),
    topic_key: t.Optional(orNull(t.String({ maxLength: 64 }))),
    audience_size_estimate: t.Optional(orNull(t.Integer({ minimum: 0, maximum: 1e9 }))),
  }),
})

const metadata = titled("AiMetadata", {
  action: word(AI_ACTIONS),
  source: word(["model", "rules"]),
  degraded: flag(false, "True where no model answered, so that the answer is by rules alone."),
  model: maybe(text("llama3.3")),
  tier: word(AI_TIERS),
  prompt_version: text("1"),
  ...{ input_tokens: count(812), output_tokens: count(240), latency_ms: count(2140) },
  cost_usd: t.Number({ examples: [0.0061] }),
  quota: t.Object({ used: count(3), limit: count(25, "-1 is unlimited."), resets_at: time() }),
})

const variables = titled("AiVariables", {
  detected: t.Array(text("order.total")),
  corrected: t.Array(t.Object({ from: text("order.totl"), to: text("order.total") })),
  unknown: t.Array(text("coupon")),
})

/** Stands beside `data`. */
export const FoundVariables = t.Object({ variables })

const suggestion = t.Object({
  rank: t.Integer({ minimum: 1, maximum: 5, examples: [1] }),
  subject: text("Your order is on its way"),
  predicted_open_rate: t.Number({ minimum: 0, maximum: 1, examples: [0.41] }),
  rationale: text("It says what the mail is about."),
  length: count(24, "Characters of the subject."),
  warnings: t.Array(text("It has a word that spam filters look for.")),
})

export const Suggestions = titled("AiSuggestions", { suggestions: t.Array(suggestion), metadata })

const template = t.Object({
  ...{ name: text("order-shipped"), channel: word(AUDIENCE_CHANNELS) },
  ...{ subject: maybe(text("Your order is on its way")), html: maybe(text("<p>Hello.</p>")) },
  ...{ text: maybe(text("Hello.")), title: rarely(text("On its way")) },
  body: rarely(text("Your order is on its way.")),
  variables: t.Array(VariableRecord),
})

export const Drafted = titled("AiTemplate", { template, metadata })

const content = text("It is on its way.")
const block = t.Object({ id: rarely(text("intro")), type: word(BLOCK_TYPES), content })

export const Rewritten = titled("AiBlock", { block, metadata })

const config = { subject: "Welcome", text: "Good to see you." }
const hello = { step_key: "hello", name: "Hello", type: "email", config, position: 0 }
const written = { key: "welcome", name: "Welcome", steps: [hello] }
const workflow = anything(written, "The body of a workflow.")

export const Generated = titled("AiWorkflow", { workflow, metadata })

export const Analysis = titled("AiAnalysis", { advisory: AdvisorySchema, metadata })
