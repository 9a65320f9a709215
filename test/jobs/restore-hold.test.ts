import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { CRASH_HOLD } from "../../src/jobs/crash-guard"
import { holdOpenWork, providerHold } from "../../src/jobs/holds"
import { enqueueAll } from "../../src/jobs/jobs"
import { jobs, pausedQueues } from "../../src/jobs/tables"
import { DEAD, HELD, LEASED, READY, RESTORE_HOLD, RESTORE_REASON } from "../../src/jobs/work-item"
import { messages } from "../../src/messages/tables"
import { heldTables } from "../../src/operations/start-held"
import { openWork } from "../../src/queue/queue"
import type { Store } from "../../src/store/store"
import { retry } from "../../src/webhooks/deliveries"
import { countDeliveries } from "../../src/webhooks/delivery-rows"
import { releaseHeld } from "../../src/webhooks/held"
import { expireHeld } from "../../src/webhooks/retention"
import { deliveries } from "../../src/webhooks/tables"
import { ALLOWED_WHILE_HELD } from "../../src/work"
import { receiver } from "../fakes/receiver"
import { testHooks, until } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { followPauses, testPauses } from "../harness/pauses"
import { person } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { WorkLoops } from "../harness/work-loops"
import { letter, outcome, told } from "../messages/letters"
import { postOffice } from "../messages/post-office"

quietLog()

const delivered = () => outcome([told("to@example.test", { status: "delivered" })])

const holdAll = (store: Store) => holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))

const options = { concurrency: 5, lease_ms: 30_000, alone: false }

test("open messages are held whatever they waited for, and leave only once they are resumed", async () => {
  await using office = await postOffice(delivered(), delivered(), delivered(), delivered())
  const { store } = office
  const ids: string[] = []
  for (let at = 0; at < 5; at++) ids.push(await office.accept())
  const [, leased = "", refused = "", crashed = "", over = ""] = ids
  const become = (id: string, change: Partial<typeof messages.$inferInsert>) =>
    store.tx((tx) => tx.update(messages).set(change).where(eq(messages.id, id)))
  await become(leased, { state: LEASED, owner: "somebody", attempt: 1, lease_until: now() })
  await become(refused, { state: HELD, owner: providerHold("project_1") })
  await become(crashed, { state: HELD, owner: CRASH_HOLD })
  await become(over, { state: DEAD })

  expect(await holdAll(store)).toBe(3)
  expect(await holdAll(store)).toBe(0)
  const states = (await store.read.select().from(messages).orderBy(messages.id)).map(
    ({ state, owner, attempt }) => [state, owner, attempt],
  )
  expect(states).toEqual([
    [HELD, RESTORE_HOLD, 0],
    [HELD, RESTORE_HOLD, 1],
    [HELD, RESTORE_HOLD, 0],
    [HELD, CRASH_HOLD, 0],
    [DEAD, null, 0],
  ])
  const view = { status: "queued", status_reason: RESTORE_REASON, next_attempt_at: null }
  expect(await office.read(refused)).toMatchObject(view)

  const control = testPauses(store)
  const stop = await followPauses(store, control)
  const loop = new WorkLoops({ store, work: office.work, pauses: control, ...options })
  await loop.start()
  const fresh = await office.accept(letter({ id: idFor("fresh") }))
  while ((await office.read(fresh)).status !== "delivered") await Bun.sleep(5)
  expect(office.attempted.map(({ id }) => id)).toEqual([fresh])
  const line = async () => (await control.list()).find(({ queue }) => queue === RESTORE_HOLD)
  expect(await line()).toMatchObject({ depth: 3, running: 0, paused: true })
  expect(await control.warnings()).toEqual([
    "3 sends, deliveries and jobs wait in the queue held_after_restore.",
  ])
  expect(control.pause(RESTORE_HOLD, null)).rejects.toThrow("cannot be paused")

  await control.resume(RESTORE_HOLD)
  while (office.attempted.length < 4) await Bun.sleep(5)
  await loop.stop(5_000)
  stop()
  expect(await line()).toBeUndefined()
  expect(await control.warnings()).toEqual([])
  expect(control.resume(RESTORE_HOLD)).rejects.toThrow("is not paused")
})

test("the pause ends by itself when the last of it is gone", async () => {
  await using office = await postOffice()
  const { store } = office
  const id = await office.accept()
  await holdAll(store)
  const control = testPauses(store)
  const stop = await followPauses(store, control)
  const paused = () => store.read.select().from(pausedQueues)
  await Bun.sleep(1500)
  expect(await paused()).toMatchObject([{ queue: RESTORE_HOLD }])
  await store.tx((tx) => tx.delete(messages).where(eq(messages.id, id)))
  while ((await paused()).length > 0) await Bun.sleep(20)
  stop()
})

