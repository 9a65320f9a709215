import { expect, test } from "bun:test"
import { AdviceAnswer } from "../../../src/ai/advice/advisory"
import { callModel } from "../../../src/ai/gateway"
import { generateWorkflow } from "../../../src/ai/prompts/generate-workflow"
import { anthropic } from "../../../src/ai/providers/anthropic"
import { openai } from "../../../src/ai/providers/openai"
import { eventData } from "../../../src/lib/server-sent-events"
import { anthropicGateway } from "../../fakes/anthropic-gateway"
import { GATEWAY_KEY as apiKey, gatewayAt, somePrompt as prompt } from "../../fakes/model-gateway"
import { openaiGateway } from "../../fakes/openai-gateway"
import { inPieces } from "../../harness/pieces"
import fc from "../../harness/properties"
import { vendorClient } from "../../harness/vendor-client"

const OpenAi = vendorClient("openai").default
const Anthropic = vendorClient("@anthropic-ai/sdk").default

const { transformJSONSchema } = vendorClient("@anthropic-ai/sdk/lib/transform-json-schema")

const { system, user: content } = prompt
const model = "model-fast"
const script = () => ({ pieces: ['{"text":"', "Grüße ", "🙂\\n", '"}'] })

interface Read {
  text: string
  end?: string | undefined
  input?: number | undefined
  output?: number | undefined
}

const openaiCall = {
  ...{ model, max_tokens: 100, stream: true, stream_options: { include_usage: true } },
  messages: Object.entries({ system, user: content }).map(([role, content]) => ({ role, content })),
  response_format: { type: "json_schema", json_schema: prompt.schema },
}

async function readByOpenAi(baseURL: string, fetch?: object): Promise<Read> {
  const client = new OpenAi({ apiKey, baseURL, fetch, maxRetries: 0 })
  const read: Read = { text: "" }
  for await (const { choices, usage } of await client.chat.completions.create(openaiCall)) {
    read.text += choices[0]?.delta.content ?? ""
    read.end = choices[0]?.finish_reason ?? read.end
    if (usage) Object.assign(read, { input: usage.prompt_tokens, output: usage.completion_tokens })
  }
  return read
}

const anthropicCall = {
  ...{ model, max_tokens: 100, system, messages: [{ role: "user", content }] },
  output_config: { format: { type: "json_schema", schema: prompt.schema.schema } },
}

async function readByAnthropic(baseURL: string, fetch?: object): Promise<Read> {
  const client = new Anthropic({ apiKey, baseURL, fetch, maxRetries: 0 })
  const { usage, stop_reason, content } = await client.messages.stream(anthropicCall).finalMessage()
  const end = stop_reason === "end_turn" ? "stop" : stop_reason
  return { text: content[0].text, end, input: usage.input_tokens, output: usage.output_tokens }
}

const kinds = [
  ["openai", openai, openaiGateway, readByOpenAi],
  ["anthropic", anthropic, anthropicGateway, readByAnthropic],
] as const

const HEADERS = ["content-type", "authorization", "anthropic-version"]

test.each(kinds)("%s: the official client sends the same fields", async (kind, _, fakeOf, read) => {
  await using fake = await fakeOf(script)
  const { signal } = new AbortController()
  const ours = await Array.fromAsync(callModel(gatewayAt(kind, fake.url), prompt, { signal }))
  const theirs = await read(fake.url)
  expect(ours.join("")).toBe(theirs.text)
  expect(fake.problems).toEqual([])
  const [one, other] = fake.calls.map(({ method, path, headers, body }) => ({
    ...{ method, path, body },
    headers: HEADERS.map((name) => headers[name]),
  }))
  expect(one).toEqual(other as typeof one)
})

test.each(kinds)("%s: its client reads 300 cuttings alike", async (kind, adapter, fakeOf, read) => {
  await using fake = await fakeOf(script)
  const { url, headers, body } = adapter.request(gatewayAt(kind, fake.url), prompt, "nothing")
  const type = { "content-type": "application/json" }
  const asked = { method: "POST", headers: { ...type, ...headers } }
  const answer = await fetch(url, { ...asked, body: JSON.stringify(body) })
  const bytes = await answer.bytes()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 60 }), async (cuts) => {
      const replay = async () => new Response(inPieces(bytes, cuts), { headers: answer.headers })
      const ours: Read = { text: "" }
      for await (const data of eventData(inPieces(bytes, cuts))) {
        if (data === "[DONE]") break
        const { text = "", ...more } = adapter.part(JSON.parse(data)) ?? {}
        ours.text += text
        ours.end = more.end ?? ours.end
        ours.input = more.input_tokens ?? ours.input
        ours.output = more.output_tokens ?? ours.output
      }
      expect(ours).toEqual(await read(fake.url, replay))
      expect(ours.text).toBe(script().pieces.join(""))
    }),
    { numRuns: 300 },
  )
})

test("anthropic: a schema has what the official client leaves in one, and one that refers to itself is not sent", () => {
  const bodyOf = (schema: object) => {
    const asked = { ...prompt, schema: { name: "answer", schema } }
    return anthropic.request(gatewayAt("anthropic", "https://ai.test"), asked, "nothing").body
  }
  const { output_config } = bodyOf(AdviceAnswer) as typeof anthropicCall
  const { schema } = output_config.format
  expect(schema).toMatchObject({ properties: { advisory: { additionalProperties: false } } })
  // It moves the rest into descriptions.
  expect(JSON.stringify(transformJSONSchema(schema))).not.toContain("description")
  expect(JSON.stringify(transformJSONSchema(AdviceAnswer))).toContain("description")
  expect(bodyOf(generateWorkflow("", []).schema.schema)).not.toHaveProperty("output_config")
})
