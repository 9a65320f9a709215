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

/** A gateway of chat completions, as OpenAI documents them. */
export const openaiGateway = (script: Script, port?: number) => modelGateway(dialect, script, port)

const chunk = (fields: object) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_790_000_000, model: "model", ...fields })}\n\n`

const choice = (delta: object, finish_reason: string | null) =>
  chunk({ choices: [{ index: 0, delta, finish_reason }], usage: null })

const says = (role: string) => shape({ role: just(role), content: text })
const schema = shape({
  name: { type: "string", pattern: "^[\\w-]{1,64}$" },
  schema: { type: "object" },
})

const headers = {
  "content-type": "application/json",
  authorization: `Bearer ${GATEWAY_KEY}`,
}
const body = {
  ...shape(
    {
      model: text,
      messages: { type: "array", items: [says("system"), says("user")], minItems: 2, maxItems: 2 },
      max_tokens: count,
      max_completion_tokens: count,
      stream: just(true),
      stream_options: just({ include_usage: true }),
      response_format: shape({ type: just("json_schema"), json_schema: schema }),
    },
    ["max_tokens", "max_completion_tokens", "response_format"],
  ),
  oneOf: [{ required: ["max_tokens"] }, { required: ["max_completion_tokens"] }],
}

const dialect: ModelDialect = {
  kind: "openai",
  base_path: "/v1",
  call: requestShape("/v1/chat/completions", headers, body),
  promptOf: ({ messages }) =>
    [messages]
      .flat()
      .map((message) => Object(message).content)
      .join("\n"),

  begin: () => choice({ role: "assistant", content: "" }, null),
  piece: (content) => choice({ content }, null),
  end: (reason = "stop", usage) =>
    [
      choice({}, reason),
      usage &&
        chunk({
          choices: [],
          usage: {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens + usage.output_tokens,
          },
        }),
      "data: [DONE]\n\n",
    ].join(""),
  refusal: (status, message) => ({
    error: { message, type: "server_error", param: null, code: status },
  }),
}
