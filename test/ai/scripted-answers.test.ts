import { afterAll, expect, test } from "bun:test"
import { patience } from "../../src/ai/gateway"
import type { ModelScript } from "../fakes/model-gateway"
import { aiService, framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { quietLog } from "../harness/quiet"
import { sizes } from "../harness/sizes"

quietLog()
const model = await scriptedModel()
model.configure({ ...model.settings, "ai.calls_per_hour": sizes.model_answers })
const { first_byte_ms } = patience
patience.first_byte_ms = 100
const service = await aiService({ whole_ms: 2000, ping_ms: 20 })
afterAll(async () => {
  patience.first_byte_ms = first_byte_ms
  await service[Symbol.asyncDispose]()
})

/** The same numbers in every run (Lehmer, modulus 2^31 - 1). */
let seed = 20261130
const below = (bound: number) => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % bound
}

const GOOD = JSON.stringify({ html: "<p>Hello\n{{name}}</p>", emoji: "🔔 ".repeat(20) })
const TEXTS = [
  () => GOOD,
  () => `\`\`\`json\n${GOOD}\n\`\`\``,
  () => GOOD.slice(0, below(GOOD.length)),
  () => "",
  () => "event: done\ndata: {}\n\n",
  () => '{"rejected":true}',
  () => '{"bug":true}',
  () => `{"a":${"[".repeat(200)}`,
  () => Buffer.from(Array.from({ length: 200 }, () => below(256))).toString("utf8"),
  () => "x".repeat(10_000_000),
]

const ENDS = [undefined, undefined, undefined, "cut", "silence", "endless"] as const

function madeUp(nth: number): ModelScript {
  const text = TEXTS[nth % TEXTS.length]?.() ?? ""
  const end = ENDS[below(ENDS.length)]
  // A model that is silent for long costs the test its time.
  const after = end === "silence" && nth % 10 !== 0 ? "cut" : end
  if (below(12) === 0) return { status: [429, 500, 529, 403, 302][below(5)] as number }
  const longest = 1 + below(Math.ceil(text.length / (1 + below(20))) || 1)
  const pieces = text.match(new RegExp(`.{1,${longest}}`, "gs")) ?? []
  return { pieces, ...(after && { after }), ...(below(3) === 0 && { usage: null }) }
}

const ORDER = /^(token )?(variables_validated complete|complete|parse_failed|error) done$/

test("whatever a model says, a stream has its order and one end, and nothing stays open", async () => {
  const project = await service.project()
  let settled = 0
  for (let nth = 0; nth < sizes.model_answers; nth++) {
    model.script = madeUp(nth)
    const answer = await service.open(project, {}, nth % 4 === 3 ? "*/*" : "text/event-stream")
    const text = await answer.text()
    const type = answer.headers.get("content-type") ?? ""
    if (type.startsWith("text/event-stream"))
      expect(orderOf(framesOf(text)).join(" ")).toMatch(ORDER)
    else expect([200, 502, 503, 504, 500]).toContain(answer.status)
    if (nth === Math.floor(sizes.model_answers / 5)) settled = heldMegabytes()
  }
  expect(await service.left()).toMatchObject({ open: 0, held_micro: 0 })
  expect(heldMegabytes() - settled).toBeLessThan(60)
  expect(model.problems).toEqual([])
})

function heldMegabytes(): number {
  Bun.gc(true)
  return process.memoryUsage().heapUsed / 1_000_000
}
