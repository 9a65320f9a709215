import { expect, test } from "bun:test"
import { sql } from "drizzle-orm"
import { deliveries } from "../../src/webhooks/tables"
import { type Received, receiver } from "../fakes/receiver"
import { testHooks, until } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { sizes } from "../harness/sizes"

const EVENTS = sizes.events
const ENDPOINTS = 50
const TOGETHER = 50
const LIMIT_MS = 15 * 60_000

/** Seeded, so that a run which fails can be had again (mulberry32). */
function numbers(seed: number) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Fails 30 %, but never more than 7 times in a row, and hangs on 1 %; by path, as endpoints do. */
function flaky() {
  const random = numbers(42)
  const in_a_row = new Map<string, number>()
  const taken = new Map<string, number>()
  let failed = 0
  let hung = 0
  const answer = ({ path, id }: Received): Response | Promise<Response> => {
    const drawn = random()
    const before = in_a_row.get(path) ?? 0
    if (drawn < 0.31 && before < 7) {
      in_a_row.set(path, before + 1)
      failed += 1
      if (drawn >= 0.01) return new Response("no", { status: 500 })
      hung += 1
      return new Promise(() => {})
    }
    in_a_row.set(path, 0)
    taken.set(id, (taken.get(id) ?? 0) + 1)
    return new Response("yes")
  }
  return { answer, taken, counts: () => ({ failed, hung }) }
}

test(
  `${EVENTS} events to receivers that fail and hang all end delivered or exhausted, each once`,
  async () => {
    // The breaker has its default: hangs end in the midst of others' ends, and must not open it.
    await using hooks = await testHooks({ "webhooks.timeout": 1000 })
    const fake = flaky()
    using inbox = receiver(fake.answer)
    const retry_policy = { max_attempts: 10, intervals: [1] }
    const projects = Array.from({ length: ENDPOINTS }, (_, number) => idFor(`project-${number}`))
    for (const [number, project_id] of projects.entries()) {
      await hooks.endpoint({ url: `${inbox.url}/${number}`, project_id, retry_policy })
    }
    await hooks.deliver()
    const ids: string[] = []
    for (let round = 0; round < EVENTS / TOGETHER; round++) {
      const project_id = projects[round % ENDPOINTS] ?? ""
      ids.push(...(await hooks.emit(TOGETHER, { project_id })))
    }
    await until(async () => (await counts()).open === 0)
    expect(new Set(ids).size).toBe(EVENTS)
    const { open: _, ...ended } = await counts()
    expect(ended.success + ended.exhausted).toBe(EVENTS)
    const rows = await hooks.store.read
      .select({ event_id: deliveries.event_id, status: deliveries.status })
      .from(deliveries)
    expect(new Set(rows.map(({ event_id }) => event_id))).toEqual(new Set(ids))
    const delivered = rows.filter(({ status }) => status === "success")
    const once = delivered.filter(({ event_id }) => fake.taken.get(event_id) === 1)
    expect(once).toHaveLength(delivered.length)
    expect(fake.taken.size).toBe(delivered.length)
    const { failed, hung } = fake.counts()
    expect(failed).toBeGreaterThan(EVENTS * 0.3)
    expect(hung).toBeGreaterThan(EVENTS * 0.005)

    async function counts() {
      const rows = await hooks.store.read
        .select({ status: deliveries.status, count: sql<number>`count(*)` })
        .from(deliveries)
        .groupBy(deliveries.status)
      await Bun.sleep(200)
      const of = (status: string) => Number(rows.find((row) => row.status === status)?.count ?? 0)
      const open = of("pending") + of("failed") + of("held")
      return { open, success: of("success"), exhausted: of("exhausted") }
    }
  },
  LIMIT_MS,
)
