import { beforeEach, describe, expect, test } from "bun:test"
import { connect } from "node:net"
import type { ModelScript } from "../fakes/model-gateway"
import { aiService, framesOf, orderOf, scriptedModel, type TrialCall } from "../harness/ai-service"
import { until } from "../harness/hooks"
import { quietLog } from "../harness/quiet"

quietLog()
const model = await scriptedModel()
const PRICE = { "ai.gateway.price_per_mtok.standard": { input: 1, output: 2 } }
beforeEach(() => model.configure({ ...model.settings, ...PRICE }))

const USAGE = { input_tokens: 100, output_tokens: 10 }
const SILENT: ModelScript = { pieces: ["{"], after: "silence" }
const CUT: ModelScript = { pieces: ["{"], pause_ms: 20, after: "cut" }
const ENDLESS: ModelScript = { pieces: ["x".repeat(1000)], after: "endless" }
/** What a call leaves: one whose model has ended, and one that used the quota. */
const PAID = { used: 0, spent_micro: 120, held_micro: 0, open: 0 }
const USED = { used: 1, held_micro: 0, open: 0 }
const FAILED = ["token", "error", "done"]
const JSON_TEXT = ['{"te', 'xt":"a\\n', '\u2028b"}']

async function streamed(said: ModelScript, call: TrialCall = {}, accept?: string, times = {}) {
  model.script = said
  await using service = await aiService(times)
  const answer = await service.open(await service.project(), call, accept)
  const text = await answer.text()
  return { answer, text, left: await service.left() }
}

/** The order of a stream, and the data before its end. */
const told = (text: string) => ({
  order: orderOf(framesOf(text)),
  data: framesOf(text).at(-2)?.data,
})

describe("a stream", () => {
  test("tells the pieces, the variables, the result with its cost, and its end", async () => {
    const { answer, text, left } = await streamed({ pieces: JSON_TEXT, usage: USAGE })
    const frames = framesOf(text)
    expect(answer.headers.get("content-type")).toBe("text/event-stream")
    expect(answer.headers.get("cache-control")).toBe("no-store")
    expect(orderOf(frames)).toEqual(["token", "variables_validated", "complete", "done"])
    const tokens = frames.filter(({ event }) => event === "token")
    expect(tokens.map(({ data }) => data.text)).toEqual(JSON_TEXT)
    const { result, metadata } = frames.at(-2)?.data ?? {}
    expect(result).toEqual({ text: "a\n\u2028b" })
    expect(text).not.toContain("\u2028") // some readers break lines there
    expect(metadata).toMatchObject({
      ...{ action: "draft_template", source: "model", degraded: false, model: "model-standard" },
      ...{ tier: "standard", prompt_version: "trial-1", ...USAGE, cost_usd: 0.00012 },
      quota: { used: 1, limit: -1 },
    })
    expect(left).toEqual({ ...USED, spent_micro: 120 })
    expect(model.problems).toEqual([])
  })

  test.each<[string, ModelScript, string, object, object]>([
    ["text without JSON", { pieces: ["Sure! "] }, "parse_failed", { retryable: true }, PAID],
    ["`__proto__`", { pieces: ['{"__proto__":{}}'] }, "parse_failed", { retryable: true }, PAID],
    ["a rejection", { pieces: ['{"rejected":1}'] }, "error", { code: "ai_workflow_invalid" }, PAID],
    ["a bug of ours", { pieces: ['{"bug":1}'] }, "error", { code: "internal_error" }, PAID],
    ["a text that is cut", CUT, "error", { code: "provider_error" }, USED],
    ["a text without an end", ENDLESS, "error", { code: "provider_error" }, USED],
  ])("tells of %s, and uses quota where it has no end", async (_, said, event, data, found) => {
    const { text, left } = await streamed({ usage: USAGE, ...said })
    expect(told(text)).toMatchObject({ order: ["token", event, "done"], data })
    expect(left).toMatchObject(found)
  })

  test("has a comment while the model is silent, and ends when its time is over", async () => {
    const { text, left } = await streamed(SILENT, {}, undefined, { whole_ms: 500, ping_ms: 50 })
    expect(text).toContain("\n\n: ping\n\n")
    expect(told(text)).toMatchObject({ order: FAILED, data: { code: "timeout" } })
    expect(left).toMatchObject(USED)
    await until(() => model.open.size === 0)
  })

  test("ends with an error while the server stops", async () => {
    model.script = SILENT
    await using service = await aiService({ drain_ms: 50 })
    const answer = await service.open(await service.project(), {})
    service.health.drain()
    const data = { details: { reason: "draining" } }
    expect(told(await answer.text())).toMatchObject({ order: FAILED, data })
  })

  test("whose client leaves ends the model's work, and uses the quota", async () => {
    model.script = SILENT
    await using service = await aiService()
    const stop = new AbortController()
    const answer = await service.open(await service.project(), {}, undefined, stop.signal)
    await answer.body?.getReader().read()
    stop.abort()
    await until(() => model.open.size === 0)
    await until(async () => (await service.left()).open === 0)
    expect(await service.left()).toMatchObject(USED)
  })

  test("waits for a client that does not read, and settles when the time is over", async () => {
    model.script = { ...SILENT, pieces: ["x".repeat(40_000), "x".repeat(40_000)], pause_ms: 1 }
    await using service = await aiService({ whole_ms: 500 })
    const { key } = await service.project()
    const socket = connect(service.port, "127.0.0.1").pause()
    const head = `POST /v1/ai/trial HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nAccept: text/event-stream`
    socket.write(`${head}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`)
    await until(async () => (await service.left()).used === 1)
    await until(async () => (await service.left()).open === 0)
    expect(await service.left()).toMatchObject(USED)
    socket.destroy()
  })
})