test("a release that had begun when the copy was made does not go on in the copy", async () => {
  await using office = await postOffice()
  const { store } = office
  await office.accept()
  await holdAll(store)
  await store.tx((tx) => tx.delete(pausedQueues)) // as `resume` does before its first part
  expect(await holdAll(store)).toBe(0)
  expect(await store.read.select().from(pausedQueues)).toMatchObject([{ queue: RESTORE_HOLD }])
})

test("jobs that only tidy run on; every other kind is held", async () => {
  await using office = await postOffice()
  const { store, work } = office
  const schedule = () => 1
  const kinds = Object.keys(work.handlers)
  expect(ALLOWED_WHILE_HELD.filter((name) => !kinds.includes(name))).toEqual([])
  for (const name of kinds) {
    const one = { payload: {}, project_id: idFor("project_1") }
    await store.tx((tx) => enqueueAll(tx, { name, schedule }, [one]))
  }
  expect(await holdAll(store)).toBe(kinds.length - ALLOWED_WHILE_HELD.length)
  const rows = await store.read.select().from(jobs).where(eq(jobs.state, READY))
  expect(rows.map(({ name }) => name).sort()).toEqual([...ALLOWED_WHILE_HELD].sort())
})

test("deliveries are held, also those that their endpoint held, and none leaves or ends meanwhile", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const { store } = hooks
  const endpoint = await hooks.endpoint({ url: fake.url })
  await hooks.emit(4)
  const [first, second, third] = await hooks.deliveries(endpoint.id)
  const become = (id: string | undefined, change: Partial<typeof deliveries.$inferInsert>) =>
    store.tx((tx) =>
      tx
        .update(deliveries)
        .set(change)
        .where(eq(deliveries.id, id ?? "")),
    )
  await become(second?.id, { status: "failed", attempts: 2, run_at: now() })
  const kept = { status: "held", state: HELD, owner: null } as const
  await become(third?.id, { ...kept, run_at: secondsFromNow(86_400) })
  expect(await holdAll(store)).toBe(4)

  const of = { project_id: hooks.project_id, webhook_id: endpoint.id }
  const rows = await hooks.deliveries(endpoint.id)
  expect(rows.map(({ status, owner }) => [status, owner])).toEqual(
    Array.from({ length: 4 }, () => ["held", RESTORE_HOLD]),
  )
  expect(await expireHeld(store)).toBe(0)
  expect(await store.tx((tx) => releaseHeld(tx, endpoint, undefined, 100))).toBe(0)
  const asked = store.tx((tx) => retry(tx, of, first?.id ?? ""))
  expect(asked).rejects.toMatchObject({ code: "conflict", details: { reason: RESTORE_HOLD } })
  expect((await countDeliveries(store.read)).get(RESTORE_HOLD)).toMatchObject({ depth: 4 })
  const {
    work: { by_state },
  } = await openWork(store.read, hooks.project_id)
  expect(by_state).toMatchObject([{ state: "held", reason: RESTORE_REASON, count: 4 }])

  await hooks.deliver()
  const fresh = await hooks.emit(1)
  await fake.arrived(1)
  expect(fake.received.map(({ headers }) => headers["webhook-id"])).toEqual(fresh)

  const control = testPauses(store, ["email"], [countDeliveries])
  const stop = await followPauses(store, control)
  await control.resume(RESTORE_HOLD)
  await fake.arrived(5)
  const isOver = async () =>
    (await hooks.deliveries(endpoint.id)).every(({ status }) => status === "success")
  await until(isOver)
  stop()
})

test("an operator sees what is held and resumes it over HTTP", async () => {
  await using service = await testService()
  const project = await service.project()
  const sent = await project.post("/v1/emails", {
    from: "a@example.test",
    to: "b@example.test",
    subject: "Hi",
    text: "hello",
  })
  expect(sent.status).toBe(201)
  await holdAll(service.store)
  const { id } = sent.body.data
  const email = await project.get(`/v1/emails/${id}`)
  expect(email.body.data).toMatchObject({ status: "queued", status_reason: RESTORE_REASON })
  const queue = await project.get("/v1/queue")
  expect(queue.body.data.by_state).toMatchObject([{ state: "held", reason: RESTORE_REASON }])
  const listed = await project.get("/v1/emails")
  expect(listed.body.data[0].status_reason).toBe(RESTORE_REASON)

  const stop = await followPauses(service.store, service.parts.queues)
  const operator = await person(service, undefined, true)
  const path = `/v1/admin/queues/${RESTORE_HOLD}`
  expect((await operator.post(`${path}/pause`)).body.error.details.reason).toBe("no_pause")
  const resumed = await operator.post(`${path}/resume`)
  expect([resumed.status, resumed.body.data.paused]).toEqual([200, false])
  expect((await operator.post(`${path}/resume`)).status).toBe(409)
  expect((await project.get(`/v1/emails/${id}`)).body.data.status_reason).toBeNull()
  stop()
})
