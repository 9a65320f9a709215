import { afterAll, beforeEach, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { AI_ACTIONS, type AiAction, TIER_OF } from "../../src/ai/actions"
import type { AiTask } from "../../src/ai/ai-task"
import { endCall, freeOverdueCalls, quotaOf } from "../../src/ai/calls"
import { admit } from "../../src/ai/gates"
import { aiCalls, aiInstanceSpending, aiSpending } from "../../src/ai/tables"
import { loadSettings, type Settings, settings, useSettings } from "../../src/core/config"
import { ApiError } from "../../src/core/errors"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { millisFrom } from "../../src/core/time"
import { type Caller, nobody, PROJECT_DEFAULTS } from "../../src/identity/caller"
import type { AiSettings } from "../../src/identity/tables"
import { limitsOfPlan } from "../../src/plans/plans"
import { openStore } from "../../src/store/open"
import { somePrompt } from "../fakes/model-gateway"
import { movableClock } from "../harness/clock"
import { testStore } from "../harness/store"

const { store, folder, database_url, [Symbol.asyncDispose]: close } = await testStore()
const parts = { store, secrets: openSecrets({ data_dir: folder, master_key: null }) }
const clock = movableClock()
const before = loadSettings()
afterAll(() => {
  useSettings(before)
  return close()
})
beforeEach(async () => {
  clock.freeze(millisFrom("2026-11-15T12:00:00.000Z"))
  configure()
  for (const of_all of [aiCalls, aiInstanceSpending]) await store.tx((tx) => tx.delete(of_all))
})

/** With prices of all tiers but `fast`. */
const configure = (chosen: Partial<Settings> = {}) =>
  useSettings({ ...before, values: { ...before.values, ...PRICED, ...chosen } })

/** A million tokens cost so many dollars, so a token costs as many millionths. */
const PRICED = {
  "ai.gateway.price_per_mtok.standard": { input: 0, output: 10 },
  "ai.gateway.price_per_mtok.deep": { input: 0, output: 10 },
}
/** 1,000 tokens of output: 0.01 USD. */
const task = (action: AiAction = "draft_template"): AiTask => ({
  action,
  prompt: { ...somePrompt, max_output_tokens: 1000 },
  read: async () => ({ complete: {} }),
})

const key = (plan = "starter", ai: Partial<AiSettings> = {}): Caller => ({
  ...nobody(""),
  ...{ kind: "key", key_id: newId(), account_id: newId(), project_id: newId(), plan },
  limits: limitsOfPlan(plan),
  project_settings: { ...PROJECT_DEFAULTS, ai: { ...PROJECT_DEFAULTS.ai, ...ai } },
})

const refusalOf = (work: Promise<unknown>): Promise<unknown[] | undefined> =>
  work.then(
    () => undefined,
    (error) => {
      if (!(error instanceof ApiError)) throw error
      return [error.status, error.code, error.details]
    },
  )
const refused = (caller: Caller, action?: AiAction) => refusalOf(admit(parts, caller, task(action)))
/** How many of so many calls at once pass. The others must be refused with this code. */
async function passing(calls: number, code: string, call: (at: number) => Promise<unknown>) {
  const answers = await Promise.all(Array.from({ length: calls }, (_, at) => refusalOf(call(at))))
  const passed = answers.filter((one) => one === undefined).length
  expect(answers.filter((one) => one?.[1] === code)).toHaveLength(calls - passed)
  return passed
}

const succeeded = { usage: { input_tokens: 7, output_tokens: 100 }, keeps_quota: true }
const failed = { usage: null, keeps_quota: false }
/** What is counted of the month. */
const counted = async ({ account_id, project_id }: Caller, action: AiAction = "draft_template") => {
  const key = { account_id, period: "2026-11", action, limit: null }
  const { used } = await quotaOf(store.read, key)
  const ours = and(eq(aiSpending.project_id, project_id), eq(aiSpending.action, action))
  const [row] = await store.read.select().from(aiSpending).where(ours)
  return { used, count: row?.count, spent: row?.spent_micro, held: row?.held_micro }
}

test("gate 1: the plan, the switch, the role of a person and the tier, in this order", async () => {
  const person = (project_role: Caller["project_role"], ai: Partial<AiSettings>): Caller => ({
    ...{ ...key("pro", ai), kind: "console", key_id: null, user_id: newId(), project_role },
  })
  const off = (plan: string, more = {}) => {
    const details = { feature: "ai", plan, ...more }
    return [403, "feature_not_enabled", details]
  }
  expect(await refused(key("free"))).toEqual(off("free", { required_plan: "starter" }))
  expect(await refused(key("starter", { enabled: false }))).toEqual(off("starter"))
  const admins = { allowed_roles: ["admin" as const] }
  expect(await refused(person("developer", admins))).toEqual(off("pro", { required_role: "admin" }))
  expect(await refused(person("admin", admins))).toBeUndefined()
  expect(await refused(person("developer", {}))).toBeUndefined()
  expect(await refused(key("pro", admins))).toBeUndefined()
  const no_deep = key("pro", { blocked_tiers: ["deep"] })
  for (const action of AI_ACTIONS) {
    const blocked = ["generate_workflow", "analyze_broadcast"].includes(action)
    expect(await refused(no_deep, action)).toEqual(blocked ? off("pro") : undefined)
  }
  expect(await counted(no_deep, "analyze_broadcast")).toMatchObject({ used: 0 })
})

test("gate 2: 60 in an hour, of each key or person and action", async () => {
  const caller = key("scale")
  for (let call = 0; call < 60; call++) expect(await refused(caller)).toBeUndefined()
  clock.advance({ seconds: 60 })
  const details = { limit: 60, window_seconds: 3600, retry_after: 3540 }
  expect(await refused(caller)).toMatchObject([429, "ai_rate_limited", details])
  expect(await refused(caller, "suggest_subjects")).toBeUndefined()
  expect(await refused({ ...caller, key_id: newId() })).toBeUndefined()
  const person = { kind: "console", key_id: null, user_id: newId() } as const
  expect(await refused({ ...caller, ...person, project_role: "admin" })).toBeUndefined()
  clock.advance({ seconds: 3540 })
  expect(await refused(caller)).toBeUndefined()
  configure({ "ai.calls_per_hour": 1 })
  expect((await refused(caller))?.[0]).toBe(429)
})

test("gate 3: the account has one quota for each action and month, whichever project asks", async () => {
  const caller = key()
  for (let call = 0; call < 25; call++) expect(await refused(caller)).toBeUndefined()
  const limits = { limit: 25, reset_at: "2026-12-01T00:00:00.000Z" }
  const details = { action: "draft_template", used: 25, ...limits }
  const elsewhere = { ...caller, project_id: newId(), key_id: newId() }
  expect(await refused(elsewhere)).toEqual([402, "ai_quota_exceeded", details])
  expect(await refused(caller, "rewrite_template")).toBeUndefined()
  expect(await counted(caller)).toMatchObject({ used: 25 })
  clock.freeze(millisFrom("2026-12-01T00:00:00.000Z"))
  expect(await refused(caller)).toBeUndefined()
})

test.skipIf(database_url === null)("gate 3: on two nodes at once: the same 25", async () => {
  const other = await openStore({ ...settings(), data_dir: folder, database_url })
  const nodes = [parts, { ...parts, store: other }]
  const caller = key()
  const call = (at: number) => admit(nodes[at % 2] ?? parts, caller, task())
  expect(await passing(50, "ai_quota_exceeded", call)).toBe(25)
  await other.close()
})

test("gate 3: what fails is given back, what succeeds or is left stays, and unlimited is counted", async () => {
  const limits = { ...limitsOfPlan("starter"), ai_draft_template_per_month: 1 }
  const caller = { ...key(), limits }
  await endCall(parts, await admit(parts, caller, task()), failed)
  const second = await endCall(parts, await admit(parts, caller, task()), succeeded)
  expect(second).toMatchObject({ cost_usd: 0.001, quota: { used: 1, limit: 1 } })
  expect((await refused(caller))?.[1]).toBe("ai_quota_exceeded")
  expect(await counted(caller)).toEqual({ used: 1, count: 1, spent: 1000, held: 0 })
  const fast = await admit(parts, key("enterprise"), task("suggest_subjects"))
  const unlimited = { cost_usd: 0, quota: { used: 1, limit: null } }
  expect(await endCall(parts, fast, succeeded)).toMatchObject(unlimited)
})

test("gate 3: a call that ends after the turn of the month settles the month in which it began", async () => {
  const caller = key()
  clock.freeze(millisFrom("2026-11-30T23:59:59.000Z"))
  const call = await admit(parts, caller, task())
  clock.advance({ seconds: 2 })
  const { quota } = await endCall(parts, call, failed)
  expect(quota).toEqual({ used: 0, limit: 25, resets_at: "2026-12-01T00:00:00.000Z" })
  expect(await counted(caller)).toEqual({ used: 0, count: 0, spent: 0, held: 0 })
})

test("gate 4: the largest cost must fit the budget, with what was spent and what open calls hold", async () => {
  const caller = key("pro", { budget_usd: 0.0309 })
  const open = await admit(parts, caller, task())
  const other = await admit(parts, caller, task("analyze_broadcast"))
  await admit(parts, caller, task())
  const over = [402, "ai_budget_exceeded", { spend_usd: 0.03, budget_usd: 0.0309 }]
  expect(await refused(caller)).toEqual(over)
  expect(await refused(caller, "analyze_broadcast")).toEqual(over)
  expect(await endCall(parts, open, succeeded)).toMatchObject({ cost_usd: 0.001 })
  // What was refused was given back.
  expect(await counted(caller)).toEqual({ used: 2, count: 1, spent: 1000, held: 10_000 })
  expect((await refused(caller))?.[2]).toMatchObject({ spend_usd: 0.021 })
  await endCall(parts, other, failed)
  expect(await refused(caller)).toBeUndefined()
})

test("gate 4: two tries hold twice as much; without a price no budget refuses", async () => {
  const caller = key("pro", { budget_usd: 0.0199 })
  const twice = admit(parts, caller, { ...task(), tries: 2 })
  expect((await refusalOf(twice))?.[1]).toBe("ai_budget_exceeded")
  const { project_settings } = key("pro", { budget_usd: 0 })
  expect(await refused({ ...caller, project_settings }, "suggest_subjects")).toBeUndefined()
  expect(await counted(caller, "suggest_subjects")).toMatchObject({ held: 0 })
})

test("gate 4: the ceiling of the server counts all projects", async () => {
  configure({ "ai.monthly_ceiling_usd": 0.025 })
  expect(await passing(5, "ai_budget_exceeded", () => admit(parts, key(), task()))).toBe(2)
  configure({ "ai.monthly_ceiling_usd": 0 })
  expect(await refused(key(), "suggest_subjects")).toBeUndefined()
})

test("gate 4: 50 at once at a budget for 25: exactly 25", async () => {
  const caller = key("scale", { budget_usd: 0.25 })
  const two: AiAction[] = ["draft_template", "generate_workflow"]
  const call = (at: number) => admit(parts, caller, task(two[at % 2]))
  expect(await passing(50, "ai_budget_exceeded", call)).toBe(25)
})

test("a call is settled once, and not after its lease", async () => {
  const caller = key()
  const [done, lost] = [await admit(parts, caller, task()), await admit(parts, caller, task())]
  const ends = await Promise.all([done, done].map((one) => endCall(parts, one, succeeded)))
  expect(ends.map(({ quota }) => quota.used)).toEqual([2, 2])

  clock.advance({ seconds: 179 })
  await freeOverdueCalls(store)
  expect(await counted(caller)).toEqual({ used: 2, count: 1, spent: 1000, held: 10_000 })
  clock.advance({ seconds: 1 })
  await Promise.all([freeOverdueCalls(store), freeOverdueCalls(store)])
  const left = { used: 1, count: 1, spent: 1000, held: 0 }
  expect(await counted(caller)).toEqual(left)
  expect((await endCall(parts, lost, succeeded)).quota.used).toBe(1)
  expect(await counted(caller)).toEqual(left)
  const of_all = { period: "2026-11", spent_micro: 1000, held_micro: 0 }
  expect(await store.read.select().from(aiInstanceSpending)).toEqual([of_all])
  expect(await store.read.select().from(aiCalls)).toEqual([])
})

test("many calls begin and end side by side, and the sums are right", async () => {
  const account_id = newId()
  const callers = Array.from({ length: 4 }, () => ({ ...key("enterprise"), account_id }))
  const ends = [succeeded, failed, { ...succeeded, keeps_quota: false }]
  const one = async (at: number) => {
    const caller = callers[at % 4] as Caller
    const call = await admit(parts, caller, task(AI_ACTIONS[at % 5]))
    await endCall(parts, call, ends[at % 3] as typeof failed)
  }
  await Promise.all(Array.from({ length: 120 }, (_, at) => one(at)))
  for (const action of AI_ACTIONS) {
    const rows = await Promise.all(callers.map((each) => counted(each, action)))
    const spent = TIER_OF[action] === "fast" ? 0 : 4000
    expect(rows).toEqual(Array(4).fill({ used: 8, count: 2, spent, held: 0 }))
  }
})
