import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { clock, millisFrom } from "../../src/core/time"
import { admit } from "../../src/messages/admission"
import { quotas } from "../../src/plans/tables"
import {
  countByCountry,
  purgeCountryHours,
  refusalsByCountry,
} from "../../src/tenancy/country-limit"
import { countryHours } from "../../src/tenancy/tables"
import { testStore } from "../harness/store"
import { letter } from "../messages/letters"

const { store, [Symbol.asyncDispose]: close } = await testStore()
const { read } = clock
afterAll(async () => {
  clock.read = read
  await close()
})

let time = millisFrom("2026-11-21T10:20:00.000Z")
clock.read = () => time

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Sends and counts what has room. */
const send = (project_id: string, country: string | undefined, count: number) =>
  store.tx(async (tx) => {
    const sends = Array.from({ length: count }, () => ({ project_id, country }))
    const refusals = await refusalsByCountry(tx, sends)
    const admitted = sends.filter((_, at) => refusals[at] === null)
    await countByCountry(tx, admitted)
    return { admitted: admitted.length, refusal: refusals.find((one) => one !== null) }
  })

test("a project without a history sends 50 an hour to each country, and hears until when it waits", async () => {
  const project = newId()
  const { admitted, refusal } = await send(project, "+43", 60)
  expect(admitted).toBe(50)
  expect([refusal?.status, refusal?.code]).toEqual([429, "rate_limit_exceeded"])
  const wait = { retry_after: 2400, limit: 50, window_seconds: 3600 }
  expect(refusal?.details).toEqual({ ...wait, scope: "country", prefix: "+43" })
  expect(refusal?.headers).toEqual({ "retry-after": "2400" })
  expect((await send(project, "+49", 60)).admitted).toBe(50)
  expect((await send(project, undefined, 60)).admitted).toBe(60)
  expect((await send(newId(), "+43", 60)).admitted).toBe(50)
  time += HOUR
  expect((await send(project, "+43", 60)).admitted).toBe(50)
})

test("five times the mean of the busiest hours of the last seven days, and nothing of today", async () => {
  const project = newId()
  const hour = Math.floor(time / HOUR)
  const before = (days: number, sends: number) => ({
    ...{ project_id: project, prefix: "+43", hour: hour - days * 24, sends, most: 9999 },
  })
  const rows = [before(1, 70), { ...before(1, 69), hour: hour - 25 }, before(7, 21), before(8, 800)]
  await store.tx((tx) => tx.insert(countryHours).values(rows))
  expect((await send(project, "+43", 90)).admitted).toBe(65) // 5 × (70 + 21) / 7
  time += HOUR
  expect((await send(project, "+43", 90)).admitted).toBe(65)
})

test("a send that its country or the second refuses counts nowhere", async () => {
  const project_id = newId()
  const quota = { account_id: newId(), subject: newId(), metric: "sms" as const, plan: "free" }
  const allowance = { ...quota, limit: 500, sends_per_second: 10 }
  const texts = Array.from({ length: 60 }, () => ({
    message: letter({ project_id, channel: "sms", units: 3, country: "+43" }),
    allowance,
  }))
  const refused = await store.tx((tx) => admit(tx, texts))
  const scopes = [...refused.values()].map(({ details }) => (details as { scope: string }).scope)
  const count = (scope: string) => scopes.filter((one) => one === scope).length
  expect([count("country"), count("sends")]).toEqual([10, 40])
  const [row] = await store.read.select().from(quotas).where(eq(quotas.subject, allowance.subject))
  expect(row?.used).toBe(30)
  expect((await send(project_id, "+43", 60)).admitted).toBe(40)
})

test("side by side no more than one after another", async () => {
  const project = newId()
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(project, "+43", 4)))
  expect(answers.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(50)
})

test("hours that say nothing of the usual volume any more are forgotten", async () => {
  const project = newId()
  await send(project, "+43", 1)
  const left = async () =>
    (await store.read.select().from(countryHours)).filter((row) => row.project_id === project)
  time += 7 * DAY
  while ((await purgeCountryHours(store)) > 0);
  expect(await left()).toHaveLength(1)
  time += 2 * DAY
  while ((await purgeCountryHours(store)) > 0);
  expect(await left()).toEqual([])
})
