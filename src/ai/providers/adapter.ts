import type { Prompt } from "../ai-task"

/** The model that is asked, and where. */
export interface ModelEndpoint {
  base_url: string
  api_key: string | null
  model: string
}

/** What a gateway refused a moment ago, because not every one takes it. */
export type Refused = "nothing" | "schema" | "max_tokens" | "stream_options"

export interface ModelRequest {
  url: string
  headers: Record<string, string>
  body: object
}

/** What one event of a gateway says. */
export interface ModelPart {
  text?: string | undefined
  input_tokens?: number | undefined
  output_tokens?: number | undefined
  /** Why the model stopped: `stop`, `length`, or the gateway's own word. */
  end?: string | undefined
  /** Nothing follows. */
  is_last?: true
  /** It is a failure, and an answer that says the same would have this status. */
  failed?: number
}

/** How gateways of one kind are asked, and how their events read. */
export interface ModelAdapter {
  default_base_url: string
  request(endpoint: ModelEndpoint, prompt: Prompt, left_out: Refused): ModelRequest
  /** Members of `data` may be anything. Undefined for an event that is no part of an answer. */
  part(data: Record<string, unknown>): ModelPart | undefined
}

/** What gateways refuse in a schema, or turn into a grammar that is as long. The checks of an answer know it all. */
const UNASKED = new Set([
  ...["pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"],
  ...["maxProperties", "default", "examples"],
])

/** The schema with what every gateway knows. */
export const askedSchema = (schema: object): object =>
  JSON.parse(JSON.stringify(schema, (key, value) => (UNASKED.has(key) ? undefined : value)))

/** A number of tokens, or undefined for what is none. */
export const tokens = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** Of a failure that a stream tells: gateways have few words for throttling, and many for the rest. */
export const failedStatus = (words: unknown): number =>
  /429|rate_limit|overloaded/.test(String(words)) ? 429 : 500
