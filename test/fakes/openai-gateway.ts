import type { ModelUsage } from "../../src/ai/ai-task"
import {
  count,
  just,
  type ModelDialect,
  type ModelSays,
  modelGateway,
  shape,
  text,
} from "./model-gateway"

/** A gateway of chat completions, as OpenAI documents them. */
export const openaiGateway = (script: ModelSays, port?: number) =>
  modelGateway(dialect, script, port)

const chunk = (fields: object) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_790_000_000, model: "model", ...fields })}\n\n`

const choice = (delta: object, finish_reason: string | null) =>
  chunk({ choices: [{ index: 0, delta, finish_reason }], usage: null })

const usageChunk = ({ input_tokens, output_tokens }: ModelUsage) => {
  const total_tokens = input_tokens + output_tokens
  const usage = { prompt_tokens: input_tokens, completion_tokens: output_tokens, total_tokens }
  return chunk({ choices: [], usage })
}

const says = (role: string) => shape({ role: just(role), content: text })
const schema = shape({
  name: { type: "string", pattern: "^[\\w-]{1,64}$" },
  schema: { type: "object" },
})
const properties = {
  model: text,
  messages: { type: "array", items: [says("system"), says("user")], minItems: 2, maxItems: 2 },
  ...{ max_tokens: count, max_completion_tokens: count, stream: just(true) },
  stream_options: just({ include_usage: true }),
  response_format: shape({ type: just("json_schema"), json_schema: schema }),
}
const optional = ["max_tokens", "max_completion_tokens", "stream_options", "response_format"]

const dialect: ModelDialect = {
  kind: "openai",
  base_path: "/v1",
  path: "/chat/completions",
  body: {
    ...shape(properties, optional),
    oneOf: [{ required: ["max_tokens"] }, { required: ["max_completion_tokens"] }],
  },
  promptOf: ({ messages }) =>
    [messages]
      .flat()
      .map((message) => Object(message).content)
      .join("\n"),

  begin: () => choice({ role: "assistant", content: "" }, null),
  piece: (content) => choice({ content }, null),
  end: (reason = "stop", usage) =>
    `${choice({}, reason)}${usage ? usageChunk(usage) : ""}data: [DONE]\n\n`,
  refusal: (code, message) => ({ error: { message, type: "server_error", param: null, code } }),
}
