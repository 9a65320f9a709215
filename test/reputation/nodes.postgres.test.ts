import { expect, test } from "bun:test"
import { settings } from "../../src/core/config"
import { millis } from "../../src/core/time"
import { isOurs } from "../../src/jobs/every"
import { assessAll, evaluate } from "../../src/reputation/evaluate"
import { count, hourOf, NONE } from "../../src/reputation/hour-counts"
import { openStore } from "../../src/store/open"
import type { Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { addProject } from "../harness/project-rows"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { accountOf, statusEvents } from "./mail-counts"

quietLog()
const clock = movableClock()

type Home = Awaited<ReturnType<typeof addProject>>

/** Settles on a node, which is asked for no assessment. */
const settled = (store: Store, home: Home, sent: number, bounced: number) =>
  store.tx((tx) => {
    const email = { ...home, sender_domain: "example.test", tags: [], template_id: null }
    const counts = { ...NONE, sent, bounced }
    return count(tx, [{ ...email, hour: hourOf(millis()), counts }])
  })

/** As a row of the recurring work that all nodes share. */
const assess = async (store: Store) => {
  if (await isOurs(store, { name: "reputation", every_ms: 60_000 })) await assessAll(store)
}

test("what two nodes count is one number, and one of them assesses in a minute", async () => {
  clock.freeze()
  await using it = await testStore()
  const second = await openStore({ ...settings(), database_url: it.database_url })
  try {
    const home = await addProject(it.store)
    const writes = Array.from({ length: 40 }, (_, at) =>
      settled(at % 2 ? it.store : second, home, 5, at % 4 === 0 ? 1 : 0),
    )
    await Promise.all(writes) // 200 sent, 10 bounced
    await assess(it.store)
    expect(await accountOf(second, home)).toMatchObject({
      sending_status: "throttled",
      sending_status_reason: "bounce_rate=5%;threshold=5%;window=7d",
    })
    await settled(second, home, 300, 100)
    await assess(second) // the other node has assessed in this minute
    expect((await accountOf(second, home)).sending_status).toBe("throttled")
    clock.advance({ seconds: 60 })
    await Promise.all([assess(second), assess(it.store)])
    expect((await accountOf(it.store, home)).sending_status).toBe("frozen")
  } finally {
    await second.close()
  }
})

test("both nodes see the same bounce at once: the change is told once", async () => {
  await using it = await testStore()
  const second = await openStore({ ...settings(), database_url: it.database_url })
  try {
    const home = await addProject(it.store)
    await settled(it.store, home, 500, 50)
    const nodes = [it.store, second, it.store, second]
    await Promise.all(nodes.map((store) => evaluate(store, home.account_id)))
    expect(await statusEvents(second, home.project_id)).toMatchObject([
      { from: "active", to: "frozen" },
    ])
  } finally {
    await second.close()
  }
})
