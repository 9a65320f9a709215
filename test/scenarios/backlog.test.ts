import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { countingRelay } from "../fakes/counting-relay"
import { makeHome, startBelfry } from "../harness/binary"
import { expectNoneLost, expectNoneTwice } from "../harness/nothing-lost"
import { countOf, drained, send } from "./mails"
import { relaySettings } from "./serve"

const BACKLOG = 150

const mailTo = (name: string) => ({ from: "me@example.test", to: `${name}@example.test` })

test("what waited at a stop is delivered after the start, each once", async () => {
  const home = makeHome()
  let is_slow = true
  using relay = countingRelay({ atEnd: () => (is_slow ? "stall" : undefined) })
  const env = relaySettings(relay.port, { BELFRY_DELIVERY_CONCURRENCY: "4" })
  try {
    await using first = await startBelfry({ home, env })
    const numbers = Array.from({ length: BACKLOG }, (_, number) => number)
    const ids = await Promise.all(numbers.map((number) => send(first, mailTo(`n${number}`))))
    // Twice as many are in hand as are sent at once, and as many again are claimed.
    expect(await countOf(first, "sending")).toBeLessThanOrEqual(16)
    first.kill("SIGKILL")
    expect(await first.exited).toBe(137)
    expect(relay.receipts).toEqual([])

    is_slow = false
    await using second = await startBelfry({ home, env })
    await drained(second)
    expect(await countOf(second, "sent")).toBe(BACKLOG)
    const counts = relay.counts()
    expect(counts.size).toBe(BACKLOG)
    expectNoneTwice(counts)
    expectNoneLost(ids.filter((id) => !counts.has(`<${id}@example.test>`)))
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
