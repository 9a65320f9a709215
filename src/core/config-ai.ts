import { objectIn } from "../lib/text"
import { key, kind, oneOf, optional, text, webUrl, whole } from "./config-kinds"

/** How strong a model an action needs. The operator names a model for each. */
export const AI_TIERS = ["fast", "standard", "deep"] as const
export type AiTier = (typeof AI_TIERS)[number]

/** US dollars for a million tokens. */
export interface TokenPrice {
  input: number
  output: number
}

const isPrice = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= MOST_DOLLARS
const MOST_DOLLARS = 1_000_000

const PRICE = `{input, output} in US dollars, such as '{"input": 3, "output": 15}'`
const price = kind<TokenPrice>(PRICE, (raw) => {
  const given = typeof raw === "string" ? objectIn(raw) : raw
  const { input, output, ...others } = Object(given) as Record<string, unknown>
  if (!isPrice(input) || !isPrice(output) || Object.keys(others).length > 0) return undefined
  return { input, output }
})

const dollars = kind<number>(`US dollars from 0 to ${MOST_DOLLARS}`, (raw) => {
  const value = typeof raw === "string" && /^\d+(\.\d+)?$/.test(raw) ? Number(raw) : raw
  return isPrice(value) ? value : undefined
})

const model = (what: string) =>
  optional(text, `Model for ${what}. Without it, another model that is named is asked.`)
const priceOf = (tier: string) =>
  optional(
    price,
    `US dollars for a million tokens of the model ${tier}, as {input, output}. Without it, calls cost 0, and no budget refuses them.`,
  )

/** The service that the AI features ask. */
export const aiKeys = {
  "ai.gateway.kind": optional(
    oneOf("openai", "anthropic"),
    "Form of the model's API: openai (also local models and Amazon Bedrock) or anthropic. Without it, no model is asked.",
  ),
  "ai.gateway.base_url": optional(
    webUrl,
    "Base URL of the model's API, also on a private address. Without it, the public service of that form is asked.",
  ),
  "ai.gateway.api_key": optional(text, "Key of the model's API. A local model needs none.", true),
  "ai.gateway.models.fast": model("subjects and rewritten blocks"),
  "ai.gateway.models.standard": model("drafts of templates"),
  "ai.gateway.models.deep": model("workflows and analyses"),
  "ai.gateway.price_per_mtok.fast": priceOf("fast"),
  "ai.gateway.price_per_mtok.standard": priceOf("standard"),
  "ai.gateway.price_per_mtok.deep": priceOf("deep"),
  "ai.monthly_ceiling_usd": optional(
    dollars,
    "US dollars that all projects together may spend on models in a month. Without it, only their own budgets hold.",
  ),
  "ai.calls_per_hour": key(
    whole(1, 1_000_000),
    60,
    "AI calls of one action that each key or person may make in an hour.",
  ),
}
