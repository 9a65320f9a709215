import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { AI_ACTIONS, type AiAction } from "../../src/ai/actions"
import type { AiTask } from "../../src/ai/ai-task"
import { endCall, freeOverdueCalls, quotaOf, type Reservation } from "../../src/ai/calls"
import { admit, requireOwnProject } from "../../src/ai/gates"
import { aiCalls, aiInstanceSpending, aiQuotas, aiSpending } from "../../src/ai/tables"
import { loadSettings, type Settings, settings, useSettings } from "../../src/core/config"
import { ApiError } from "../../src/core/errors"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { clock, millisFrom } from "../../src/core/time"
import { type Caller, nobody, PROJECT_DEFAULTS } from "../../src/identity/caller"
import type { AiSettings } from "../../src/identity/tables"
import { limitsOfPlan } from "../../src/plans/plans"
import { openStore } from "../../src/store/open"
import { testStore } from "../harness/store"

const { store, folder, database_url, [Symbol.asyncDispose]: close } = await testStore()
const parts = { store, secrets: openSecrets({ data_dir: folder, master_key: null }) }
const { read } = clock
const before = loadSettings()
afterAll(async () => {
  clock.read = read
  useSettings(before)
  await close()
})

const PERIOD = "2026-11"
let time = 0
clock.read = () => time
beforeEach(() => {
  time = millisFrom("2026-11-15T12:00:00.000Z")
})
afterEach(() => useSettings(before))

const configure = (chosen: Partial<Settings>) =>
  useSettings({ ...before, values: { ...before.values, ...chosen } })

/** A million tokens cost so many dollars, so a token costs as many millionths. */
const PRICED = {
  "ai.gateway.price_per_mtok.standard": { input: 0, output: 10 },
  "ai.gateway.price_per_mtok.deep": { input: 0, output: 10 },
}
/** 1,000 tokens of output: 0.01 USD, where they are priced. */
const task = (action: AiAction = "draft_template", more: Partial<AiTask> = {}): AiTask => ({
  action,
  prompt: {
    ...{ version: "1", system: "", user: "", max_output_tokens: 1000 },
    schema: { name: "x", schema: {} },
  },
  read: async () => ({ complete: {} }),
  ...more,
})

const key = (
  plan = "starter",
  ai: Partial<AiSettings> = {},
  more: Partial<Caller> = {},
): Caller => ({
  ...nobody(""),
  ...{ kind: "key", key_id: newId(), account_id: newId(), project_id: newId(), plan },
  limits: limitsOfPlan(plan),
  project_settings: { ...PROJECT_DEFAULTS, ai: { ...PROJECT_DEFAULTS.ai, ...ai } },
  ...more,
})

type Refused = readonly unknown[] | undefined

const refusalOf = (work: Promise<unknown>): Promise<Refused> =>
  work.then(
    () => undefined,
    (error) => {
      if (!(error instanceof ApiError)) throw error
      return [error.status, error.code, error.details]
    },
  )
const refused = (caller: Caller, action?: AiAction) => refusalOf(admit(parts, caller, task(action)))

const succeeded = { usage: { input_tokens: 7, output_tokens: 100 }, keeps_quota: true }
const failed = { usage: null, keeps_quota: false }
const quota = (caller: Caller, action: AiAction = "draft_template") =>
  quotaOf(store.read, { account_id: caller.account_id, period: PERIOD, action, limit: null })
const spending = async ({ project_id }: Caller, action: AiAction = "draft_template") => {
  const rows = await store.read
    .select()
    .from(aiSpending)
    .where(eq(aiSpending.project_id, project_id))
  const row = rows.find((each) => each.action === action)
  return row && { count: row.count, spent: row.spent_micro, held: row.held_micro }
}
const instance = async () =>
  (await store.read.select().from(aiInstanceSpending)).find(({ period }) => period === PERIOD)

describe("gate 1", () => {
  const person = (project_role: Caller["project_role"], ai: Partial<AiSettings>) =>
    key("pro", ai, { kind: "console", key_id: null, user_id: newId(), project_role })
  const off = (plan: string, more = {}) => [
    403,
    "feature_not_enabled",
    { feature: "ai", plan, ...more },
  ]

  test("the plan, the switch, the role of a person and the tier decide, in this order", async () => {
    expect(await refused(key("free"))).toEqual(off("free", { required_plan: "starter" }))
    expect(await refused(key("starter", { enabled: false }))).toEqual(off("starter"))
    const admins = { allowed_roles: ["admin" as const] }
    expect(await refused(person("developer", admins))).toEqual(
      off("pro", { required_role: "admin" }),
    )
    expect(await refused(person("admin", admins))).toBeUndefined()
    expect(await refused(person("developer", {}))).toBeUndefined()
    expect(await refused(key("pro", admins))).toBeUndefined()
    const no_deep = key("pro", { blocked_tiers: ["deep"] })
    for (const action of AI_ACTIONS) {
      const blocked = ["generate_workflow", "analyze_broadcast"].includes(action)
      expect(await refused(no_deep, action)).toEqual(blocked ? off("pro") : undefined)
    }
    expect(await quota(no_deep, "analyze_broadcast")).toMatchObject({ used: 0 })
  })

  test("another project than the caller's is refused", () => {
    const caller = key()
    requireOwnProject(caller, caller.project_id)
    expect(() => requireOwnProject(caller, newId())).toThrow(ApiError)
  })
})

