import { afterAll, beforeEach, expect, test } from "bun:test"
import { loadSettings, useSettings } from "../../src/core/config"
import { messages } from "../../src/messages/tables"
import { templates } from "../../src/templates/tables"
import type { ModelScript } from "../fakes/model-gateway"
import { openaiGateway } from "../fakes/openai-gateway"
import { framesOf, orderOf } from "../harness/ai-service"
import { refusal } from "../harness/client"
import { testService } from "../harness/service"

let script: ModelScript = {}
const model = await openaiGateway(() => script)
const before = loadSettings()
const service = await testService()
const project = await service.project()
beforeEach(() => useSettings({ ...before, values: { ...before.values, ...model.settings } }))
afterAll(async () => {
  useSettings(before)
  await service[Symbol.asyncDispose]()
  await model[Symbol.asyncDispose]()
})

const { project_id } = project
const channel = "email"
const nothing = { title: null, body: null, text: null, variables: [] }
const template = {
  ...nothing,
  name: "welcome",
  subject: "Hello",
  html: "<p>{{subscriber.locale}}</p>",
}
const suggestions = [1, 2, 3, 4, 5].map((rank) => ({
  ...{
    rank,
    subject: `Subject ${rank}`,
    predicted_open_rate: 0.2,
    rationale: "Short.",
    warnings: [],
  },
}))
const steps = [{ step_key: "wait", name: "Wait", type: "stop", config: {}, position: 0 }]
const lists = { frequency_conflicts: [], audience_warnings: [], send_time_suggestions: [] }
const advisory = {
  ...{ summary: "Fine.", recommended_action: "send", ...lists },
  ...{ deliverability_risks: [], content_notes: [] },
}

const CALLS: [string, object, object][] = [
  ["subjects/suggest", { channel, template_body: "<p>Hello</p>" }, { suggestions }],
  ["templates/draft", { channel, brief: "Welcome people." }, { template }],
  [
    "templates/rewrite",
    { channel, block: { type: "paragraph", content: "Hi" }, instruction: "Longer." },
    { block: { content: "Hello" } },
  ],
  [
    "workflows/generate",
    { description: "Stop at once." },
    { workflow: { key: "stop", name: "Stop", steps } },
  ],
  ["broadcasts/analyze", { draft: { channel, subject: "Hello", body: "<p>Hi</p>" } }, { advisory }],
]

const stored = async () => {
  const { read } = service.store
  return [await read.select().from(templates), await read.select().from(messages)].map(
    ({ length }) => length,
  )
}

test.each(CALLS)(
  "%s answers once and as a stream, for its own project alone, and stores nothing",
  async (name, body, said) => {
    script = { pieces: [JSON.stringify(said)] }
    const path = `/v1/ai/${name}`
    const once = await project.post(path, { ...body, project_id })
    expect([once.text.slice(0, 300), once.status]).toEqual([expect.anything(), 200])
    const [part = ""] = Object.keys(said)
    expect(Object.keys(once.body.data)).toContain(part)
    expect(once.body.data.metadata).toMatchObject({ source: "model", degraded: false })

    const streamed = await project.post(
      path,
      { ...body, project_id },
      { accept: "text/event-stream" },
    )
    if (name !== "subjects/suggest") {
      const frames = framesOf(streamed.text)
      expect(orderOf(frames).join(" ")).toMatch(/^token (variables_validated )?complete done$/)
      expect(frames.at(-2)?.data[part]).toEqual(once.body.data[part])
    }
    const other = await project.post(path, { ...body, project_id: service.parts.base_url() })
    expect(refusal(other)).toEqual([403, "forbidden"])
    expect(await stored()).toEqual([0, 0])
    expect(model.problems).toEqual([])
  },
)

test("only an analysis works without a gateway", async () => {
  useSettings(before)
  for (const [name, body] of CALLS) {
    const answer = await project.post(`/v1/ai/${name}`, { ...body, project_id })
    const by_rules = name === "broadcasts/analyze"
    expect([name, answer.status]).toEqual([name, by_rules ? 200 : 503])
    if (by_rules)
      expect(answer.body.data.metadata).toMatchObject({ source: "rules", degraded: true })
  }
})
