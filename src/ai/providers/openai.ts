import { askedSchema, failedStatus, type ModelAdapter, tokens } from "./adapter"

const OWN_URL = "https://api.openai.com/v1"

/** Chat completions, which hosted and local gateways have in common. */
export const openai: ModelAdapter = {
  default_base_url: OWN_URL,

  request({ base_url, api_key, model }, { system, user, schema, max_output_tokens }, left_out) {
    // The newer models of OpenAI refuse `max_tokens`, and most other servers know no other name.
    const is_new = base_url === OWN_URL || left_out === "max_tokens"
    const json_schema = { ...schema, schema: askedSchema(schema.schema) }
    return {
      url: `${base_url}/chat/completions`,
      headers: api_key ? { authorization: `Bearer ${api_key}` } : {},
      body: {
        model,
        messages: [
          { role: "system", content: system },
          { role: "user", content: user },
        ],
        [is_new ? "max_completion_tokens" : "max_tokens"]: max_output_tokens,
        stream: true,
        ...(left_out !== "stream_options" && { stream_options: { include_usage: true } }),
        ...(left_out !== "schema" && { response_format: { type: "json_schema", json_schema } }),
      },
    }
  },

  part(data) {
    const { choices, usage, error } = data as Chunk
    if (error) return { failed: failedStatus(`${error.code} ${error.type}`) }
    const { delta, finish_reason } = choices?.[0] ?? {}
    return {
      text: typeof delta?.content === "string" ? delta.content : undefined,
      end: typeof finish_reason === "string" ? finish_reason : undefined,
      input_tokens: tokens(usage?.prompt_tokens),
      output_tokens: tokens(usage?.completion_tokens),
    }
  },
}

/** As documented. What comes may differ. */
interface Chunk {
  choices?: { delta?: { content?: unknown }; finish_reason?: unknown }[]
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown }
  error?: { code?: unknown; type?: unknown }
}
