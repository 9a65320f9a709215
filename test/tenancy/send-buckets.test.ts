import { afterAll, describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { clock, millisFrom } from "../../src/core/time"
import { type SendBucket, takeFromBucket } from "../../src/tenancy/quotas"
import fc from "../harness/properties"
import { testStore } from "../harness/store"

const { store, [Symbol.asyncDispose]: close } = await testStore()
const { read } = clock
afterAll(async () => {
  clock.read = read
  await close()
})

let time = millisFrom("2026-11-21T10:00:00.000Z")
clock.read = () => time

const bucket = (limit: number | null, channel = "email"): SendBucket => ({
  ...{ project_id: newId(), channel, limit },
})

const send = (from: SendBucket, ...wishes: number[]) =>
  store.tx((tx) => takeFromBucket(tx, from, wishes))

const admitted = async (from: SendBucket, count: number) =>
  (await send(from, ...Array<number>(count).fill(1))).filter((refusal) => !refusal).length

test.each([1, 2, 3, 10, 25, 100])(
  "%d a second: that many at once, and that many a second later",
  async (limit) => {
    const mine = bucket(limit)
    expect(await admitted(mine, limit * 3)).toBe(limit)
    time += 1000
    expect(await admitted(mine, limit * 3)).toBe(limit)
  },
)

test("in no stretch of time is more let in than it holds, and one bucket", async () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 60 })
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 12 }), pauses, async (limit, all) => {
    const mine = bucket(limit)
    const start = time
    let total = 0
    for (const pause of all) {
      time += pause
      total += await admitted(mine, 5)
      expect(total).toBeLessThanOrEqual(Math.floor(((time - start) / 1000) * limit + limit + 0.001))
    }
  })
  await fc.assert(property, { numRuns: 20 })
})

test("side by side as one after another", async () => {
  const mine = bucket(25)
  const answers = await Promise.all(Array.from({ length: 80 }, () => admitted(mine, 1)))
  expect(answers.reduce((sum, one) => sum + one, 0)).toBe(25)
})

describe("a batch larger than the bucket", () => {
  test("is let in when it is empty, and drains for as long as it takes", async () => {
    const mine = bucket(10)
    expect(await send(mine, 100)).toEqual([null])
    const [refusal] = await send(mine, 1)
    expect(refusal?.details).toEqual({
      retry_after: 10,
      limit: 10,
      window_seconds: 1,
      scope: "sends",
    })
    expect(refusal?.headers).toEqual({ "retry-after": "10" })
    time += 9000
    expect(await admitted(mine, 1)).toBe(0)
    time += 1000
    expect(await admitted(mine, 20)).toBe(10)
  })

  test("waits while anything else drains", async () => {
    const mine = bucket(10)
    expect(await admitted(mine, 1)).toBe(1)
    expect((await send(mine, 100))[0]?.code).toBe("rate_limited")
    time += 1000
    expect(await send(mine, 100)).toEqual([null])
  })
})

test.each([
  ["email", "rate_limited" as const],
  ["sms", "rate_limit_exceeded" as const],
])("a full bucket of %s answers %s", async (channel, code) => {
  const [, refusal] = await send(bucket(1, channel), 1, 1)
  expect(refusal?.code).toBe(code)
})

test("a clock that leaps back holds nobody up for long", async () => {
  const mine = bucket(2)
  expect(await admitted(mine, 2)).toBe(2)
  time -= 3_600_000
  expect(await admitted(mine, 2)).toBe(2)
})

test("none a second lets nothing in; without a limit everything", async () => {
  expect(await admitted(bucket(0), 3)).toBe(0)
  expect(await admitted(bucket(null), 3000)).toBe(3000)
})
