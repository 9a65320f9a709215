import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { CHUNK } from "../../src/fan-out/audience-source"
import * as fanOut from "../../src/fan-out/fan-out"
import { fanOutParts, fanOuts } from "../../src/fan-out/tables"
import { accounts } from "../../src/identity/tables"
import { forUpdate } from "../../src/store/columns"
import type { Closure, Store } from "../../src/store/store"
import { movableClock } from "../harness/clock"
import { untilLocked } from "../harness/lock-waits"
import { sharedService } from "../harness/shared-service"
import { audience, begun, messagesOf, publish, record } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service

/** A store that says how often it had to run a closure once more, because transactions waited in a circle. */
function countingStore() {
  const again = { runs: 0 }
  const tx = <Result>(closure: Closure<Result>) => {
    let runs = 0
    return store.tx((open) => {
      if (runs++ > 0) again.runs += 1
      return closure(open)
    })
  }
  return { counted: Object.assign(Object.create(store) as Store, { tx }), again }
}

/** A publish with two parts of two chunks each. */
async function twoParts(expires_at: string | null = null) {
  const project = await service.project()
  const everybody = Array.from({ length: 4 * CHUNK }, () => ({}))
  const { topic } = await audience(store, project, everybody)
  const { id } = await publish(service, project, topic, { expires_at })
  const { counted, again } = countingStore()
  const walk = await begun({ parts: { ...parts, store: counted } }, id)
  const first = and(eq(fanOutParts.fan_out_id, id), eq(fanOutParts.part, 0))
  await store.tx(async (tx) => {
    await tx
      .update(fanOutParts)
      .set({ until: 2 * CHUNK })
      .where(first)
    const other = { fan_out_id: id, part: 1, cursor: 2 * CHUNK, until: 4 * CHUNK }
    await tx.insert(fanOutParts).values(other)
  })
  const cancel = () =>
    counted.tx((tx) => fanOut.cancel(tx, project.project_id, topic.id, id)).catch(() => undefined)
  const freeze = (is_frozen: boolean) =>
    store.tx((tx) =>
      tx
        .update(accounts)
        .set({ sending_status: is_frozen ? "frozen" : "active" })
        .where(eq(accounts.id, project.account_id)),
    )
  const sent = async () => (await messagesOf(parts, project, id)).length
  return { id, walk, again, cancel, freeze, sent }
}

/** Does `work` while parts are held as by a chunk that is being written, until all of it waits. */
async function whileHeld<Result>(
  id: string,
  part: number | undefined,
  work: () => Promise<Result>[],
): Promise<Result[]> {
  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ours = and(
    eq(fanOutParts.fan_out_id, id),
    part === undefined ? undefined : eq(fanOutParts.part, part),
  )
  const holding = store.tx(async (tx) => {
    await forUpdate(tx.select().from(fanOutParts).where(ours))
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
  })
  await locked.promise
  const steps = work()
  const all = Promise.all(steps)
  await untilLocked(store.read, steps.length, all)
  go.resolve()
  await holding
  return all
}

test("two walkers that come to a pause, and to its end, at the same time run once", async () => {
  const { id, walk, again, freeze } = await twoParts()
  const both = () => whileHeld(id, undefined, () => [walk.step(0), walk.step(1)])
  await freeze(true)
  expect(await both()).toEqual([{ wait_seconds: 5 }, { wait_seconds: 5 }])
  expect(await record(parts, id)).toMatchObject({ status: "paused" })
  await freeze(false)
  expect(await both()).toEqual(["more", "more"])
  expect(await record(parts, id)).toMatchObject({ status: "fanning_out", status_reason: null })
  expect(again.runs).toBe(0)
})

test("two walkers that come to the expiry at the same time run once, and one of them ends it", async () => {
  const { id, walk, again, sent } = await twoParts(secondsFromNow(3600))
  clock.advance({ seconds: 3601 })
  const came = await whileHeld(id, undefined, () => [walk.step(0), walk.step(1)])
  expect(came).toEqual(["over", "over"])
  expect(await record(parts, id)).toMatchObject({ status: "failed", status_reason: "expired" })
  expect(await store.read.select().from(fanOutParts).where(eq(fanOutParts.fan_out_id, id))).toEqual(
    [],
  )
  expect({ runs: again.runs, sent: await sent() }).toEqual({ runs: 0, sent: 0 })
})

test("a pause, an expiry and a cancel at the same time need no second try", async () => {
  for (const kind of ["pause", "expiry"]) {
    const { id, walk, again, freeze, cancel, sent } = await twoParts(secondsFromNow(3600))
    if (kind === "pause") await freeze(true)
    else clock.advance({ seconds: 3601 })
    await whileHeld<unknown>(id, undefined, () => [walk.step(0), cancel(), walk.step(1)])
    const [row] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
    expect(row?.completed_at).not.toBeNull()
    expect({ runs: again.runs, sent: await sent() }).toEqual({ runs: 0, sent: 0 })
  }
})

test("a cancel waits for the chunk that is being written, and no chunk begins before it", async () => {
  const { id, walk, again, cancel, sent } = await twoParts()
  const [, ended, late] = await whileHeld<unknown>(id, 1, () => {
    const [begun, cancelled] = [walk.step(1), cancel()]
    const next = untilLocked(store.read, 2, cancelled).then(() => walk.step(0))
    return [begun, cancelled, next]
  })
  const answered = await sent()
  expect(ended).toMatchObject({ status: "cancelled" })
  expect(late).toBe("over")
  expect([await walk.step(0), await walk.step(1)]).toEqual(["over", "over"])
  expect(await sent()).toBe(answered)
  expect(answered).toBeLessThanOrEqual(CHUNK) // of the chunk that was before the cancel, if any
  expect((await record(parts, id)).channels.email?.sent).toBe(answered)
  expect(again.runs).toBe(0)
})
