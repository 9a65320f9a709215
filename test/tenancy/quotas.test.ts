import { afterAll, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { clock, millisFrom, today } from "../../src/core/time"
import * as quotas from "../../src/tenancy/quotas"
import { add } from "../../src/tenancy/usage"
import fc from "../harness/properties"
import { testStore } from "../harness/store"

const { store, [Symbol.asyncDispose]: close } = await testStore()
const { read } = clock
afterAll(async () => {
  clock.read = read
  await close()
})

/** The clock of this file: tests set it. */
let time = millisFrom("2026-11-15T12:00:00.000Z")
clock.read = () => time

const account = (limit: number | null, subject = newId()): quotas.MonthlyQuota => ({
  subject,
  metric: "email",
  limit,
})

const takeEach = (wishes: number[], from: quotas.MonthlyQuota) =>
  store.tx((tx) => quotas.reserve(tx, from, wishes))

/** As many single units as fit. */
const take = async (wanted: number, from: quotas.MonthlyQuota) =>
  (await takeEach(Array(wanted).fill(1), from)).admitted.filter(Boolean).length

const sizes = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 25 })

/** What a counter in one head would have answered. */
function model(limit: number, wishes: number[], used = 0) {
  const admitted = wishes.map((units) => {
    const fits = used + units <= limit
    if (fits) used += units
    return fits
  })
  return { admitted, used }
}

test("one after another, wishes are admitted as a plain counter would", async () => {
  const property = fc.asyncProperty(fc.integer({ min: 0, max: 200 }), sizes, async (limit, all) => {
    const mine = account(limit)
    const wanted = model(limit, all)
    const { admitted, used } = await takeEach(all, mine)
    expect({ admitted, used }).toEqual(wanted)
  })
  await fc.assert(property, { numRuns: 30 })
})

test("side by side, what is admitted never passes the limit, and what is left fits nobody", async () => {
  const property = fc.asyncProperty(fc.integer({ min: 0, max: 150 }), sizes, async (limit, all) => {
    const mine = account(limit)
    const answers = await Promise.all(all.map((units) => takeEach([units], mine)))
    const sum = (fits: boolean) =>
      all.filter((_, at) => answers[at]?.admitted[0] === fits).reduce((a, b) => a + b, 0)
    expect(sum(true)).toBeLessThanOrEqual(limit)
    const left = limit - sum(true)
    const refused = all.filter((_, at) => !answers[at]?.admitted[0])
    for (const units of refused) expect(units).toBeGreaterThan(left)
    expect(await take(1_000_000, mine)).toBe(left)
  })
  await fc.assert(property, { numRuns: 15 })
})

test("a thousand at once against five hundred: exactly five hundred", async () => {
  const mine = account(500)
  const answers = await Promise.all(Array.from({ length: 1000 }, () => take(1, mine)))
  expect(answers.filter((admitted) => admitted === 1)).toHaveLength(500)
})

test("what is given back can be taken again, and never more than was taken", async () => {
  const mine = account(10)
  expect(await take(10, mine)).toBe(10)
  await store.tx((tx) => quotas.giveBack(tx, mine, 4))
  expect(await take(9, mine)).toBe(4)
  await store.tx((tx) => quotas.giveBack(tx, mine, 1000))
  expect(await take(1000, mine)).toBe(10)
})

test("a transaction that is undone has taken nothing", async () => {
  const mine = account(5)
  const undone = store.tx(async (tx) => {
    await quotas.reserve(tx, mine, [5])
    throw new Error("undone")
  })
  await expect(undone).rejects.toThrow("undone")
  expect(await take(9, mine)).toBe(5)
})

test("a month begins anew at its first millisecond, in UTC", async () => {
  const mine = account(3)
  time = millisFrom("2026-11-30T23:59:59.999Z")
  expect(await take(5, mine)).toBe(3)
  time += 1
  expect(await take(5, mine)).toBe(3)
  expect(await take(1, mine)).toBe(0)
})

test("a clock that steps back over the boundary finds the old month as it was", async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 20 }),
    fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 9 })), { maxLength: 20 }),
    async (limit, steps) => {
      const mine = account(limit)
      const admitted = { false: 0, true: 0 }
      for (const [next, units] of steps) {
        time = millisFrom(next ? "2026-12-01T00:00:00.000Z" : "2026-11-30T23:59:59.000Z")
        admitted[`${next}`] += await take(units, mine)
      }
      expect(Math.max(admitted.true, admitted.false)).toBeLessThanOrEqual(limit)
    },
  )
  await fc.assert(property, { numRuns: 15 })
})

test("a share is told once a month, when it is reached", async () => {
  time = millisFrom("2027-03-01T00:00:00.000Z")
  const mine = account(10)
  const passed = async (units: number) => (await takeEach([units], mine)).passed
  expect(await passed(7)).toEqual([])
  expect(await passed(1)).toEqual([80])
  expect(await passed(1)).toEqual([])
  await store.tx((tx) => quotas.giveBack(tx, mine, 5))
  expect(await passed(5)).toEqual([])
  expect(await passed(1)).toEqual([100])
  time = millisFrom("2027-04-01T00:00:00.000Z")
  expect(await passed(10)).toEqual([80, 100])
})

test("where nothing is allowed, nobody is told that all of it is used", async () => {
  const { admitted, passed } = await takeEach([1], account(0))
  expect([admitted, passed]).toEqual([[false], []])
})

test("a row that is not there yet begins with what was counted", async () => {
  const mine = account(10)
  const own = { account_id: mine.subject, project_id: newId(), day: today() }
  await store.tx((tx) => add(tx, [{ ...own, metric: "email", value: 8 }]))
  expect([await take(5, mine), await take(5, mine)]).toEqual([2, 0])
})

test("without a limit everything is admitted, and nothing is kept", async () => {
  const mine = account(null)
  expect(await take(1_000_000, mine)).toBe(1_000_000)
  expect(await take(5, { ...mine, limit: 5 })).toBe(5)
})