test("gate 2: 60 in an hour, of each key or person and action", async () => {
  const caller = key("scale")
  for (let call = 0; call < 60; call++) expect(await refused(caller)).toBeUndefined()
  time += 60_000
  const full = await refused(caller)
  expect(full).toMatchObject([429, "ai_rate_limited", { limit: 60, window_seconds: 3600 }])
  expect(full?.[2]).toMatchObject({ retry_after: 3540 })
  expect(await refused(caller, "suggest_subjects")).toBeUndefined()
  expect(await refused({ ...caller, key_id: newId() })).toBeUndefined()
  const person = { kind: "console", key_id: null, user_id: newId() } as const
  expect(await refused({ ...caller, ...person, project_role: "admin" })).toBeUndefined()
  time += 3_540_000
  expect(await refused(caller)).toBeUndefined()
  configure({ "ai.calls_per_hour": 1 })
  expect((await refused(caller))?.[0]).toBe(429)
})

describe("gate 3", () => {
  test("the account has one quota for each action and month, whichever project asks", async () => {
    const caller = key()
    for (let call = 0; call < 25; call++) expect(await refused(caller)).toBeUndefined()
    const limits = { limit: 25, reset_at: "2026-12-01T00:00:00.000Z" }
    const details = { action: "draft_template", used: 25, ...limits }
    const elsewhere = { ...caller, project_id: newId(), key_id: newId() }
    expect(await refused(elsewhere)).toEqual([402, "ai_quota_exceeded", details])
    expect(await refused(caller, "rewrite_template")).toBeUndefined()
    expect(await quota(caller)).toMatchObject({ used: 25 })
    time = millisFrom("2026-12-01T00:00:00.000Z")
    expect(await refused(caller)).toBeUndefined()
  })

  test.skipIf(database_url === null)("on two nodes at once: the same 25", async () => {
    const other = await openStore({ ...settings(), data_dir: folder, database_url })
    const nodes = [parts, { ...parts, store: other }]
    const caller = key()
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        refusalOf(admit(nodes[at % 2] ?? parts, caller, task())),
      ),
    )
    await other.close()
    expect(answers.filter((one) => one === undefined)).toHaveLength(25)
  })

  test("what fails is given back, what succeeds or is left stays, and unlimited is counted", async () => {
    const limits = { ...limitsOfPlan("starter"), ai_draft_template_per_month: 1 }
    const caller = key("starter", {}, { limits })
    const first = await admit(parts, caller, task())
    expect((await endCall(parts, first, failed)).quota).toEqual({
      ...{ used: 0, limit: 1, resets_at: "2026-12-01T00:00:00.000Z" },
    })
    expect(await spending(caller)).toEqual({ count: 0, spent: 0, held: 0 })
    const second = await admit(parts, caller, task())
    const { cost_usd, quota } = await endCall(parts, second, succeeded)
    expect([cost_usd, quota.used]).toEqual([0, 1])
    expect((await refused(caller))?.[1]).toBe("ai_quota_exceeded")
    expect(await spending(caller)).toEqual({ count: 1, spent: 0, held: 0 })

    const unlimited = key("enterprise")
    const call = await admit(parts, unlimited, task())
    expect((await endCall(parts, call, succeeded)).quota).toMatchObject({ used: 1, limit: null })
  })

  test("a call that ends after the turn of the month settles the month in which it began", async () => {
    configure(PRICED)
    const caller = key()
    time = millisFrom("2026-11-30T23:59:59.000Z")
    const call = await admit(parts, caller, task())
    time = millisFrom("2026-12-01T00:00:01.000Z")
    const { quota } = await endCall(parts, call, failed)
    expect(quota).toEqual({ used: 0, limit: 25, resets_at: "2026-12-01T00:00:00.000Z" })
    expect(await spending(caller)).toEqual({ count: 0, spent: 0, held: 0 })
  })
})

