import { beforeEach, expect, test } from "bun:test"
import { messages } from "../../src/messages/tables"
import { templates } from "../../src/templates/tables"
import { audience } from "../fan-out/audiences"
import { framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { complaints, refusal } from "../harness/client"
import { advisory, goodModel } from "../harness/model-answers"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()
const model = await scriptedModel()
const service = await sharedService()
const project = await service.project()
beforeEach(() => {
  model.script = goodModel
  model.configure(model.settings)
})

const channel = "email"
const CALLS: [name: string, body: object, part: string][] = [
  ["subjects/suggest", { channel, template_body: "<p>Hello</p>" }, "suggestions"],
  ["templates/draft", { channel, brief: "Welcome people." }, "template"],
  [
    "templates/rewrite",
    { channel, block: { type: "paragraph", content: "Hi" }, instruction: "Longer." },
    "block",
  ],
  ["workflows/generate", { description: "Stop at once." }, "workflow"],
  ["broadcasts/analyze", { draft: { channel, subject: "Hello", body: "<p>Hi</p>" } }, "advisory"],
]

const ask = (name: string, body: object, headers = {}, { project_id, post } = project) =>
  post(`/v1/ai/${name}`, { project_id, ...body }, headers)

test.each(CALLS)(
  "%s answers once and as a stream, for its own project alone, and stores nothing",
  async (name, body, part) => {
    const once = await ask(name, body)
    const metadata = { source: "model", degraded: false }
    const data = { [part]: expect.anything(), metadata }
    expect(once).toMatchObject({ status: 200, body: { data } })

    const streamed = await ask(name, body, { accept: "text/event-stream" })
    if (name !== "subjects/suggest") {
      const frames = framesOf(streamed.text)
      expect(orderOf(frames).join(" ")).toMatch(/^token (variables_validated )?complete done$/)
      expect(frames.at(-2)?.data[part]).toEqual(once.body.data[part])
    }
    const other = await ask(name, { ...body, project_id: service.parts.base_url() })
    expect(refusal(other)).toEqual([403, "forbidden"])
    for (const table of [templates, messages])
      expect(await service.store.read.select().from(table)).toEqual([])
    expect(model.problems).toEqual([])
  },
)

test("only an analysis works without a gateway", async () => {
  model.configure({})
  const answers = await Promise.all(CALLS.map(([name, body]) => ask(name, body)))
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 200])
})

const DRAFT = { channel, subject: "LAST CHANCE TODAY", body: "<p>Buy.</p>" }

async function starter() {
  const project = await service.project({ plan: "starter" })
  const body = { default_from: { email: "news@acme.test", name: null } }
  expect(await project.call("PATCH", "/v1/settings", { body })).toMatchObject({ status: 200 })
  return project
}

const analyze = (project: TestProject, draft: object = DRAFT, headers = {}) =>
  ask("broadcasts/analyze", { draft }, headers, project)

const note = { severity: "low", title: "It says little", detail: "It names no product." }
const answering = (more: object = {}) => ({
  pieces: [JSON.stringify({ advisory: { ...advisory, content_notes: [note], ...more } })],
})
const titles = (list: { title: string }[]) => list.map(({ title }) => title)

test("without a gateway the rules advise, in both modes, and the quota is not used", async () => {
  model.configure({})
  const project = await starter()
  const { advisory, metadata } = (await analyze(project)).body.data
  expect(titles(advisory.deliverability_risks)).toContain("The From domain is not verified")
  expect(titles(advisory.content_notes)).toEqual(["The subject shouts"])
  expect(metadata).toMatchObject({
    ...{ source: "rules", degraded: true, model: null, cost_usd: 0, tier: "deep" },
    quota: { used: 0, limit: 4 },
  })
  const streamed = await analyze(project, DRAFT, { accept: "text/event-stream" })
  const frames = framesOf(streamed.text)
  expect(orderOf(frames)).toEqual(["complete", "done"])
  expect(frames[0]?.data.advisory).toEqual(advisory)
})

test("a model adds to the advice of the rules, and what breaks the schema is 502", async () => {
  const project = await starter()
  model.script = answering()
  const { advisory, metadata } = (await analyze(project)).body.data
  expect(titles(advisory.content_notes)).toEqual(["The subject shouts", "It says little"])
  const worst = { summary: "The offer is clear.", recommended_action: "revise_before_send" }
  expect(advisory).toMatchObject(worst)
  expect(metadata).toMatchObject({ source: "model", degraded: false, quota: { used: 1 } })
  model.script = answering({ score: 1 })
  const refused = await analyze(project)
  expect(refusal(refused)).toEqual([502, "ai_advisory_invalid"])
  expect(complaints(refused)[0]).toBe("advisory.score")
  const { used } = (await project.get("/v1/ai/entitlement")).body.data
  expect(used.analyze_broadcast).toBe(1)
  expect(model.problems).toEqual([])
})

test("a used-up quota and a throttled gateway bring the advice in their details", async () => {
  const project = await starter()
  model.script = { status: 429 }
  const throttled = await analyze(project)
  expect(refusal(throttled)).toEqual([503, "bedrock_throttled"])
  model.script = { status: 500 }
  expect((await analyze(project)).body.data.metadata.source).toBe("rules")
  model.script = answering()
  for (let nth = 0; nth < 4; nth++) expect((await analyze(project)).status).toBe(200)
  const used_up = await analyze(project)
  expect(refusal(used_up)).toEqual([402, "ai_quota_exceeded"])
  for (const { details } of [used_up.body.error, throttled.body.error]) {
    expect(titles(details.advisory.content_notes)).toEqual(["The subject shouts"])
    expect(details.metadata).toMatchObject({ source: "rules", degraded: true })
  }
})

test("a topic of another project is 404, before the gates are asked", async () => {
  const { topic } = await audience(service.store, await service.project(), [{}])
  const free = await service.project({ plan: "free" })
  const answer = await analyze(free, { ...DRAFT, topic_key: topic.key })
  expect(refusal(answer)).toEqual([404, "topic_not_found"])
})
