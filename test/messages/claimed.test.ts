import { describe, expect, spyOn, test } from "bun:test"
import { eq } from "drizzle-orm"
import { monotonic } from "../../src/core/time"
import { DeferredError, HELD, READY } from "../../src/jobs/work-item"
import { messageRows } from "../../src/messages/pipeline"
import { stopAll } from "../../src/messages/settle"
import { messages } from "../../src/messages/tables"
import { movableClock } from "../harness/clock"
import { testPauses } from "../harness/pauses"
import { quietLog } from "../harness/quiet"
import { WorkLoops } from "../harness/work-loops"
import { byHand, type Hand } from "./by-hand"
import { letter, outcome, read, told } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()
const clock = movableClock()

const TO = "to@example.test"
const CC = "cc@example.test"
const delivered = () => outcome([told(TO, { status: "delivered" })])
const deferred = () => outcome([told(TO, { status: "retry" })])
const never = () => new Promise<never>(() => {})

const pretend = (office: PostOffice, id: string, attempt: number) =>
  office.store.tx((tx) => tx.update(messages).set({ attempt }).where(eq(messages.id, id)))

const loopOf = ({ store, work }: PostOffice, concurrency: number, lease_ms = 30_000) =>
  new WorkLoops({ store, work, concurrency, lease_ms, alone: false })

const handOf = ({ store, channels }: PostOffice, hand: Hand = {}) => byHand(store, channels, hand)

/** Accepts a message whose only attempt was deferred, and which is due again. */
async function deferredOnce(office: PostOffice) {
  const id = await office.accept()
  await office.runDue()
  clock.advance({ seconds: 61 })
  return { id, before: await office.read(id) }
}

const asBefore = (before: Awaited<ReturnType<PostOffice["read"]>>) => {
  const { status_reason, next_attempt_at, error, recipients } = before
  return { status: "queued", attempts: 1, status_reason, next_attempt_at, error, recipients }
}

describe("a claim", () => {
  test("marks every message that it takes, each with the attempts of its own job", async () => {
    await using office = await postOffice()
    const ids = [await office.accept(), await office.accept(), await office.accept()]
    for (const [at, id] of ids.entries()) await pretend(office, id, 2 * at)
    await handOf(office).claim(5)
    const rows = await Promise.all(ids.map(office.read))
    expect(rows.map(({ status, attempts }) => [status, attempts])).toEqual([
      ["sending", 1],
      ["sending", 3],
      ["sending", 5],
    ])
  })

  test("counts the attempt of a message whose first recipient is settled, and leaves out who ended", async () => {
    const first = [told(TO, { status: "sent" }), told(CC, { status: "retry" })]
    await using office = await postOffice(outcome(first))
    const open = await office.accept(letter({}, [CC]))
    await office.runDue()
    clock.advance({ seconds: 61 })
    const ended = await office.accept()
    const message = await office.read(ended)
    await office.store.tx((tx) =>
      stopAll(tx, [message], { status: "cancelled", text: "no longer wanted" }),
    )

    const claimed = await handOf(office).claim(2)
    expect(claimed).toMatchObject([{ id: open, status: "sent", attempt: 2 }])
    expect(await office.read(open)).toMatchObject({ status: "sent", attempts: 2 })
    expect(await office.read(ended)).toMatchObject({ status: "failed", attempts: 0 })
  })
})

