import { afterAll, describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { clock } from "../../src/core/time"
import { purgeWindows, RateLimits } from "../../src/http/rate-limits"
import { rateWindows } from "../../src/http/tables"
import fc from "../harness/properties"
import { testStore } from "../harness/store"

const { store, [Symbol.asyncDispose]: close } = await testStore()
const { read } = clock
afterAll(async () => {
  clock.read = read
  await close()
})

const MINUTE = 60_000
const START = Date.UTC(2026, 10, 21, 10, 0, 0)
let time = START
clock.read = () => time

/** Whether a request was admitted; the window it was told of comes with it. */
async function ask(limits: RateLimits, who: string, limit: number) {
  try {
    return { ok: true, ...(await limits.take(who, limit)) }
  } catch (error) {
    const { details } = error as { details: { retry_after: number } }
    return { ok: false, ...details }
  }
}

describe("one node", () => {
  test("admits exactly the limit in each minute, however requests fall into it", async () => {
    const moments = fc.array(fc.integer({ min: 0, max: 5 * MINUTE }), { maxLength: 120 })
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 20 }),
      moments,
      async (limit, at) => {
        const limits = new RateLimits()
        const asked = new Map<number, number>()
        const admitted = new Map<number, number>()
        for (const moment of at.sort((a, b) => a - b)) {
          time = START + moment
          const minute = Math.floor(time / MINUTE)
          asked.set(minute, (asked.get(minute) ?? 0) + 1)
          const { ok } = await ask(limits, "one", limit)
          if (ok) admitted.set(minute, (admitted.get(minute) ?? 0) + 1)
        }
        for (const [minute, wanted] of asked) {
          expect(admitted.get(minute) ?? 0).toBe(Math.min(wanted, limit))
        }
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  test("a window ends at the full minute, to the millisecond", async () => {
    const limits = new RateLimits()
    time = START + MINUTE - 1
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: true, reset: (START + MINUTE) / 1000 })
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: false, retry_after: 1 })
    time += 1
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: true, remaining: 0 })
  })

  test("a clock that steps back a little gives nobody a second window", async () => {
    const steps = fc.array(fc.integer({ min: -20_000, max: 20_000 }), { maxLength: 80 })
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 10 }),
      steps,
      async (limit, all) => {
        const limits = new RateLimits()
        time = START + 10 * MINUTE
        let furthest = time
        let admitted = 0
        for (const step of all) {
          // Never further back than an adjustment of a clock is.
          time = Math.max(time + step, furthest - MINUTE + 1)
          furthest = Math.max(furthest, time)
          if ((await ask(limits, "one", limit)).ok) admitted += 1
        }
        const minutes =
          Math.floor(furthest / MINUTE) - Math.floor((START + 9 * MINUTE) / MINUTE) + 1
        expect(admitted).toBeLessThanOrEqual(limit * minutes)
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  test("a used window stays used when the clock goes back and forth", async () => {
    const limits = new RateLimits()
    time = START + 1000
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: true })
    time = START - 1000
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: false })
    time = START + 2000
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: false })
  })

  test("a clock that leaps back by an hour locks nobody out", async () => {
    const limits = new RateLimits()
    time = START
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: true })
    time = START - 60 * MINUTE
    expect(await ask(limits, "x", 1)).toMatchObject({ ok: true })
    const refused = await ask(limits, "x", 1)
    expect(refused).toMatchObject({ ok: false })
    expect((refused as { retry_after: number }).retry_after).toBeLessThanOrEqual(60)
  })

  test("a flood of addresses makes no caller's window begin anew", async () => {
    const limits = new RateLimits()
    time = START
    expect(await ask(limits, "caller:x", 1)).toMatchObject({ ok: true })
    for (let at = 0; at < 110_000; at++) {
      const ip = `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
      await limits.takeEntry(ip, 60)
      limits.see(ip)
    }
    expect(await ask(limits, "caller:x", 1)).toMatchObject({ ok: false })
  })

  test("whoever takes a new IPv6 address for each try is one stranger all the same", async () => {
    const limits = new RateLimits()
    const outcomes: string[] = []
    for (let at = 0; at < 400; at++) {
      try {
        limits.countFailure(`2001:db8:1:2::${at.toString(16)}`)
        outcomes.push("counted")
      } catch {
        outcomes.push("refused")
      }
    }
    expect(outcomes.indexOf("refused")).toBe(300)
    expect(() => limits.countFailure("2001:db8:1:3::1")).not.toThrow()
    for (let at = 0; at < 60; at++) await limits.takeEntry(`2001:db8:1:2:${at}::1`, 60)
    await expect(limits.takeEntry("2001:db8:1:2::1", 60)).rejects.toThrow()
  })

  test("a thousand at once: exactly the limit", async () => {
    const limits = new RateLimits()
    const all = await Promise.all(Array.from({ length: 1000 }, () => ask(limits, "x", 300)))
    expect(all.filter(({ ok }) => ok)).toHaveLength(300)
  })
})

describe("several nodes on one database", () => {
  const nodes = (count: number) => Array.from({ length: count }, () => new RateLimits(store))

  test("one that is alone admits exactly the limit", async () => {
    time = START
    for (const limit of [1, 7, 60, 300]) {
      const [node] = nodes(2)
      if (!node) throw new Error("no node")
      const who = newId()
      const all = await Promise.all(Array.from({ length: limit + 50 }, () => ask(node, who, limit)))
      expect(all.filter(({ ok }) => ok)).toHaveLength(limit)
    }
  })

  test("together they are at most a tenth above, and no more than a few below", async () => {
    const shares = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 400, maxLength: 400 })
    const property = fc.asyncProperty(fc.constantFrom(60, 300), shares, async (limit, which) => {
      time += MINUTE
      const all = nodes(3)
      const who = newId()
      const answers = await Promise.all(
        which.map((node) => ask(all[node] ?? new RateLimits(), who, limit)),
      )
      const admitted = answers.filter(({ ok }) => ok).length
      expect(admitted).toBeLessThanOrEqual(Math.floor(limit * 1.1))
      expect(admitted).toBeGreaterThanOrEqual(limit * 0.8)
    })
    await fc.assert(property, { numRuns: 4 })
  })

  test("each minute is a window of its own, also for those who come back to it", async () => {
    const [one, other] = nodes(2)
    if (!one || !other) throw new Error("no node")
    const who = newId()
    const use = async (node: RateLimits) => {
      let admitted = 0
      for (let count = 0; count < 30; count++) if ((await ask(node, who, 10)).ok) admitted += 1
      return admitted
    }
    time = START + 100 * MINUTE
    expect(await use(one)).toBe(10)
    time += MINUTE
    expect(await use(one)).toBe(10)
    time -= MINUTE
    expect(await use(other)).toBeLessThanOrEqual(1)
  })

  test("windows that are over are forgotten", async () => {
    time = START + 200 * MINUTE
    const [node] = nodes(1)
    if (node) await ask(node, "old", 10)
    time += 4 * MINUTE
    if (node) await ask(node, "new", 10)
    await purgeWindows(store)
    const left = await store.read.select().from(rateWindows)
    expect(left.map(({ name }) => name)).toEqual(["new"])
  })
})
