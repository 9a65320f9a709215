import { expect, test } from "bun:test"
import { callModel, type Gateway, type ModelCall, patience } from "../../src/ai/gateway"
import { anthropicGateway } from "../fakes/anthropic-gateway"
import { GATEWAY_KEY, gatewayAt, type ModelScript, somePrompt } from "../fakes/model-gateway"
import { openaiGateway } from "../fakes/openai-gateway"
import { until } from "../harness/hooks"
import { quietLog } from "../harness/quiet"

const logged = quietLog()

const kinds = { openai: openaiGateway, anthropic: anthropicGateway }
const each = ["openai", "anthropic"] as const

const asking = (kind: Gateway["kind"], url: string, call: Partial<ModelCall> = {}) =>
  callModel(gatewayAt(kind, url), somePrompt, { signal: new AbortController().signal, ...call })

/** What comes of one call, with the scripts of its attempts in turn. Their ends wait until a token is read. */
async function asked(kind: Gateway["kind"], ...scripts: ModelScript[]) {
  const { promise: until, resolve } = Promise.withResolvers<void>()
  await using fake = await kinds[kind]((_, nth) => {
    const said = scripts[nth - 1] ?? { status: 500 }
    return said.pieces ? { until, ...said } : said
  })
  const { calls, problems, counted } = fake
  const texts: string[] = []
  const pieces = asking(kind, fake.url)
  try {
    let next = await pieces.next()
    for (; !next.done; next = await pieces.next()) {
      texts.push(next.value)
      resolve()
    }
    return { texts, usage: next.value, calls, problems, counted }
  } catch (error) {
    return { texts, error, calls, problems, counted }
  }
}

const broken = (reason: string) => ({ code: "provider_error", status: 502, details: { reason } })
const unavailable = { code: "service_unavailable", status: 503 }
const said: ModelScript = { pieces: ["{}"] }
const refused = (status: number, raw = "{}"): ModelScript => ({ status, raw })
const throttled = (retry_after: number) => ({
  ...{ code: "bedrock_throttled", status: 503, details: { retry_after } },
})
const too_large = broken("too_large")
const with_headers = (status: number, headers: Record<string, string>) => ({ status, headers })

const lines = (...events: unknown[]) =>
  events.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("")
const told = (error: object): ModelScript => ({ raw: lines({ type: "error", error }) })

/** What the attempts get, how many there are, and the error, or none. */
const failures: [what: string, scripts: ModelScript[], attempts: number, error: object | null][] = [
  ["a throttled call is not repeated", [refused(429)], 1, throttled(10)],
  ["a gateway says how long", [with_headers(529, { "retry-after": "7" })], 1, throttled(7)],
  ["a refused key is not tried again", [refused(401)], 1, unavailable],
  ["a forbidden call is not tried again", [refused(403)], 1, unavailable],
  ["another refusal is final", [refused(404)], 1, broken("status_404")],
  ["no redirect is followed", [with_headers(307, { location: "/" })], 1, broken("status_307")],
  ["a failure is repeated", [refused(500), said], 2, null],
  ["a failure is repeated once", [refused(500), refused(502), said], 2, broken("status_502")],
  ["a refused schema is left out", [refused(400, "no json_schema here"), said], 2, null],
  ["whatever is refused, it is asked again", [refused(422, "bad grammar"), said], 2, null],
  ["a stream that is cut before its first token is repeated", [{ after: "cut" }, said], 2, null],
  ["a cut after a token is not repeated", [{ pieces: ["{"], after: "cut" }], 1, broken("cut")],
  ["a stream without an end is cut", [{ raw: "" }, { raw: ": nothing\n\n" }], 2, broken("cut")],
  ["garbage is no answer", [{ raw: "data: {no\n\n" }, { raw: "data: []\n\n" }], 2, broken("cut")],
  ["a stream may be throttled", [told({ type: "overloaded_error", code: 429 })], 1, throttled(10)],
  ["a stream may tell that it failed", [told({ type: "api_error" }), said], 2, null],
  ["what stops for another reason is broken", [{ ...said, end: "refusal" }], 1, broken("refusal")],
  ["what is too long is broken", [{ pieces: Array(300).fill("x".repeat(1000)) }], 1, too_large],
  ["an endless text is broken", [{ pieces: ["x".repeat(1000)], after: "endless" }], 1, too_large],
  ["10 MB in one line are broken", [{ raw: `data: ${"x".repeat(1e7)}` }], 1, too_large],
]

const rows = each.flatMap((kind) => failures.map((row) => [kind, ...row] as const))

test.each(rows)("%s: %s", async (kind, _, scripts, attempts, error) => {
  const found = await asked(kind, ...scripts)
  expect(found).toMatchObject({ problems: [], calls: { length: attempts } })
  if (error) expect(found.error).toMatchObject(error)
  else expect(found).toMatchObject({ texts: ["{}"], usage: found.counted })
})

