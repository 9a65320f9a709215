import { expect, test } from "bun:test"
import { and, eq, isNull, ne, sql } from "drizzle-orm"
import { isoFrom, millis, millisFrom, secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { inFlightOf } from "../../src/jobs/in-flight"
import { WorkLoop } from "../../src/jobs/loop"
import type { Channel } from "../../src/messages/channel"
import { accept, messageTable } from "../../src/messages/pipeline"
import { messages } from "../../src/messages/tables"
import { countRows } from "../../src/store/rows"
import { movableClock } from "../harness/clock"
import { expectNoneTwice } from "../harness/nothing-lost"
import { quietLog } from "../harness/quiet"
import { sizes } from "../harness/sizes"
import { testStore } from "../harness/store"
import { letter, outcome, told } from "./letters"

quietLog()
const clock = movableClock()

const TOGETHER = 500
const CONCURRENCY = 40
/** What a process may claim at once, running and ahead (`jobs/loop.ts`), and what waits for the disk. */
const MOST_CLAIMED = 2 * 160 + 1000
/** Far less than the messages take: they stay in the database until they are claimed. */
const MOST_MEGABYTES = 96

/** Counts what it is handed. It delivers at once; what was scheduled, after `begun`. */
function counting(begun: Promise<void>) {
  const handed = new Map<string, number>()
  const channel: Channel = {
    async deliver(message) {
      handed.set(message.id, (handed.get(message.id) ?? 0) + 1)
      if (message.scheduled_at) await begun
      return outcome([told(message.address, { status: "delivered" })])
    },
  }
  return { handed, channels: { email: channel, push: channel, sms: channel, in_app: channel } }
}

const heapMegabytes = () => {
  Bun.gc(true)
  return process.memoryUsage().heapUsed / 1024 / 1024
}

test(`${sizes.scheduled} messages that are due at the same second are sent then, each once`, async () => {
  await using base = await testStore()
  const { store } = base
  clock.freeze()
  const scheduled_at = isoFrom(Math.ceil(millisFrom(secondsFromNow(3600)) / 1000) * 1000)
  for (let made = 0; made < sizes.scheduled; made += TOGETHER) {
    const some = Array.from({ length: TOGETHER }, () => letter({ scheduled_at }))
    await store.tx((tx) => accept(tx, some))
  }
  const plain = letter()
  await store.tx((tx) => accept(tx, [plain]))

  const begun = Promise.withResolvers<void>()
  const { handed, channels } = counting(begun.promise)
  const alone = store.read.isAlone
  const table = messageTable(store, channels)
  const loop = new WorkLoop({
    ...{ store, table, alone },
    ...{ concurrency: CONCURRENCY, lease_ms: 60_000 },
  })
  const before = heapMegabytes()
  let [claimed, megabytes] = [0, 0]
  await loop.start()
  try {
    while (handed.size < 1) await Bun.sleep(5)
    clock.advance({ seconds: (millisFrom(scheduled_at) - millis() - 1) / 1000 })
    await Bun.sleep(1500) // more than one poll
    expect([...handed.keys()]).toEqual([plain.id]) // a millisecond before nothing of them begins

    clock.advance({ seconds: 0.001 })
    const urgent = letter({ stream: "auth" })
    while ((await countRows(store.read, messages, ne(messages.status, "delivered"))) > 0) {
      const running = inFlightOf(store.read, "messages")?.ids().length ?? loop.running
      claimed = Math.max(claimed, running)
      megabytes = Math.max(megabytes, heapMegabytes() - before)
      if (handed.size > 1 && !handed.has(urgent.id) && claimed > 0) {
        const behind = handed.size
        await store.tx((tx) => accept(tx, [urgent]))
        begun.resolve()
        while (!handed.has(urgent.id)) await Bun.sleep(1)
        // What was claimed already goes first, and nothing of the rest.
        expect(handed.size - behind).toBeLessThan(2 * MOST_CLAIMED)
      }
      await Bun.sleep(1)
    }
  } finally {
    await loop.stop(10_000)
  }
  expect(handed.size).toBe(sizes.scheduled + 2)
  expectNoneTwice(handed)
  expect(claimed).toBeLessThanOrEqual(MOST_CLAIMED)
  expect(megabytes).toBeLessThan(MOST_MEGABYTES)
  const queued = eq(events.type, "email.queued")
  expect(await countRows(store.read, events, queued)).toBe(sizes.scheduled + 2)
  const once = sql`${events.subject_id} IN (SELECT subject_id FROM events WHERE type = 'email.queued' GROUP BY subject_id HAVING count(*) > 1)`
  expect(await countRows(store.read, events, once)).toBe(0)
  expect(await countRows(store.read, messages, isNull(messages.last_event_type))).toBe(0)
  const early = and(eq(messages.scheduled_at, scheduled_at), sql`sent_at < scheduled_at`)
  expect(await countRows(store.read, messages, early)).toBe(0)
  console.log(`${sizes.scheduled} at once: ${claimed} claimed, ${Math.round(megabytes)} MB more`)
})
