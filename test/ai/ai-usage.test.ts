import { beforeEach, expect, test } from "bun:test"
import { AI_ACTIONS, type AiAction } from "../../src/ai/actions"
import { aiQuotas, aiSpending } from "../../src/ai/tables"
import { millisFrom } from "../../src/core/time"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const clock = movableClock()
/** Fifteen days of the month have begun. */
beforeEach(() => clock.freeze(millisFrom("2026-11-15T12:00:00.000Z")))

const PERIOD = "2026-11"
const USAGE = "/v1/ai/usage"
const ENTITLEMENT = "/v1/ai/entitlement"

function spend(project_id: string, action: AiAction, count: number, spent_micro: number) {
  const row = { project_id, period: PERIOD, action, count, spent_micro, held_micro: 77 }
  return store.tx((tx) => tx.insert(aiSpending).values(row))
}

const each = (numbers: number[]) =>
  Object.fromEntries(AI_ACTIONS.map((action, at) => [action, numbers[at] ?? 0]))

test("the entitlement tells the quotas of the plan, what is used, and that no gateway is configured", async () => {
  const { account_id, project_id, get } = await service.project({ plan: "starter" })
  for (const period of [PERIOD, "2026-10"]) {
    const row = { account_id, action: "draft_template", used: 3, period } as const
    await store.tx((tx) => tx.insert(aiQuotas).values(row))
  }
  expect((await get(`${ENTITLEMENT}?project_id=${project_id}`)).body.data).toEqual({
    project_id,
    ...{ enabled: true, plan: "starter", required_plan: "starter", gateway_configured: false },
    ...{ quotas: each([200, 25, 50, 5, 4]), used: each([0, 3]) },
  })
})

test("the entitlement is 0 where the plan has none, and -1 where there is no limit", async () => {
  const free = await service.project({ plan: "free", limits: { ai_draft_template_per_month: 9 } })
  const none = { enabled: false, plan: "free", quotas: each([]) }
  expect((await free.get(ENTITLEMENT)).body.data).toMatchObject(none)
  const large = await service.project({ limits: { ai_draft_template_per_month: 9 } })
  expect((await large.get(ENTITLEMENT)).body.data.quotas).toEqual(each([-1, 9, -1, -1, -1]))
  await large.call("PATCH", "/v1/settings", { body: { ai: { enabled: false } } })
  expect((await large.get(ENTITLEMENT)).body.data.enabled).toBe(false)
})

test("the entitlement is of the caller's project alone, which a person names", async () => {
  const { get } = await service.project()
  expect(refusal(await get(`${ENTITLEMENT}?project_id=${NOBODY}`))).toEqual([403, "forbidden"])
  const { owner, project_id } = await team(service, "pro")
  expect((await owner.get(ENTITLEMENT)).body.data.plan).toBe("pro")
  await owner.post("/v1/projects", { name: "Second" })
  expect((await owner.get(ENTITLEMENT)).status).toBe(422)
  expect((await owner.get(`${ENTITLEMENT}?project_id=${project_id}`)).status).toBe(200)
  expect((await owner.get(`${ENTITLEMENT}?project_id=${NOBODY}`)).status).toBe(404)
})

test("the usage sums the month by action and by tier, and tells what is left and to be expected", async () => {
  const scopes = ["ai:use", "settings:write"]
  const { project_id, get, call } = await service.project({ plan: "pro", scopes })
  await spend(project_id, "suggest_subjects", 4, 1_000)
  await spend(project_id, "rewrite_template", 1, 500)
  await spend(project_id, "analyze_broadcast", 2, 1_500_000)
  await spend(NOBODY, "suggest_subjects", 9, 9_000_000)
  await call("PATCH", "/v1/settings", { body: { ai: { budget_usd: 2 } } })
  expect((await get(USAGE)).body.data).toEqual({
    period: { start: "2026-11-01T00:00:00.000Z", end: "2026-12-01T00:00:00.000Z" },
    ...{ spend_usd: 1.5015, budget_usd: 2, remaining_usd: 0.4985, projected_usd: 3.003 },
    by_action: [
      ["suggest_subjects", 4, 1000, 0.001],
      ["draft_template", 0, 150, 0],
      ["rewrite_template", 1, 300, 0.0005],
      ["generate_workflow", 0, 25, 0],
      ["analyze_broadcast", 2, 30, 1.5],
    ].map(([action, count, limit, spend_usd]) => ({ action, count, limit, spend_usd })),
    by_tier: [
      { tier: "fast", count: 5, spend_usd: 0.0015 },
      { tier: "standard", count: 0, spend_usd: 0 },
      { tier: "deep", count: 2, spend_usd: 1.5 },
    ],
  })
  const past = (await get(`${USAGE}?period=2026-10`)).body.data
  expect(past).toMatchObject({ spend_usd: 0, remaining_usd: 2, projected_usd: 0 })
  clock.advance({ seconds: 40 * 86_400 })
  const over = (await get(`${USAGE}?period=${PERIOD}`)).body.data
  expect(over).toMatchObject({ spend_usd: 1.5015, projected_usd: 1.5015 })
  expect(complaints(await get(`${USAGE}?period=2026`))).toEqual(["period"])
})

test("the usage is of one project, also for those who see the bill of the account", async () => {
  const { owner, account_id, project_id, join }: Team = await team(service)
  await spend(project_id, "draft_template", 1, 1_000_000)
  const billing = await join("billing_admin")
  for (const person of [owner, billing]) {
    const spending = { spend_usd: 1, budget_usd: null, remaining_usd: null }
    expect((await person.get(USAGE)).body.data).toMatchObject(spending)
  }
  await owner.post("/v1/projects", { name: "Second" })
  expect((await billing.get(USAGE)).body.error.details.header).toBe("X-Project-Id")
  const ours = { "x-project-id": project_id, "x-account-id": account_id }
  expect((await billing.get(USAGE, ours)).body.data.spend_usd).toBe(1)
  for (const id of [(await service.project()).project_id, NOBODY, "x"]) {
    expect((await billing.get(USAGE, { "x-project-id": id })).status).toBe(404)
  }
})
