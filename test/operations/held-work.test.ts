import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { DROPPED, enqueueAll } from "../../src/jobs/jobs"
import { holdOpenWork } from "../../src/jobs/restore-hold"
import { jobs } from "../../src/jobs/tables"
import { DEAD, HELD, READY } from "../../src/jobs/work-item"
import { messages } from "../../src/messages/tables"
import { changeHeld, type HeldFilter } from "../../src/operations/held-work"
import { heldTables } from "../../src/operations/start-held"
import { deliveries } from "../../src/webhooks/tables"
import { RUNS_ON } from "../../src/work"
import { receiver } from "../fakes/receiver"
import { testHooks } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { testPauses } from "../harness/pauses"
import { quietLog } from "../harness/quiet"
import { WorkLoops } from "../harness/work-loops"
import { letter } from "../messages/letters"
import { postOffice } from "../messages/post-office"

quietLog()

const none = { messages: 0, webhook_deliveries: 0, jobs: 0 }

const alert = { name: "usage.alert", schedule: () => 1 }

/** Three messages, two alerts and a retention job that is not held. */
async function heldOffice() {
  const office = await postOffice()
  const { store } = office
  const recipients = ["a@one.test", "b@two.test", "c@sub.one.test"]
  const ids: string[] = []
  for (const recipient of recipients) {
    ids.push(await office.accept(letter({ id: idFor(recipient), recipient })))
  }
  const project_id = idFor("project_1")
  const work = [1, 2].map(() => ({ payload: {}, project_id }))
  await store.tx((tx) => enqueueAll(tx, alert, work))
  await holdOpenWork(store, heldTables(RUNS_ON))
  const count = async (filter: HeldFilter) =>
    (await changeHeld(store, { action: "count", filter })).counts
  return Object.assign(office, { ids, count, project_id })
}

test("a filter names parts by kind, project, age and domain", async () => {
  await using office = await heldOffice()
  const { count, store } = office
  expect(await count({})).toEqual({ ...none, messages: 3, jobs: 2 })
  expect(await count({ kind: "email" })).toEqual({ ...none, messages: 3 })
  expect(await count({ kind: "sms" })).toEqual(none)
  expect(await count({ kind: "job" })).toEqual({ ...none, jobs: 2 })
  expect(await count({ kind: "usage.alert" })).toEqual({ ...none, jobs: 2 })
  expect(await count({ kind: "other.kind" })).toEqual(none)
  expect(await count({ domain: "ONE.test" })).toEqual({ ...none, messages: 1 })
  expect(await count({ domain: "o_e.test" }).catch(() => none)).toEqual(none)
  expect(await count({ project: office.project_id })).toMatchObject({ jobs: 2 })
  expect(await count({ project: idFor("nobody") })).toEqual(none)
  expect(await count({ older_than: 60 })).toMatchObject({ jobs: 0 })
  const old = { created_at: secondsFromNow(-120) }
  await store.tx((tx) => tx.update(jobs).set(old))
  expect(await count({ older_than: 60 })).toMatchObject({ jobs: 2 })
  for (const filter of [{ kind: "mail" }, { project: "acme" }, { domain: "no domain" }]) {
    expect(count(filter)).rejects.toMatchObject({ code: "validation_error" })
  }
})

test("a part is resumed, and the rest stays", async () => {
  await using office = await heldOffice()
  const { store, count } = office
  const resumed = await changeHeld(store, { action: "resume", filter: { domain: "one.test" } })
  expect(resumed).toEqual({ counts: { ...none, messages: 1 }, next: null })
  const free = await store.read.select().from(messages).where(eq(messages.state, READY))
  expect(free.map(({ recipient }) => recipient)).toEqual(["a@one.test"])
  expect(await count({})).toEqual({ ...none, messages: 2, jobs: 2 })
})

test("dropped messages end with their event, and dropped jobs with their reason", async () => {
  await using office = await heldOffice()
  const { store, ids } = office
  const dropped = await changeHeld(store, { action: "purge", filter: {} })
  expect(dropped).toEqual({ counts: { ...none, messages: 3, jobs: 2 }, next: null })
  for (const id of ids) {
    expect(await office.read(id)).toMatchObject({ status: "failed", status_reason: "cancelled" })
    const told = and(eq(events.subject_id, id), eq(events.type, "email.failed"))
    expect(await store.read.select().from(events).where(told)).toHaveLength(1)
  }
  await office.runDue()
  const options = { concurrency: 5, lease_ms: 30_000, alone: false }
  const loop = new WorkLoops({ store, work: office.work, ...options })
  await loop.start()
  const states = async () => (await store.read.select().from(jobs)).map(({ state }) => state)
  while ((await states()).some((state) => state !== DEAD)) await Bun.sleep(5)
  await loop.stop(1_000)
  const [job] = await store.read.select().from(jobs)
  expect(job?.last_error).toContain("dropped")
  expect(office.attempted).toEqual([])
})

test("a dropped job stays dropped through a pause of its kind", async () => {
  await using office = await heldOffice()
  const { store, work } = office
  const pauses = testPauses(store, [alert.name])
  const stop = await pauses.start()
  await pauses.pause(alert.name, null)
  await changeHeld(store, { action: "purge", filter: { kind: "job" } })
  const options = { concurrency: 5, lease_ms: 30_000, alone: false }
  const loop = new WorkLoops({ store, work, pauses, ...options })
  await loop.start()
  const rows = () => store.read.select().from(jobs)
  while ((await rows()).some(({ state }) => state !== HELD)) await Bun.sleep(5)
  await pauses.resume(alert.name)
  while ((await rows()).some(({ state }) => state !== DEAD)) await Bun.sleep(5)
  await loop.stop(1_000)
  stop()
  expect((await rows()).map(({ last_error }) => last_error)).toEqual([DROPPED, DROPPED])
})

test("deliveries are chosen by the host of their endpoint, and end exhausted", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const { store } = hooks
  const here = await hooks.endpoint({ url: fake.url })
  const there = await hooks.endpoint({ url: "https://hooks.one.test/in?of=127.0.0.1" })
  await hooks.emit(3)
  await holdOpenWork(store, heldTables(RUNS_ON))
  const filter = { kind: "webhook", domain: "hooks.one.test" }
  const dropped = await changeHeld(store, { action: "purge", filter })
  expect(dropped.counts).toEqual({ ...none, webhook_deliveries: 3 })
  const statusOf = async (id: string) =>
    (await store.read.select().from(deliveries).where(eq(deliveries.webhook_id, id))).map(
      ({ status }) => status,
    )
  expect(await statusOf(there.id)).toEqual(["exhausted", "exhausted", "exhausted"])
  expect(await statusOf(here.id)).toEqual(["held", "held", "held"])
})
