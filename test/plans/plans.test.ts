import { describe, expect, test } from "bun:test"
import { loadSettings, useSettings } from "../../src/core/config"
import { type LimitName, PLAN_NAMES } from "../../src/core/config-plans"
import { boundsOf } from "../../src/core/time"
import { MONTH } from "../../src/http/field-schemas"
import { featuresOf, limitsOf, limitsOfPlan } from "../../src/plans/plans"

const rows: [LimitName, ...(number | null)[]][] = [
  ["requests_per_minute", 60, 300, 600, 1200, null],
  ["projects", 1, 3, 10, 50, null],
  ["webhooks", 2, 10, 50, null, null],
  ["emails_per_month", 3000, 50_000, 250_000, 1_500_000, null],
  ["push_per_month", 10_000, 100_000, 1_000_000, 10_000_000, null],
  ["sms_per_month", 100, 1000, 10_000, 50_000, null],
  ["in_app_per_month", 10_000, 100_000, 1_000_000, 10_000_000, null],
  ["mau", 1000, 10_000, 50_000, 500_000, null],
  ["organizations", 1, 1, null, null, null],
  ["stored_mb", 500, 5000, 50_000, 500_000, null],
  ["sends_per_second", 2, 10, 25, 100, null],
]

test.each(rows.map((row) => [row[0], row] as const))("%s is as specified", (name, row) => {
  const [, ...numbers] = row
  expect(PLAN_NAMES.map((plan) => limitsOfPlan(plan)[name])).toEqual(numbers)
})

test("features are those of the paid plans", () => {
  for (const plan of PLAN_NAMES) {
    const has = plan !== "free"
    const all = { smtp_submission: has, tracking_domain: has, ai_authoring: has }
    expect(featuresOf(plan)).toEqual(all)
  }
})

describe("numbers of the operator", () => {
  test("for one account stand above its plan, null among them", () => {
    const limits = limitsOf({ plan: "free", limits: { emails_per_month: 7, projects: null } })
    expect(limits).toMatchObject({ emails_per_month: 7, projects: null, webhooks: 2 })
  })

  test("of the configuration stand above the table, from the file and the environment", () => {
    const before = loadSettings()
    const environment = {
      BELFRY_PLANS_PRO_EMAILS_PER_MONTH: "123",
      BELFRY_PLANS_FREE_PROJECTS: "unlimited",
    }
    try {
      useSettings(loadSettings({ environment }))
      expect(limitsOfPlan("pro")).toMatchObject({ emails_per_month: 123, projects: 10 })
      expect(limitsOfPlan("free").projects).toBeNull()
    } finally {
      useSettings(before)
    }
  })

  test.each(["-1", "many", "1.5"])("%s is refused at the start", (value) => {
    const environment = { BELFRY_PLANS_PRO_MAU: value }
    expect(() => loadSettings({ environment })).toThrow("plans.pro.mau")
  })
})

test("a month ends where the next one begins, in UTC", () => {
  expect(boundsOf("2026-12")).toEqual({
    start: "2026-12-01T00:00:00.000Z",
    end: "2027-01-01T00:00:00.000Z",
  })
  expect(boundsOf("2028-02").end).toBe("2028-03-01T00:00:00.000Z")
  expect(
    ["2026-01", "2026-13", "2026-1", "26-01", ""].map((text) => new RegExp(MONTH).test(text)),
  ).toEqual([true, false, false, false, false])
})
