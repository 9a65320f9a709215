import { beforeEach, expect, test } from "bun:test"
import { scriptedModel } from "../harness/ai-service"
import { refusal } from "../harness/client"
import { goodModel } from "../harness/model-answers"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()
const service = await sharedService()
const model = await scriptedModel()
const PRICE = { "ai.gateway.price_per_mtok.standard": { input: 2, output: 8 } }
beforeEach(() => {
  model.script = goodModel
  model.configure({ ...model.settings, ...PRICE })
})

const draft = ({ project_id, post }: TestProject) =>
  post("/v1/ai/templates/draft", { channel: "email", project_id, brief: "A greeting." })
const used = async (project: TestProject) =>
  (await project.get("/v1/ai/entitlement")).body.data.used.draft_template

test("of 50 calls at once at a quota of 25, exactly 25 reach the gateway", async () => {
  const project = await service.project({ plan: "starter" })
  const answers = await Promise.all(Array.from({ length: 50 }, () => draft(project)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(25)
  expect(answers.filter((one) => refusal(one)[1] === "ai_quota_exceeded")).toHaveLength(25)
  expect([model.calls.length, model.problems]).toEqual([25, []])
  const { body } = await project.get("/v1/ai/usage")
  const { input_tokens, output_tokens } = model.counted
  expect(body.data.spend_usd).toBeCloseTo((input_tokens * 2 + output_tokens * 8) / 1e6, 9)
  expect(body.data.by_action[1]).toMatchObject({ count: 25, limit: 25 })
  expect(await used(project)).toBe(25)
})

test("the plan free is told which plan allows it", async () => {
  const answer = await draft(await service.project({ plan: "free" }))
  expect(refusal(answer)).toEqual([403, "feature_not_enabled"])
  const details = { feature: "ai", plan: "free", required_plan: "starter" }
  expect(answer.body.error.details).toEqual(details)
})

test("each gate refuses before the next one, and what is refused uses no quota", async () => {
  const calls = model.calls.length
  const project = await service.project({ plan: "pro" })
  const settings = (ai: object) => project.call("PATCH", "/v1/settings", { body: { ai } })
  const answers = async (status: number, code: string, details: object) => {
    const answer = await draft(project)
    expect(answer).toMatchObject({ status, body: { error: { code, details } } })
    return answer
  }
  await settings({ enabled: false, budget_usd: 0 })
  await answers(403, "feature_not_enabled", { feature: "ai", plan: "pro" })
  await settings({ enabled: true })
  await answers(402, "ai_budget_exceeded", { spend_usd: 0, budget_usd: 0 })
  await settings({ budget_usd: null })
  model.configure({ ...model.settings, ...PRICE, "ai.monthly_ceiling_usd": 0 })
  await answers(402, "ai_budget_exceeded", { budget_usd: 0 })
  model.configure(PRICE)
  await answers(503, "service_unavailable", {})
  expect(model.calls).toHaveLength(calls)
  model.configure({ ...model.settings, ...PRICE })
  model.script = { status: 429, headers: { "retry-after": "7" } }
  const throttled = await answers(503, "bedrock_throttled", { retry_after: 7 })
  expect(throttled.headers.get("retry-after")).toBe("7")
  expect(await used(project)).toBe(0)

  model.script = goodModel
  const cost = (await draft(project)).body.data.metadata.cost_usd
  await settings({ budget_usd: cost })
  await answers(402, "ai_budget_exceeded", { spend_usd: cost, budget_usd: cost })
  model.configure({ ...model.settings, ...PRICE, "ai.calls_per_hour": 1 })
  const limited = await answers(429, "ai_rate_limited", { limit: 1, window_seconds: 3600 })
  expect(Number(limited.headers.get("retry-after"))).toBe(limited.body.error.details.retry_after)
  const { remaining_usd } = (await project.get("/v1/ai/usage")).body.data
  expect([await used(project), remaining_usd]).toEqual([1, 0])
})
