import { expect, test } from "bun:test"
import { countingRelay } from "../fakes/counting-relay"
import { expectNoneLost } from "../harness/nothing-lost"
import { quietLog } from "../harness/quiet"
import { serverHere } from "../harness/server-here"
import { until } from "../scenarios/mails"

quietLog()

const SENDERS = 12
const EACH = 25
const DEATHS = 3
/** Deliveries at once. */
const ON_THE_WIRE = 20

test("threads that die alone under load lose no message", async () => {
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
  await until("all at the relay", () => relay.counts().size >= ids.length)
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
