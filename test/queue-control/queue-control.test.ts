import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now } from "../../src/core/time"
import { messages } from "../../src/messages/tables"
import { QueueControl } from "../../src/queue-control/queue-control"
import { pausedQueues } from "../../src/queue-control/tables"
import { HELD } from "../../src/store/holding"
import type { Handlers } from "../../src/store/job-handler"
import { JobLoop } from "../../src/store/job-loop"
import { LEASED, READY } from "../../src/store/queue"
import { person, team } from "../harness/people"
import { testService } from "../harness/service"
import { letter, outcome, told } from "../messages/letters"
import { type PostOffice, postOffice } from "../messages/post-office"

const delivered = () => outcome([told("to@example.test", { status: "delivered" })])

/** Runs the queue until nothing is due any more, and nothing runs. */
async function settled({ store, jobs }: PostOffice, handlers: Handlers) {
  const loop = new JobLoop({ store, handlers, concurrency: 5, lease_ms: 30_000, alone: false })
  await loop.start()
  const isBusy = ({ state, run_at }: { state: number; run_at: string }) =>
    state === LEASED || (state === READY && run_at <= now())
  while ((await jobs()).some(isBusy)) await Bun.sleep(2)
  await loop.stop(5_000)
}

describe("a queue that an operator pauses", () => {
  test("holds its work where it is seen, uses up no attempt, and goes on at once", async () => {
    await using office = await postOffice(delivered(), delivered())
    const control = new QueueControl(office.store)
    const stop = await control.start()
    const handlers = control.over(office.handlers)
    const id = await office.accept()

    expect(await control.pause("email", null)).toMatchObject({ queue: "email", paused: true })
    await settled(office, handlers)
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
    expect(await office.jobs()).toMatchObject([{ state: 0, owner: null, last_error: null }])
    await settled(office, handlers)
    expect(await office.read(id)).toMatchObject({ status: "delivered", attempts: 1 })
    stop()
  })

  test("lets other queues go on", async () => {
    await using office = await postOffice(delivered())
    const control = new QueueControl(office.store)
    const handlers = control.over(office.handlers)
    await control.pause("usage.alert", null)
    const id = await office.accept()
    await settled(office, handlers)
    expect((await office.read(id)).status).toBe("delivered")
  })

  test("gives back what a process left behind that died while it resumed", async () => {
    await using office = await postOffice(delivered())
    const control = new QueueControl(office.store)
    await office.accept()
    await control.pause("email", null)
    await settled(office, control.over(office.handlers))
    await office.store.tx((tx) => tx.delete(pausedQueues).where(eq(pausedQueues.queue, "email")))

    const stop = await new QueueControl(office.store).start()
    while ((await office.jobs())[0]?.state === HELD) await Bun.sleep(20)
    stop()
    expect(await office.jobs()).toMatchObject([{ state: 0, attempt: 0 }])
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
    for (const name of ["nonsense", "email:", "email:a b", "email:slow", "sms:slow.test"]) {
      const answer = await operator.post(`/v1/admin/queues/${encodeURIComponent(name)}/pause`)
      expect([name, answer.status]).toEqual([name, 404])
    }
  })
})

test("a message tells why it waits also where it was never tried", async () => {
  await using office = await postOffice()
  const control = new QueueControl(office.store)
  await control.pause("email", null)
  const id = await office.accept(letter())
  await settled(office, control.over(office.handlers))
  const [row] = await office.store.read.select().from(messages).where(eq(messages.id, id))
  expect(row?.recipients).toMatchObject([{ status: "queued", status_reason: null }])
})
