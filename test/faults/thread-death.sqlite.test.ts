import { expect, test } from "bun:test"
import { eq, isNotNull, or, type SQL } from "drizzle-orm"
import { messages } from "../../src/messages/tables"
import { countingRelay } from "../fakes/counting-relay"
import { movableClock } from "../harness/clock"
import { expectNoneLost } from "../harness/nothing-lost"
import { quietLog } from "../harness/quiet"
import { serverHere } from "../harness/server-here"
import { until } from "../scenarios/mails"

quietLog()
const clock = movableClock()

const SENDERS = 12
const EACH = 25
const DEATHS = 3
/** Deliveries at once. */
const ON_THE_WIRE = 20
/** What was on the wire is tried again after a minute. */
const RETRY_SECONDS = 61

test("the mailer and all other threads die alone under load, and no message is lost", async () => {
  const threads: Worker[] = []
  using _ = watchThreads(threads)
  using relay = countingRelay({ delay_ms: 5 })
  await using server = await serverHere(relay.port)
  const ids: string[] = []
  const sender = async () => {
    for (let at = 0; at < EACH; at++) ids.push(await server.send())
  }
  const load = Promise.all(Array.from({ length: SENDERS }, sender))
  for (let death = 1; death <= DEATHS; death++) {
    const wanted = (death * SENDERS * EACH) / (DEATHS + 2)
    await until(`${wanted} at the relay`, () => relay.receipts.length >= wanted)
    for (const thread of threads.splice(0)) thread.terminate()
  }
  await load
  const is_sent = eq(messages.status, "sent")
  const numberOf = async (which: SQL | undefined) =>
    (await server.store.read.select({ id: messages.id }).from(messages).where(which)).length
  const tried = or(is_sent, isNotNull(messages.status_reason))
  await until("each was tried", async () => (await numberOf(tried)) === ids.length)
  clock.advance({ seconds: RETRY_SECONDS })
  await until("all are sent", async () => (await numberOf(is_sent)) === ids.length)
  const counts = relay.counts()
  expectNoneLost(ids.filter((id) => !counts.has(`<${id}@example.test>`)))
  expect(relay.receipts.length - counts.size).toBeLessThanOrEqual(DEATHS * ON_THE_WIRE)
})

/** Collects the threads that start until it is disposed of. */
function watchThreads(threads: Worker[]): Disposable {
  const original = globalThis.Worker
  globalThis.Worker = class extends original {
    constructor(...given: ConstructorParameters<typeof original>) {
      super(...given)
      threads.push(this)
    }
  }
  return {
    [Symbol.dispose]() {
      globalThis.Worker = original
    },
  }
}