describe("a message that is given back is queued as before", () => {
  test("when the loop stops before it began", async () => {
    await using office = await postOffice(deferred())
    const { id, before } = await deferredOnce(office)
    const fresh = await office.accept()
    const { claim, claims } = handOf(office)
    const claimed = await claim(2)
    expect(await office.read(id)).toMatchObject({ status: "sending", attempts: 2 })

    await claims.release(claimed)
    expect(await office.read(id)).toMatchObject(asBefore(before))
    const unseen = { status: "queued", attempts: 0, status_reason: null, next_attempt_at: null }
    expect(await office.read(fresh)).toMatchObject(unseen)
    const attempts = (await office.jobs()).map(({ state, attempt }) => [state, attempt])
    expect(attempts.toSorted()).toEqual([
      [READY, 0],
      [READY, 1],
    ])
  })

  test("when a stopping loop cuts its attempt off", async () => {
    await using office = await postOffice(deferred(), never)
    const { id, before } = await deferredOnce(office)
    const loop = loopOf(office, 1)
    await loop.start()
    while (office.attempted.length < 2) await Bun.sleep(2)
    await loop.stop(1)
    expect(await office.read(id)).toMatchObject(asBefore(before))
    expect(await office.jobs()).toMatchObject([{ state: READY, attempt: 1, owner: null }])
  })

  test("when work turns slow after a large claim", async () => {
    await using office = await postOffice(...Array.from({ length: 7 }, delivered), never)
    const ids: string[] = []
    for (let at = 0; at < 20; at++) ids.push(await office.accept())
    const stopped = monotonic()
    const time = spyOn(performance, "now").mockImplementation(() => stopped)
    const loop = loopOf(office, 1, 300)
    const statuses = async () => {
      const rows = await Promise.all(ids.map(office.read))
      return rows.map(({ status, attempts }) => `${status} ${attempts}`)
    }
    try {
      await loop.start() // each claim is used up at once: 1, 2, 4 and 8 jobs
      while (office.attempted.length < 8) await Bun.sleep(2)
      const delivered_once = async () => (await statuses()).filter((one) => one === "delivered 1")
      while ((await delivered_once()).length < 7) await Bun.sleep(2) // their results are on disk
      const taken = (await statuses()).filter((one) => one === "sending 1")
      expect(taken).toHaveLength(8)
    } finally {
      time.mockRestore()
    }
    const queued = async () => (await statuses()).filter((one) => one === "queued 0").length
    while ((await queued()) < 11) await Bun.sleep(10)
    expect(await queued()).toBe(11)
    await loop.stop(1)
    expect(await queued()).toBe(13)
  })

  test("when its queue is paused after it was taken, and says why", async () => {
    await using office = await postOffice(deferred())
    const { id } = await deferredOnce(office)
    const control = testPauses(office.store)
    const hand = handOf(office, { pauses: control })
    const job = await hand.claimOne()
    await control.pause("email", null)
    await hand.work(job)
    expect(await office.read(id)).toMatchObject({
      status: "queued",
      attempts: 1,
      status_reason: "The queue email is paused by an operator.",
      next_attempt_at: null,
    })
    expect(await office.jobs()).toMatchObject([{ state: HELD, owner: "email", attempt: 1 }])
    expect(office.attempted).toHaveLength(1)
  })

  test("when nobody has room for it", async () => {
    await using office = await postOffice(new DeferredError("slow.test is crowded", 60))
    const id = await office.accept()
    await office.runDue()
    expect(await office.read(id)).toMatchObject({
      status: "queued",
      attempts: 0,
      status_reason: "slow.test is crowded",
      next_attempt_at: (await office.jobs())[0]?.run_at ?? "",
    })
  })
})

describe("a message that was taken", () => {
  test("a moment ago is sent without being asked for again", async () => {
    await using office = await postOffice(delivered())
    await office.accept()
    const hand = handOf(office)
    const job = await hand.claimOne()
    const before = office.store.stats.closures
    await hand.tried(job)
    expect(office.attempted).toHaveLength(1)
    expect(office.store.stats.closures).toBe(before)
  })

  test("more than a second ago is not sent where its lease was lost", async () => {
    await using office = await postOffice(delivered())
    await office.accept()
    const [mine, theirs] = ["me", "another"].map((owner) => handOf(office, { owner }))
    const stale = await mine?.claimOne()
    clock.advance({ seconds: 31 })
    await messageRows.sweep(office.store, [])
    const job = await theirs?.claimOne()
    if (!mine || !theirs || !stale || !job) throw new Error("there is no job")
    expect(await mine.work(stale)).toEqual({})
    expect(office.attempted).toEqual([])
    await theirs.work(job)
    expect(await office.read(job.id)).toMatchObject({ status: "delivered", attempts: 2 })
  })

  test.each([2, -3600])("%d seconds ago is not sent where it ended meanwhile", async (seconds) => {
    await using office = await postOffice(delivered())
    const id = await office.accept()
    const hand = handOf(office)
    const job = await hand.claimOne()
    const message = await read(office.store.read, id)
    await office.store.tx((tx) => stopAll(tx, [message], { status: "expired", text: "over" }))
    clock.advance({ seconds })
    expect(await hand.work(job)).toEqual({})
    expect(office.attempted).toEqual([])
    expect(await office.read(id)).toMatchObject({ status: "failed", status_reason: "expired" })
    expect(await office.jobs()).toEqual([])
  })

  test("more than a second ago by the clock that nobody sets is asked for again", async () => {
    await using office = await postOffice(delivered())
    const id = await office.accept()
    const hand = handOf(office)
    const job = await hand.claimOne()
    const message = await office.read(id)
    await office.store.tx((tx) => stopAll(tx, [message], { status: "expired", text: "over" }))
    const later = monotonic() + 2000
    const time = spyOn(performance, "now").mockImplementation(() => later)
    const verdict = await hand.work(job).finally(() => time.mockRestore())
    expect([verdict, office.attempted]).toEqual([{}, []])
  })
})
