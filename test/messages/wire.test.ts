import { afterAll, expect, spyOn, test } from "bun:test"
import { DeferredError } from "../../src/jobs/work-item"
import { Semaphore } from "../../src/lib/semaphore"
import { quietLog } from "../harness/quiet"
import { engine } from "../harness/store"
import { WorkLoops } from "../harness/work-loops"
import { fallible } from "../jobs/fallible"
import { byHand } from "./by-hand"
import { outcome, told } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()

/** The pause between two tries at writing a result, which nobody wants to sit through. */
const PAUSE_MS = 500
const real = globalThis.setTimeout
const hasty = (work: () => void, ms?: number) => real(work, ms === PAUSE_MS ? 5 : ms)
const timers = spyOn(globalThis, "setTimeout").mockImplementation(hasty as typeof setTimeout)
afterAll(() => timers.mockRestore())

const delivered = () => outcome([told("to@example.test", { status: "delivered" })])

/** Lets only so many messages of this office be on the wire at once. */
function narrow({ channels }: PostOffice, places: number) {
  const permits = new Semaphore(places)
  channels.email.permit = () => permits.acquire()
}

/** On Postgres a claim needs the storage, too: `loop-endings.test.ts` has its bound. */
const on_sqlite = test.skipIf(engine === "postgres")

on_sqlite(
  "while storage refuses, places are free again, until as much as may be is sent and not recorded",
  async () => {
    const [places, count] = [2, 20]
    const first = Promise.withResolvers<void>()
    let open = 0
    await using office = await postOffice(
      ...Array.from({ length: count }, () => async () => {
        if (++open === places) first.resolve()
        await first.promise
        storage.fail()
        return delivered()
      }),
    )
    narrow(office, places)
    const storage = fallible(office.store)
    const ids: string[] = []
    for (let at = 0; at < count; at++) ids.push(await office.accept())
    const { work } = office
    const loop = new WorkLoops({
      store: storage.store,
      work,
      concurrency: 2 * places,
      most_unsettled: 2 * places,
      lease_ms: 30_000,
      alone: true,
    })
    const most = 4 * places
    await loop.start()
    while (office.attempted.length < most || storage.refused() < 5 * most) await Bun.sleep(2)
    expect(office.attempted).toHaveLength(most)

    // Each further one runs into the same refusal, until storage takes what came of it.
    while ((await office.jobs()).length > 0) {
      storage.mend()
      await Bun.sleep(10)
    }
    await loop.stop(20_000)
    expect(office.attempted.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    for (const id of ids) expect(await office.read(id)).toMatchObject({ status: "delivered" })
  },
)

test("who breaks, or must wait, or ended, gives his place on the wire back", async () => {
  const broken = new Error("the composer broke")
  await using office = await postOffice(broken, new DeferredError("crowded", 60), delivered())
  narrow(office, 1)
  for (let at = 0; at < 3; at++) await office.accept()
  const hand = byHand(office.store, office.channels)
  const verdicts = []
  for (const job of await hand.claim(3)) verdicts.push(await hand.work(job))
  expect(verdicts).toMatchObject([
    { retry: "An internal error stopped the attempt. The log has the reason." },
    { hold: { reason: "crowded" } },
    { end: expect.any(Object), frees_slot: true },
  ])
  const [free, alone] = [await office.channels.email.permit?.(), office.channels.email.permit?.()]
  free?.()
  ;(await alone)?.()
})

test("what broke before it had a place took none", async () => {
  await using office = await postOffice(delivered())
  narrow(office, 1)
  let times = 0
  office.channels.email.prepare = async (_message, content) => {
    if (++times === 1) throw new Error("no thread")
    return { content }
  }
  for (let at = 0; at < 2; at++) await office.accept()
  const hand = byHand(office.store, office.channels)
  for (const job of await hand.claim(2)) await hand.work(job)
  expect(office.attempted).toHaveLength(1)
})
