import {
  count,
  GATEWAY_KEY,
  just,
  type ModelDialect,
  modelGateway,
  requestShape,
  shape,
  text,
} from "./model-gateway"

type Script = Parameters<typeof modelGateway>[1]

/** A gateway of the Messages API, as Anthropic documents it. */
export const anthropicGateway = (script: Script, port?: number) =>
  modelGateway(dialect, script, port)

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

const headers = {
  "content-type": "application/json",
  authorization: `Bearer ${GATEWAY_KEY}`,
  "anthropic-version": "2026-10-21",
}
const format = shape({ type: just("json_schema"), schema: { type: "object" } })
const said = shape({ role: just("user"), content: text })
const body = shape(
  {
    model: text,
    max_tokens: count,
    system: text,
    messages: { type: "array", items: said, minItems: 1, maxItems: 1 },
    stream: just(true),
    output_config: shape({ format }),
  },
  ["output_config"],
)

const dialect: ModelDialect = {
  kind: "anthropic",
  base_path: "",
  call: requestShape("/v1/messages", headers, body),
  promptOf: ({ system, messages }) => `${system}\n${Object([messages].flat()[0]).content}`,

  begin: (usage) =>
    event("message_start", {
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "model",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: usage && { ...usage, output_tokens: 1 },
      },
    }) +
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
    event("ping", {}),
  piece: (text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  end: (reason = "end_turn", usage) =>
    event("content_block_stop", { index: 0 }) +
    event("message_delta", {
      delta: { stop_reason: reason, stop_sequence: null },
      ...(usage && { usage: { output_tokens: usage.output_tokens } }),
    }) +
    event("message_stop", {}),
  refusal: (_, message) => ({ type: "error", error: { type: "api_error", message } }),
}
