import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { consoleUsers } from "../../src/identity/tables"
import { countJobs, QueueLines } from "../../src/jobs/counts"
import type { QueuePauses } from "../../src/jobs/holds"
import { providerHold } from "../../src/jobs/holds"
import { enqueueAll } from "../../src/jobs/jobs"
import { jobs, pausedQueues } from "../../src/jobs/tables"
import { DEAD, HELD, LEASED, READY } from "../../src/jobs/work-item"
import { accept, countMessages } from "../../src/messages/pipeline"
import { messages } from "../../src/messages/tables"
import { idFor } from "../harness/ids"
import { followPauses, testPauses } from "../harness/pauses"
import { person, team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { WorkLoops } from "../harness/work-loops"
import { letter, outcome, told } from "../messages/letters"
import { type PostOffice, postOffice } from "../messages/post-office"

quietLog()

const delivered = () => outcome([told("to@example.test", { status: "delivered" })])

/** Runs the queue until nothing is due any more, and nothing runs. */
async function settled({ store, work, jobs }: PostOffice, pauses: QueuePauses) {
  const options = { concurrency: 5, lease_ms: 30_000, alone: false }
  const loop = new WorkLoops({ store, work, pauses, ...options })
  await loop.start()
  const isBusy = ({ state, run_at }: { state: number; run_at: string }) =>
    state === LEASED || (state === READY && run_at <= now())
  while ((await jobs()).some(isBusy)) await Bun.sleep(2)
  await loop.stop(5_000)
}

describe("a queue that an operator pauses", () => {
  test("holds its work where it is seen, uses up no attempt, and goes on at once", async () => {
    await using office = await postOffice(delivered(), delivered())
    const control = testPauses(office.store)
    const stop = await followPauses(office.store, control)
    const id = await office.accept()

    expect(await control.pause("email", null)).toMatchObject({ queue: "email", paused: true })
    await settled(office, control)
    expect(office.attempted).toEqual([])
    expect(await office.jobs()).toMatchObject([{ state: HELD, owner: "email", attempt: 0 }])
    expect(await office.read(id)).toMatchObject({
      status: "queued",
      attempts: 0,
      status_reason: "The queue email is paused by an operator.",
      next_attempt_at: null,
    })
    expect((await control.list()).find(({ queue }) => queue === "email")).toMatchObject({
      depth: 1,
      running: 0,
      paused: true,
    })

    expect(await control.resume("email")).toMatchObject({ paused: false, depth: 1 })
    expect(await office.jobs()).toMatchObject([{ state: 0, owner: null }])
    await settled(office, control)
    expect(await office.read(id)).toMatchObject({ status: "delivered", attempts: 1 })
    stop()
  })

  test("lets other queues go on", async () => {
    await using office = await postOffice(delivered())
    const control = testPauses(office.store, ["email", "usage.alert"])
    await control.pause("usage.alert", null)
    const id = await office.accept()
    await settled(office, control)
    expect((await office.read(id)).status).toBe("delivered")
  })

  test("gives back what a process left behind that died while it resumed", async () => {
    await using office = await postOffice(delivered())
    const control = testPauses(office.store, ["email", "usage.alert"])
    await office.accept()
    await control.pause("email", null)
    await settled(office, control)
    await office.store.tx((tx) => tx.delete(pausedQueues).where(eq(pausedQueues.queue, "email")))
    // What waits for a provider is under no pause, and stays.
    const other = { state: HELD, owner: providerHold("project_1") }
    const work = { payload: {}, project_id: idFor("project_1") }
    await office.store.tx((tx) => enqueueAll(tx, { name: "any", schedule: () => 1 }, [work]))
    await office.store.tx((tx) => tx.update(jobs).set(other).where(eq(jobs.name, "any")))

    const stop = await followPauses(office.store, testPauses(office.store))
    const email = async () => (await office.jobs())[0]
    while ((await email())?.state === HELD) await Bun.sleep(20)
    stop()
    expect(await email()).toMatchObject({ state: 0, attempt: 0 })
    const [any] = await office.store.read.select().from(jobs)
    expect(any).toMatchObject(other)
  })
})

describe("over HTTP", () => {
  test("an operator lists, pauses and resumes; nobody else does", async () => {
    await using service = await testService()
    const { owner } = await team(service)
    const operator = await person(service, undefined, true)

    const listed = await operator.get("/v1/admin/queues")
    expect(listed.status).toBe(200)
    expect(listed.body.data).toEqual([
      { queue: "email", depth: 0, oldest_seconds: 0, running: 0, failed_24h: 0, paused: false },
    ])
    expect(listed.body.meta).toMatchObject({ total: 1, has_more: false })
    expect((await owner.post("/v1/admin/queues/email/pause")).status).toBe(403)

    const paused = await operator.post("/v1/admin/queues/email/pause")
    expect([paused.status, paused.body.data.paused]).toEqual([200, true])
    const again = await operator.post("/v1/admin/queues/email/pause")
    expect([again.status, again.body.error.code]).toEqual([409, "conflict"])
    expect((await operator.post("/v1/admin/queues/email/resume")).body.data.paused).toBe(false)
    expect((await operator.post("/v1/admin/queues/email/resume")).status).toBe(409)
  })

  test("a domain is a queue of its own", async () => {
    await using service = await testService()
    const operator = await person(service, undefined, true)
    const path = "/v1/admin/queues/email%3Aslow.test"
    expect((await operator.post(`${path}/pause`)).body.data).toMatchObject({
      queue: "email:slow.test",
      paused: true,
    })
    const { body } = await operator.get("/v1/admin/queues")
    expect(body.data.map(({ queue }: { queue: string }) => queue)).toEqual([
      "email",
      "email:slow.test",
    ])
    expect((await operator.post(`${path}/resume`)).status).toBe(200)
    const pause = (name: string) =>
      operator.post(`/v1/admin/queues/${encodeURIComponent(name)}/pause`)
    for (const name of ["nonsense", "email:", "sms:slow.test"]) {
      const { status, body } = await pause(name)
      expect([status, body.error.message]).toEqual([404, `There is no queue ${name}.`])
    }
    for (const name of ["a b", "slow", "slow.test/x", "a%2eb.test", "192.0.2.7", "."]) {
      const { status, body } = await pause(`email:${name}`)
      const text = `"${name}" is not a domain name. Give one such as example.com.`
      expect([status, body.error.message]).toEqual([404, text])
    }
    expect((await pause("email:BÜCHER.Example.")).body.data.queue).toBe(
      "email:xn--bcher-kva.example",
    )
  })
})

test("a message tells why it waits also where it was never tried", async () => {
  await using office = await postOffice()
  const control = testPauses(office.store)
  await control.pause("email", null)
  const id = await office.accept(letter())
  await settled(office, control)
  const [row] = await office.store.read.select().from(messages).where(eq(messages.id, id))
  expect(row?.recipients).toMatchObject([{ status: "queued", status_reason: null }])
})

test("every job is counted, however few of them are looked at in one go", async () => {
  await using office = await postOffice()
  const { store } = office
  const other = { name: "usage.alert", schedule: () => 1 }
  for (let at = 0; at < 7; at++) await office.accept(letter())
  const alerts = Array.from({ length: 4 }, () => ({ payload: {}, project_id: null }))
  await store.tx((tx) => enqueueAll(tx, other, alerts))
  const [dead, running, held] = await office.jobs()
  const become = (id: string | undefined, change: Partial<typeof messages.$inferInsert>) =>
    store.tx((tx) =>
      tx
        .update(messages)
        .set(change)
        .where(eq(messages.id, id ?? "")),
    )
  await become(dead?.id, { state: DEAD, run_at: now() })
  const leased = { state: LEASED, owner: "somebody", lease_until: now() }
  await become(running?.id, { ...leased, created_at: secondsFromNow(-3600) })
  await become(held?.id, { state: HELD, owner: "email:b.test" })
  for (const at_once of [1, 2, 3, 1000]) {
    const counts = [countMessages(at_once), countJobs(at_once)]
    const lines = await new QueueLines(store.read, counts).all()
    expect(lines.get("email")).toMatchObject({ depth: 5, running: 1, failed_24h: 1 })
    expect(lines.get("email")?.oldest_seconds).toBeWithin(3600, 3700) // of what runs, too
    expect(lines.get("usage.alert")).toMatchObject({ depth: 4, running: 0, failed_24h: 0 })
    expect(lines.get("email:b.test")).toMatchObject({ depth: 1 })
  }
})

test("what took long to count is believed for a while, and asked for once at a time", async () => {
  await using office = await postOffice()
  let counts = 0
  const slow = async () => {
    counts++
    await Bun.sleep(60)
    return new Map([["slow", { depth: counts, oldest_seconds: 0, running: 0, failed_24h: 0 }]])
  }
  const lines = new QueueLines(office.store.read, [slow])
  const both = await Promise.all([lines.all(), lines.all()])
  expect(both.map((one) => one.get("slow")?.depth)).toEqual([1, 1])
  expect((await lines.all()).get("slow")?.depth).toBe(1)
  while ((await lines.all()).get("slow")?.depth === 1) await Bun.sleep(20)
  expect(counts).toBe(2)
})

test("the audit log of the operator's accounts tells who paused and resumed what", async () => {
  await using service = await testService()
  const home = await team(service)
  await service.store.tx((tx) => tx.update(consoleUsers).set({ operator: true }))
  await home.owner.post("/v1/admin/queues/email%3ASlow.test/pause")
  await home.owner.post("/v1/admin/queues/email%3Aslow.TEST/pause") // 409, and no second line
  await home.owner.post("/v1/admin/queues/email%3Aslow.test/resume")
  const here = { "x-account-id": home.account_id }
  const { body } = await home.owner.get("/v1/audit-log?target_type=queue", here)
  expect(body.data).toMatchObject([
    { action: "queue.resumed", target: { type: "queue", id: "email:slow.test" } },
    { action: "queue.paused", target: { type: "queue", id: "email:slow.test" } },
  ])
  expect(body.data[0].actor).toMatchObject({ type: "user", name: expect.any(String) })
})

test("a queue of thousands goes on whole, though the answer does not wait for it", async () => {
  await using office = await postOffice()
  const { store } = office
  await store.tx((tx) =>
    accept(
      tx,
      Array.from({ length: 1200 }, () => letter()),
    ),
  )
  const control = testPauses(store)
  const stop = await followPauses(office.store, control)
  await control.pause("email", null)
  await store.tx((tx) => tx.update(messages).set({ state: HELD, owner: "email" }))
  expect(await control.resume("email")).toMatchObject({ depth: 1200, paused: false })
  while ((await office.jobs()).some(({ state }) => state === HELD)) await Bun.sleep(20)
  stop()
})
