import { askedSchema, failedStatus, type ModelAdapter, tokens } from "./adapter"

/** The Messages API. */
export const anthropic: ModelAdapter = {
  default_base_url: "https://api.anthropic.com",

  request({ base_url, api_key, model }, { system, user, schema, max_output_tokens }, left_out) {
    const format = { type: "json_schema", schema: askedSchema(schema.schema) }
    // What refers to itself is refused. The prompt tells the form, too.
    const has_format = left_out !== "schema" && !("$defs" in schema.schema)
    // The official client sends the first, and other gateways ask for the second.
    const key = api_key && { authorization: `Bearer ${api_key}`, "x-api-key": api_key }
    return {
      url: `${base_url}/v1/messages`,
      headers: { "anthropic-version": "2026-10-21", ...key },
      body: {
        model,
        max_tokens: max_output_tokens,
        system,
        messages: [{ role: "user", content: user }],
        stream: true,
        ...(has_format && { output_config: { format } }),
      },
    }
  },

  part(data) {
    const { type, message, delta, usage, error } = data as MessageEvent
    if (type === "ping") return undefined
    if (type === "error") return { failed: failedStatus(error?.type) }
    if (type === "message_stop") return { is_last: true }
    // The output that is counted at the start is not that of the end.
    if (type === "message_start") return { input_tokens: tokens(message?.usage?.input_tokens) }
    const { text, stop_reason } = delta ?? {}
    return {
      text: typeof text === "string" ? text : undefined,
      end: typeof stop_reason === "string" ? (ENDS.get(stop_reason) ?? stop_reason) : undefined,
      input_tokens: tokens(usage?.input_tokens),
      output_tokens: tokens(usage?.output_tokens),
    }
  },
}

const WORDS = { end_turn: "stop", stop_sequence: "stop", max_tokens: "length" }
const ENDS = new Map(Object.entries(WORDS))

interface Counted {
  input_tokens?: unknown
  output_tokens?: unknown
}

/** As documented. What comes may differ. */
interface MessageEvent {
  type?: unknown
  message?: { usage?: Counted }
  delta?: { text?: unknown; stop_reason?: unknown }
  usage?: Counted
  error?: { type?: unknown }
}