test.each<[string, ModelScript, number, string]>([
  ["a gateway that throttles", { status: 429 }, 503, "bedrock_throttled"],
  ["a gateway that refuses its key", { status: 401 }, 503, "service_unavailable"],
  ["an answer that makes no sense", { status: 404 }, 502, "provider_error"],
  ["an answer without a text", { pieces: [] }, 502, "provider_error"],
])("%s before the first piece is an error with its status", async (_, said, status, code) => {
  const { answer, text, left } = await streamed(said)
  const { error } = JSON.parse(text)
  expect([answer.status, error.code]).toEqual([status, code])
  expect(left).toMatchObject({ ...USED, used: 0 })
})

test("a client gets a stream where it names one, and no JSON that it likes better", async () => {
  model.script = { pieces: ["{}"] }
  await using service = await aiService()
  const project = await service.project()
  const typeFor = async (accept: string) =>
    (await service.open(project, {}, accept)).headers.get("content-type")?.split(/[/;]/)[1]
  const stream = ["Text/Event-Stream", "application/json, text/event-stream; charset=utf-8"]
  const half = "application/json,text/event-stream; q=0.5"
  const json = ["*/*", "text/event-stream-x", "text/event-stream;q=0", half]
  expect(await Promise.all(stream.map(typeFor))).toEqual(stream.map(() => "event-stream"))
  expect(await Promise.all(json.map(typeFor))).toEqual(json.map(() => "json"))
})

describe("one answer in JSON", () => {
  const asked = async (said: ModelScript, call?: TrialCall) => {
    const { answer, text, left } = await streamed(said, call, "application/json")
    return { status: answer.status, body: JSON.parse(text), left }
  }

  test.each([
    ["a fence", "```json\n", "\n```\n"],
    ["words", "Here it is, {{name}} too: ", "\n\nDoes it fit?"],
    ["thoughts, words and a fence", '<think>{"a"}</think>Yes:\n```\n', "\n```\nIt has {{name}}."],
  ])("has the same result, also of JSON in %s", async (_, before, behind) => {
    const { status, body } = await asked({ pieces: [before, ...JSON_TEXT, behind], usage: USAGE })
    expect([status, body.data.result]).toEqual([200, { text: "a\n\u2028b" }])
    expect(body.variables.detected).toEqual(["name"])
    expect(body.data.metadata).toMatchObject(USAGE)
  })

  test("of text that is no JSON is 502 with the begin of the text", async () => {
    const { status, body } = await asked({ pieces: ["x".repeat(900)] })
    expect([status, body.error.code]).toEqual([502, "provider_error"])
    expect(body.error.details).toEqual({ reason: "parse_failed", raw_excerpt: "x".repeat(500) })
  })

  test("is asked for again where the task has two tries, and all tokens are paid", async () => {
    const calls = model.calls.length
    const { status, left } = await asked({ pieces: ['{"rejected":1}'], usage: USAGE }, { tries: 2 })
    expect([status, model.calls.length - calls]).toEqual([502, 2])
    expect(left).toEqual({ ...PAID, spent_micro: 240 })
  })
})

const rules = { advisory: { summary: "By rules." } }
const call: TrialCall = { action: "analyze_broadcast", rules }
const BY_RULES = { source: "rules", degraded: true, model: null, input_tokens: 0, cost_usd: 0 }

test.each<[string, ModelScript, string[], number]>([
  ["that cannot be asked", { status: 401 }, ["complete", "done"], 0],
  ["that breaks off", CUT, ["token", "complete", "done"], 1],
])("an analysis completes by its rules with a model %s", async (_, said, order, used) => {
  const { text, left } = await streamed(said, call)
  expect(told(text)).toMatchObject({ order, data: { ...rules, metadata: BY_RULES } })
  expect(left).toMatchObject({ used, open: 0 })
})
