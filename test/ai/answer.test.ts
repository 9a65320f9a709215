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
const JSON_TEXT = ['{"te', 'xt":"a\\n', '\u2028b"}']

async function streamed(said: ModelScript, call: TrialCall = {}, times = {}) {
  model.script = said
  await using service = await aiService(times)
  const answer = await service.open(await service.project(), call)
  const text = await answer.text()
  return { answer, text, left: await service.left() }
}

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
    expect(left).toEqual({ used: 1, spent_micro: 120, held_micro: 0, open: 0 })
    expect(model.problems).toEqual([])
  })

  test.each<[string, ModelScript, string, object]>([
    ["text that is no JSON", { pieces: ["Sure! "] }, "parse_failed", { retryable: true }],
    ["a refused result", { pieces: ['{"rejected":1}'] }, "error", { code: "ai_workflow_invalid" }],
    ["a bug of ours", { pieces: ['{"bug":1}'] }, "error", { code: "internal_error" }],
    ["`__proto__`", { pieces: ['{"__proto__":{}}'] }, "parse_failed", { retryable: true }],
  ])("tells of %s, and gives the quota back", async (_, said, event, data) => {
    const { text, left } = await streamed({ usage: USAGE, ...said })
    const frames = framesOf(text)
    expect(orderOf(frames)).toEqual(["token", event, "done"])
    expect(frames.at(-2)?.data).toMatchObject(data)
    expect(left).toEqual({ used: 0, spent_micro: 120, held_micro: 0, open: 0 })
  })

  test.each<[string, ModelScript]>([
    ["breaks off", CUT],
    ["writes without an end", { pieces: ["x".repeat(1000)], after: "endless" }],
  ])("of a model that %s ends with an error, and the quota is used", async (_, said) => {
    const { text, left } = await streamed(said)
    const frames = framesOf(text)
    expect(orderOf(frames)).toEqual(["token", "error", "done"])
    expect(frames.at(-2)?.data.code).toBe("provider_error")
    expect(left).toMatchObject({ used: 1, held_micro: 0, open: 0 })
  })

  test("has a comment while the model is silent, and ends when its time is over", async () => {
    const { text, left } = await streamed(SILENT, {}, { whole_ms: 500, ping_ms: 50 })
    expect(text).toContain("\n\n: ping\n\n")
    const frames = framesOf(text)
    expect(orderOf(frames)).toEqual(["token", "error", "done"])
    expect(frames.at(-2)?.data.code).toBe("timeout")
    expect(left).toMatchObject({ used: 1, open: 0 })
    await until(() => model.open.size === 0)
  })

  test("ends with an error while the server stops", async () => {
    model.script = SILENT
    await using service = await aiService({ drain_ms: 50 })
    const answer = await service.open(await service.project(), {})
    service.health.drain()
    const frames = framesOf(await answer.text())
    expect(orderOf(frames)).toEqual(["token", "error", "done"])
    expect(frames.at(-2)?.data.details).toMatchObject({ reason: "draining" })
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
    expect(await service.left()).toMatchObject({ used: 1, held_micro: 0 })
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
    expect(await service.left()).toMatchObject({ used: 1, held_micro: 0 })
    socket.destroy()
  })
})

describe("what fails before the first piece is an error with its status", () => {
  test.each<[string, ModelScript, number, string]>([
    ["a gateway that throttles", { status: 429 }, 503, "bedrock_throttled"],
    ["a gateway that refuses its key", { status: 401 }, 503, "service_unavailable"],
    ["an answer that makes no sense", { status: 404 }, 502, "provider_error"],
    ["an answer without a text", { pieces: [] }, 502, "provider_error"],
  ])("%s", async (_, said, status, code) => {
    const { answer, text, left } = await streamed(said)
    const { error } = JSON.parse(text)
    expect([answer.status, error.code]).toEqual([status, code])
    expect(left).toMatchObject({ used: 0, held_micro: 0, open: 0 })
  })

  test("no gateway, and a plan without AI", async () => {
    model.configure({ "ai.gateway.kind": null })
    await using service = await aiService()
    const refusals = ["enterprise", "free"].map(async (plan) => {
      const answer = await service.open(await service.project({ plan }), {})
      return [answer.status, JSON.parse(await answer.text()).error.code]
    })
    expect(await Promise.all(refusals)).toEqual([
      [503, "service_unavailable"],
      [403, "feature_not_enabled"],
    ])
  })
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
  const asked = async (said: ModelScript, call: TrialCall = {}) => {
    model.script = said
    await using service = await aiService()
    const answer = await service.open(await service.project(), call, "application/json")
    return {
      status: answer.status,
      body: JSON.parse(await answer.text()),
      left: await service.left(),
    }
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
    expect(left).toEqual({ used: 0, spent_micro: 240, held_micro: 0, open: 0 })
  })
})

describe("an analysis", () => {
  const rules = { advisory: { summary: "By rules." } }
  const call: TrialCall = { action: "analyze_broadcast", rules }
  const BY_RULES = { source: "rules", degraded: true, model: null, input_tokens: 0, cost_usd: 0 }

  test.each<[string, ModelScript, string[], number]>([
    ["that cannot be asked", { status: 401 }, ["complete", "done"], 0],
    ["that breaks off", CUT, ["token", "complete", "done"], 1],
  ])("completes by its rules with a model %s", async (_, said, order, used) => {
    const { text, left } = await streamed(said, call)
    const frames = framesOf(text)
    expect(orderOf(frames)).toEqual(order)
    expect(frames.at(-2)?.data).toMatchObject({ ...rules, metadata: BY_RULES })
    expect(left).toMatchObject({ used, open: 0 })
  })
})
