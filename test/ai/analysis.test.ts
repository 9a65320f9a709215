import { beforeEach, expect, test } from "bun:test"
import { audience } from "../fan-out/audiences"
import { framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { complaints, refusal } from "../harness/client"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()
const service = await sharedService()
const model = await scriptedModel()
beforeEach(() => model.configure(model.settings))

const DRAFT = { channel: "email", subject: "LAST CHANCE TODAY", body: "<p>Buy.</p>" }

async function starter() {
  const project = await service.project({ plan: "starter" })
  const body = { default_from: { email: "news@acme.test", name: null } }
  expect(await project.call("PATCH", "/v1/settings", { body })).toMatchObject({ status: 200 })
  return project
}

const analyze = ({ project_id, post }: TestProject, draft: object = DRAFT, headers = {}) =>
  post("/v1/ai/broadcasts/analyze", { project_id, draft }, headers)

const advice = {
  ...{ summary: "It shouts.", recommended_action: "send", deliverability_risks: [] },
  ...{ frequency_conflicts: [], audience_warnings: [], send_time_suggestions: [] },
  content_notes: [{ severity: "low", title: "It says little", detail: "It names no product." }],
}
const answering = (advisory: object) => ({ pieces: [JSON.stringify({ advisory })] })
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
  model.script = answering(advice)
  const { advisory, metadata } = (await analyze(project)).body.data
  expect(titles(advisory.content_notes)).toEqual(["The subject shouts", "It says little"])
  const worst = { summary: "It shouts.", recommended_action: "revise_before_send" }
  expect(advisory).toMatchObject(worst)
  expect(metadata).toMatchObject({ source: "model", degraded: false, quota: { used: 1 } })
  model.script = answering({ ...advice, score: 1 })
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
  model.script = answering(advice)
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
