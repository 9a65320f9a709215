import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { holdOpenWork } from "../../src/jobs/holds"
import { DROPPED, enqueueAll } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { DEAD, HELD, READY, RESTORE_HOLD } from "../../src/jobs/work-item"
import { messages } from "../../src/messages/tables"
import { changeHeld, type HeldFilter } from "../../src/operations/held-work"
import { heldTables } from "../../src/operations/start-held"
import { deliveries } from "../../src/webhooks/tables"
import { ALLOWED_WHILE_HELD } from "../../src/work"
import { receiver } from "../fakes/receiver"
import { audience, begun, publish, record, walker } from "../fan-out/audiences"
import { testHooks } from "../harness/hooks"
import { idFor } from "../harness/ids"
import { followPauses, testPauses } from "../harness/pauses"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
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
    ids.push(await office.accept(letter({ id: idFor(recipient), address: recipient })))
  }
  const project_id = idFor("project_1")
  const work = [1, 2].map(() => ({ payload: {}, project_id }))
  await store.tx((tx) => enqueueAll(tx, alert, work))
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
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
  expect(await count({ domain: "one.test." })).toEqual({ ...none, messages: 1 })
  expect(await count({ domain: "o_e.test" }).catch(() => none)).toEqual(none)
  expect(await count({ project: office.project_id })).toMatchObject({ jobs: 2 })
  expect(await count({ project: idFor("nobody") })).toEqual(none)
  expect(await count({ older_than: 60 })).toMatchObject({ jobs: 0 })
  const old = { created_at: secondsFromNow(-120) }
  await store.tx((tx) => tx.update(jobs).set(old))
  expect(await count({ older_than: 60 })).toMatchObject({ jobs: 2 })
  for (const filter of [
    { kind: "mail" },
    { project: "acme" },
    { domain: "no domain" },
    ...[{ domain: "*.test" }, { domain: "*" }, { domain: "." }],
    { domain: "a.test:80" },
    { domain: "a@b.test" },
  ]) {
    expect(count(filter)).rejects.toMatchObject({ code: "validation_error" })
  }
})

test("a part is resumed, and the rest stays", async () => {
  await using office = await heldOffice()
  const { store, count } = office
  const resumed = await changeHeld(store, { action: "resume", filter: { domain: "one.test" } })
  expect(resumed).toEqual({ counts: { ...none, messages: 1 }, next: null })
  const free = await store.read.select().from(messages).where(eq(messages.state, READY))
  expect(free.map(({ address: recipient }) => recipient)).toEqual(["a@one.test"])
  expect(await count({})).toEqual({ ...none, messages: 2, jobs: 2 })
})

test("a domain names a message by any of its recipients, copies too, and drops it whole", async () => {
  await using office = await postOffice()
  const { store } = office
  const fields = { address: "a@d0.test" }
  await office.accept(
    letter({ ...fields, id: idFor("copied") }, ["c@Other.test"], ["d@b\u00fccher.test"]),
  )
  for (let n = 0; n < 250; n++) await office.accept(letter({ ...fields, id: idFor(`plain ${n}`) }))
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
  const counted = async (domain: string) =>
    (await changeHeld(store, { action: "count", filter: { domain } })).counts.messages
  expect(await counted("other.test")).toBe(1)
  expect(await counted("xn--bcher-kva.test")).toBe(1)
  expect(await counted("example.test")).toBe(251)
  const dropped = await changeHeld(store, { action: "purge", filter: { domain: "OTHER.test" } })
  expect(dropped).toEqual({ counts: { ...none, messages: 1 }, next: null })
  expect(await office.read(idFor("copied"))).toMatchObject({ status_reason: "cancelled" })
  expect(await counted("example.test")).toBe(250)
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
  const stop = await followPauses(store, pauses)
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

test.each([
  ["the start", "fan_out.start", "queued"],
  ["a part", "fan_out.part", "fanning_out"],
])("a publish ends as cancelled when %s of it is dropped", async (_, kind, status) => {
  await using service = await testService()
  const { store, parts } = service
  const project = await service.project()
  const { topic } = await audience(store, project, [{}, {}])
  const { id } = await publish(service, project, topic)
  if (kind === "fan_out.part") await begun(service, id)
  expect<string>((await record(parts, id)).status).toBe(status)
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
  const dropped = await changeHeld(store, { action: "purge", filter: { kind } })
  expect(dropped.counts.jobs).toBe(1)
  const loop = walker(service)
  await loop.start()
  const isOver = async () => (await record(parts, id)).completed_at !== null
  while (!(await isOver())) await Bun.sleep(5)
  await loop.stop(1_000)
  expect(await record(parts, id)).toMatchObject({ status: "cancelled", status_reason: null })
})

test("a publish says that it waits since a restore, in the list too, until it is resumed", async () => {
  await using service = await testService()
  const { store, parts } = service
  const project = await service.project()
  const { topic } = await audience(store, project, [{}, {}])
  const at_work = await publish(service, project, topic)
  await begun(service, at_work.id)
  const later = { scheduled_at: secondsFromNow(3600) }
  const waiting = await publish(service, project, topic, later)
  const foreign = await service.project()
  const other = await audience(store, foreign, [{}])
  const other_publish = await publish(service, foreign, other.topic, later)
  await store.tx((tx) => enqueueAll(tx, alert, [{ payload: {}, project_id: project.project_id }]))
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
  const all = `/v1/topics/${topic.key}/publishes`
  const told = async () =>
    (await project.get(all)).body.data.map(
      (one: { id: string; status: string; status_reason: string | null }) => [
        one.id,
        one.status,
        one.status_reason,
      ],
    )
  expect(await told()).toEqual([
    [waiting.id, "scheduled", RESTORE_HOLD],
    [at_work.id, "fanning_out", RESTORE_HOLD],
  ])
  const one = await project.get(`${all}/${waiting.id}`)
  expect(one.body.data).toMatchObject({ status_reason: RESTORE_HOLD })

  const ours = { project: project.project_id }
  await changeHeld(store, { action: "resume", filter: ours })
  expect(await told()).toEqual([
    [waiting.id, "scheduled", null],
    [at_work.id, "fanning_out", null],
  ])
  expect(await record(parts, other_publish.id)).toMatchObject({ status_reason: RESTORE_HOLD })
})

test("deliveries are chosen by the host of their endpoint, and end exhausted", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const { store } = hooks
  const here = await hooks.endpoint({ url: fake.url })
  const there = await hooks.endpoint({ url: "https://hooks.one.test/in?of=127.0.0.1" })
  await hooks.emit(3)
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
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

test("the host of an endpoint is known in capitals, encoded, in another script, and without a domain", async () => {
  await using hooks = await testHooks()
  const { store } = hooks
  const urls = [
    "https://HOOKS.Two.test/in",
    "https://b\u00fccher.test/in",
    "https://hooks.thr%65e.test/in",
    "http://localhost:9/in",
    "http://127.1/in",
    "http://[::1]:9/in",
  ]
  for (const url of urls) await hooks.endpoint({ url })
  await hooks.emit(1)
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
  for (const domain of [
    ...["hooks.two.test", "hooks.two.test."],
    "b\u00fccher.test",
    "xn--bcher-kva.test",
    "hooks.three.test",
    ...["LOCALHOST", "127.0.0.1", "::1", "[::1]"],
  ]) {
    const { counts } = await changeHeld(store, { action: "count", filter: { domain } })
    expect([domain, counts]).toEqual([domain, { ...none, webhook_deliveries: 1 }])
  }
})