const choice = (delta: object | null, finish_reason: string | null = null) => ({
  choices: [{ delta, finish_reason }],
})
const usage = { prompt_tokens: 12, completion_tokens: 34 }
const READ = { texts: ["{}"], usage: { input_tokens: 12, output_tokens: 34 } }
const thought = { type: "content_block_delta", delta: { type: "thinking_delta", thinking: "x" } }

/** As servers of the same form say it. */
test.each<[what: string, kind: Gateway["kind"], error: object | null, ...events: unknown[]]>([
  [
    ...(["roles, thoughts and empty choices", "openai", null] as const),
    ...[choice({ role: "assistant" }), choice({ reasoning_content: "x" }), choice(null)],
    ...[{ choices: null }, { choices: [], usage: null }, { usage: 5, error: null }],
    ...[choice({ content: "{}" }, "stop"), { choices: [], usage }, "[DONE] "],
  ],
  ["a filter", "openai", broken("content_filter"), choice({}, "content_filter"), "[DONE]"],
  [
    ...(["thoughts before the text", "anthropic", null] as const),
    ...[{ type: "message_start", message: { usage: { input_tokens: 12 } } }, { type: "ping" }],
    ...[thought, { type: "content_block_delta", delta: { type: "text_delta", text: "{}" } }],
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 34 } },
    { type: "message_stop" },
  ],
])("%s", async (_, kind, error, ...events) => {
  const found = await asked(kind, { raw: lines(...events) })
  expect(found).toMatchObject(error ? { error } : READ)
})

test("carriage returns, comments, a mark, no space and no end", async () => {
  const text = `: up\n${lines({ ...choice({ content: "{}" }, "length"), usage })}`
  const raw = `\uFEFF${text}`.replaceAll("\n", "\r\n").replaceAll("data: ", "data:")
  expect(await asked("openai", { raw })).toMatchObject(READ)
})

test.each([
  ["json_schema", "response_format"],
  ["max_tokens", "max_tokens"],
  ["stream_options", "stream_options"],
])("a request that is refused for %s is repeated without it", async (word, field) => {
  const { calls, texts } = await asked("openai", refused(422, `no ${word}`), said)
  expect(texts).toEqual(["{}"])
  const [first, second] = calls.map(({ body }) => Object.keys(body))
  expect(first?.filter((name) => !second?.includes(name))).toEqual([field])
  // What the gateway does not hold the model to, the model is told.
  const { system, user } = somePrompt
  const told = field === "response_format" ? '\nThe schema is {"type":"object"}' : ""
  expect(calls[1]?.prompt).toBe(`${system}${told}\n${user}`)
})

test.each(each)("%s: silence is repeated once, and is a timeout", async (kind) => {
  const usual = patience.first_byte_ms
  patience.first_byte_ms = 300
  const found = await asked(kind, { after: "silence" }, { after: "silence" })
  patience.first_byte_ms = usual
  expect(found.calls).toHaveLength(2)
  expect(found.error).toMatchObject({ code: "timeout", status: 504 })
})

test("a gateway that nobody runs is unavailable", async () => {
  await using fake = await openaiGateway(() => said)
  await fake[Symbol.asyncDispose]()
  expect(asking("openai", fake.url).next()).rejects.toMatchObject(unavailable)
})

test.each(each)("%s: a call that is ended closes its connection", async (kind) => {
  await using fake = await kinds[kind](() => ({ pieces: ["{"], after: "silence" }))
  const stop = new AbortController()
  const spent = { input_tokens: 0, output_tokens: 0 }
  const pieces = asking(kind, fake.url, { signal: stop.signal, spent })
  expect(await pieces.next()).toEqual({ done: false, value: "{" })
  stop.abort()
  expect(pieces.next()).rejects.toMatchObject({ code: "timeout" })
  await until(() => fake.open.size === 0)
  expect(spent).toEqual({ input_tokens: expect.any(Number), output_tokens: 1 })
  expect(fake.calls).toHaveLength(1)
})

test.each(each)("%s: without the gateway's numbers, four bytes are a token", async (kind) => {
  const { usage } = await asked(kind, { pieces: ["Grüße"], usage: null })
  expect(usage).toEqual({ input_tokens: 6, output_tokens: 2 })
})

test("the operator is told of failures once a minute at most, and never with the key", async () => {
  await asked("openai", refused(401))
  const lines = logged().join("\n")
  expect(lines.match(/"level":"warn"/g)?.length ?? 0).toBeLessThanOrEqual(1)
  expect(lines).not.toContain(GATEWAY_KEY)
})
