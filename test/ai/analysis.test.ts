import { expect, test } from "bun:test"
import { aiQuotas } from "../../src/ai/tables"
import type { ModelScript } from "../fakes/model-gateway"
import { framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()
const service = await sharedService()
const model = await scriptedModel()

/** Without a script there is no gateway. */
function says(said: ModelScript | undefined) {
  model.script = said ?? {}
  model.configure(said ? model.settings : {})
}

const DRAFT = { channel: "email", subject: "LAST CHANCE TODAY", body: "<p>Buy.</p>" }

async function projectOf(plan: string, from = "news@acme.test") {
  const project = await service.project({ plan })
  const change = { default_from: { email: from, name: null } }
  expect((await project.call("PATCH", "/v1/settings", { body: change })).status).toBe(200)
  return project
}

const analyze = (project: TestProject, draft: object = {}) =>
  project.post("/v1/ai/broadcasts/analyze", {
    ...{ project_id: project.project_id, draft: { ...DRAFT, ...draft } },
  })

const advice = {
  ...{ summary: "It shouts.", recommended_action: "send", deliverability_risks: [] },
  ...{ frequency_conflicts: [], audience_warnings: [], send_time_suggestions: [] },
  content_notes: [{ severity: "low", title: "It says little", detail: "It names no product." }],
}
const answering = (advisory: object) => ({ pieces: [JSON.stringify({ advisory })] })
const titles = (list: { title: string }[]) => list.map(({ title }) => title)
const quotaOf = async ({ account_id }: TestProject) =>
  (await service.store.read.select().from(aiQuotas)).find((row) => row.account_id === account_id)
    ?.used ?? 0

test("without a gateway the rules advise, in both modes, and the quota is not used", async () => {
  says(undefined)
  const project = await projectOf("starter")
  const { status, body } = await analyze(project)
  expect(status).toBe(200)
  const { advisory, metadata } = body.data
  expect(titles(advisory.deliverability_risks)).toContain("The From domain is not verified")
  expect(titles(advisory.content_notes)).toEqual(["The subject shouts"])
  expect(metadata).toMatchObject({
    ...{ source: "rules", degraded: true, model: null, cost_usd: 0, tier: "deep" },
    quota: { used: 0, limit: 4 },
  })
  const streamed = await project.call("POST", "/v1/ai/broadcasts/analyze", {
    headers: { accept: "text/event-stream" },
    body: { project_id: project.project_id, draft: DRAFT },
  })
  const frames = framesOf(streamed.text)
  expect(orderOf(frames)).toEqual(["complete", "done"])
  expect(frames[0]?.data.advisory).toEqual(advisory)
})

test("a model adds to the advice of the rules, and what breaks the schema is 502", async () => {
  const project = await projectOf("starter")
  says(answering(advice))
  const { body } = await analyze(project)
  const { advisory, metadata } = body.data
  expect(titles(advisory.content_notes)).toEqual(["The subject shouts", "It says little"])
  expect([advisory.summary, advisory.recommended_action]).toEqual([
    "It shouts.",
    "revise_before_send",
  ])
  expect(metadata).toMatchObject({ source: "model", degraded: false, quota: { used: 1 } })
  says(answering({ ...advice, score: 1 }))
  const refused = await analyze(project)
  expect([refused.status, refused.body.error.code]).toEqual([502, "ai_advisory_invalid"])
  expect(refused.body.error.details.fields[0].path).toBe("advisory.score")
  expect(await quotaOf(project)).toBe(1)
  expect(model.problems).toEqual([])
})

test("a used-up quota and a throttled gateway bring the advice in their details", async () => {
  const project = await projectOf("starter")
  says({ status: 429 })
  const throttled = await analyze(project)
  expect([throttled.status, throttled.body.error.code]).toEqual([503, "bedrock_throttled"])
  says({ status: 500 })
  expect((await analyze(project)).body.data.metadata.source).toBe("rules")
  says(answering(advice))
  for (let nth = 0; nth < 4; nth++) expect((await analyze(project)).status).toBe(200)
  const { status, body } = await analyze(project)
  expect([status, body.error.code]).toEqual([402, "ai_quota_exceeded"])
  for (const { details } of [body.error, throttled.body.error]) {
    expect(titles(details.advisory.content_notes)).toEqual(["The subject shouts"])
    expect(details.metadata).toMatchObject({ source: "rules", degraded: true })
  }
})

test("a topic that the project does not have is 404, before the quota is asked", async () => {
  says(undefined)
  const { status, body } = await analyze(await projectOf("free"), { topic_key: "none" })
  expect([status, body.error.code]).toEqual([404, "topic_not_found"])
})
