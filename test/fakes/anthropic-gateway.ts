import {
  count,
  just,
  type ModelDialect,
  type ModelSays,
  modelGateway,
  shape,
  text,
} from "./model-gateway"

/** A gateway of the Messages API, as Anthropic documents it. */
export const anthropicGateway = (script: ModelSays, port?: number) =>
  modelGateway(dialect, script, port)

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

const format = shape({ type: just("json_schema"), schema: { type: "object" } })
const said = shape({ role: just("user"), content: text })
const message = {
  ...{ id: "msg_1", type: "message", role: "assistant", model: "model", content: [] },
  ...{ stop_reason: null, stop_sequence: null },
}

const dialect: ModelDialect = {
  kind: "anthropic",
  base_path: "",
  path: "/v1/messages",
  headers: { "anthropic-version": "2026-10-21" },
  body: shape(
    {
      ...{ model: text, max_tokens: count, system: text, stream: just(true) },
      messages: { type: "array", items: said, minItems: 1, maxItems: 1 },
      output_config: shape({ format }),
    },
    ["output_config"],
  ),
  promptOf: ({ system, messages }) => `${system}\n${Object([messages].flat()[0]).content}`,

  begin: (usage) =>
    event("message_start", {
      message: { ...message, usage: usage && { ...usage, output_tokens: 1 } },
    }) +
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
    event("ping", {}),
  piece: (text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  end: (stop_reason = "end_turn", usage) =>
    event("content_block_stop", { index: 0 }) +
    event("message_delta", {
      delta: { stop_reason, stop_sequence: null },
      ...(usage && { usage: { output_tokens: usage.output_tokens } }),
    }) +
    event("message_stop", {}),
  refusal: (_, message) => ({ type: "error", error: { type: "api_error", message } }),
}