describe("gate 4", () => {
  test("the largest cost must fit the budget, with what was spent and what open calls hold", async () => {
    configure(PRICED)
    const caller = key("pro", { budget_usd: 0.0309 })
    const open = await admit(parts, caller, task())
    const other = await admit(parts, caller, task("analyze_broadcast"))
    await admit(parts, caller, task())
    const over = [402, "ai_budget_exceeded", { spend_usd: 0.03, budget_usd: 0.0309 }]
    expect(await refused(caller)).toEqual(over)
    expect(await refused(caller, "analyze_broadcast")).toEqual(over)
    expect(await quota(caller)).toMatchObject({ used: 2 }) // the refused ones were given back
    expect(await endCall(parts, open, succeeded)).toMatchObject({ cost_usd: 0.001 })
    expect(await spending(caller)).toEqual({ count: 1, spent: 1000, held: 10_000 })
    expect((await refused(caller))?.[2]).toMatchObject({ spend_usd: 0.021 })
    await endCall(parts, other, failed)
    expect(await refused(caller)).toBeUndefined()
  })

  test("two tries hold twice as much; without a price no budget refuses", async () => {
    configure(PRICED)
    const caller = key("pro", { budget_usd: 0.0199 })
    const twice = admit(parts, caller, task("draft_template", { tries: 2 }))
    expect((await refusalOf(twice))?.[1]).toBe("ai_budget_exceeded")
    const { project_settings } = key("pro", { budget_usd: 0 })
    expect(await refused({ ...caller, project_settings }, "suggest_subjects")).toBeUndefined()
    expect(await spending(caller, "suggest_subjects")).toMatchObject({ held: 0 })
  })

  test("the ceiling of the server counts all projects", async () => {
    const spent = await instance()
    const used = ((spent?.spent_micro ?? 0) + (spent?.held_micro ?? 0)) / 1e6
    configure({ ...PRICED, "ai.monthly_ceiling_usd": used + 0.025 })
    const answers = await Promise.all(Array.from({ length: 5 }, () => refused(key())))
    expect(answers.filter((one) => one === undefined)).toHaveLength(2)
    expect(answers.filter((one) => one?.[1] === "ai_budget_exceeded")).toHaveLength(3)
    configure({ "ai.monthly_ceiling_usd": 0 })
    expect(await refused(key())).toBeUndefined()
  })

  test("50 at once at a budget for 25: exactly 25", async () => {
    configure(PRICED)
    const caller = key("scale", { budget_usd: 0.25 })
    const two: AiAction[] = ["draft_template", "generate_workflow"]
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) => refused(caller, two[at % 2])),
    )
    expect(answers.filter((one) => one === undefined)).toHaveLength(25)
  })
})

describe("a call", () => {
  test("is settled once, and not after its lease", async () => {
    configure(PRICED)
    const caller = key()
    const before = await instance()
    const [done, lost] = [await admit(parts, caller, task()), await admit(parts, caller, task())]
    const ends = await Promise.all([done, done].map((one) => endCall(parts, one, succeeded)))
    expect(ends.map(({ quota }) => quota.used)).toEqual([2, 2])
    expect(await spending(caller)).toEqual({ count: 1, spent: 1000, held: 10_000 })

    time += 179_000
    await freeOverdueCalls(store)
    expect(await spending(caller)).toMatchObject({ held: 10_000 })
    time += 1000
    await Promise.all([freeOverdueCalls(store), freeOverdueCalls(store)])
    expect(await spending(caller)).toEqual({ count: 1, spent: 1000, held: 0 })
    expect(await quota(caller)).toMatchObject({ used: 1 })
    expect((await endCall(parts, lost, succeeded)).quota.used).toBe(1)
    expect(await spending(caller)).toEqual({ count: 1, spent: 1000, held: 0 })
    const after = await instance()
    expect((after?.spent_micro ?? 0) - (before?.spent_micro ?? 0)).toBe(1000)
    const open = await store.read
      .select()
      .from(aiCalls)
      .where(eq(aiCalls.project_id, caller.project_id))
    expect(open).toEqual([])
  })

  test("many begin and end side by side, and the sums are right", async () => {
    configure(PRICED)
    const account_id = newId()
    const callers = Array.from({ length: 4 }, () => key("enterprise", {}, { account_id }))
    const ends = [succeeded, failed, { ...succeeded, keeps_quota: false }]
    const one = async (at: number) => {
      const caller = callers[at % 4] as Caller
      const call: Reservation = await admit(parts, caller, task(AI_ACTIONS[at % 5]))
      await endCall(parts, call, ends[at % 3] as typeof failed)
    }
    await Promise.all(Array.from({ length: 120 }, (_, at) => one(at)))
    const used = await store.read.select().from(aiQuotas).where(eq(aiQuotas.account_id, account_id))
    expect(used.map((row) => row.used)).toEqual([8, 8, 8, 8, 8])
    const rows = await Promise.all(callers.map((each) => spending(each)))
    expect(rows.reduce((sum, row) => sum + (row?.count ?? 0), 0)).toBe(8)
    expect(rows.reduce((sum, row) => sum + (row?.spent ?? 0), 0)).toBe(16_000)
    expect(rows.every((row) => row?.held === 0)).toBe(true)
  })
})
