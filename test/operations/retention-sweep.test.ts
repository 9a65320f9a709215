import { afterAll, describe, expect, test } from "bun:test"
import { existsSync, utimesSync } from "node:fs"
import { count, eq, inArray, like, sql } from "drizzle-orm"
import { currentPeriod, secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { inboundEmails } from "../../src/inbound/tables"
import { HELD, OVER, READY } from "../../src/jobs/work-item"
import { reconcile } from "../../src/messages/reconcile"
import {
  attempts,
  messageContents,
  messageFiles,
  messageRaws,
  messages,
  messageTags,
} from "../../src/messages/tables"
import { fileSweeper } from "../../src/operations/file-sweep"
import { retentionSweeper } from "../../src/operations/retention-sweep"
import { totals } from "../../src/store/counters"
import { deliveries } from "../../src/webhooks/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { bounced, deliverAll, delivered } from "../harness/delivery"
import { addInbound } from "../harness/inbound-rows"
import { mail } from "../harness/mail"
import { addProject } from "../harness/project-rows"
import { type TestProject, testService } from "../harness/service"
import { testStore } from "../harness/store"
import { testSubmission } from "../harness/submission"
import { addReceived, addText } from "../sms/texts"
import { endpoint } from "../webhooks/endpoints"

const clock = movableClock()
const service = await testService()
afterAll(() => service[Symbol.asyncDispose]())
const { store, parts } = service

const DAY = 86_400
const NO_CEILING = {
  "retention.deliveries": 3650 * DAY * 1000,
  "retention.events": 3650 * DAY * 1000,
}

/** All of the projects once, by a process that has just begun. */
const sweep = (ceilings = NO_CEILING) => retentionSweeper(store, ceilings)()

const keep = (project: TestProject, retention: object | null) =>
  project.call("PATCH", "/v1/settings", { body: { retention } })

const send = async (project: TestProject, fields: object = {}): Promise<string> =>
  (await project.post("/v1/emails", mail({ tags: ["kept"], track_opens: false, ...fields }))).body
    .id

/** Delivers what is due; addresses that begin with `no` bounce. */
const deliver = () =>
  deliverAll(service, (email) => (email.startsWith("no") ? bounced(email) : delivered(email)))

async function rowsOf(ids: string[]) {
  const counted = async (table: typeof messageContents, column = table.message_id) => {
    const [row] = await store.read.select({ n: count() }).from(table).where(inArray(column, ids))
    return Number(row?.n)
  }
  return {
    messages: await counted(messages as never, messages.id as never),
    contents: await counted(messageContents),
    raws: await counted(messageRaws as never),
    files: await counted(messageFiles as never),
    tags: await counted(messageTags as never),
    attempts: await counted(attempts as never),
  }
}

/** What the lists count with, and what a count of the rows says. */
async function countsOf(project_id: string) {
  const statuses = ["delivered", "bounced", "failed"]
  const names = ["email", ...statuses.map((status) => `email.${status}`)]
  const told = await totals(store.read, project_id, names)
  const rows = await store.read
    .select({ status: messages.status, n: count() })
    .from(messages)
    .where(eq(messages.project_id, project_id))
    .groupBy(messages.status)
  const recount = new Map(rows.map(({ status, n }) => [`email.${status}`, Number(n)]))
  recount.set(
    "email",
    [...recount.values()].reduce((sum, n) => sum + n, 0),
  )
  return names.map((name) => [name, told.get(name), recount.get(name) ?? 0])
}

const agree = async (project: TestProject) => {
  for (const [name, told, recount] of await countsOf(project.project_id)) {
    expect([name, told]).toEqual([name, recount])
  }
}

describe("the setting", () => {
  test("has its defaults, takes a part, and null is the default again", async () => {
    const project = await service.project()
    const defaults = {
      ...{ messages_days: 90, bodies_days: 30, inbound_days: 30 },
      ...{ webhook_deliveries_days: 30, events_days: 30 },
    }
    expect((await project.get("/v1/settings")).body.data.retention).toEqual(defaults)
    const changed = await keep(project, { bodies_days: 7, events_days: 10 })
    expect(changed.body.data.retention).toEqual({ ...defaults, bodies_days: 7, events_days: 10 })
    const back = await keep(project, { bodies_days: null })
    expect(back.body.data.retention).toEqual({ ...defaults, events_days: 10 })
    expect((await keep(project, null)).body.data.retention).toEqual(defaults)
  })

  test.each([
    [{ bodies_days: 0 }, "retention.bodies_days"],
    [{ bodies_days: 3651 }, "retention.bodies_days"],
    [{ messages_days: 1.5 }, "retention.messages_days"],
    [{ events_days: "30" }, "retention.events_days"],
    [{ logs_days: 3 }, "retention.logs_days"],
    ["30d", "retention"],
  ])("%j is refused", async (retention, path) => {
    const refused = await keep(await service.project(), retention as object)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(refused.body.error.details.fields[0].path).toBe(path)
  })
})

test("contents, sent bytes and attachments go after their days, and the message stays", async () => {
  const project = await service.project()
  const attachments = [{ filename: "a.txt", content: Buffer.from("only here").toString("base64") }]
  const old = await send(project, { attachments })
  await deliver()
  clock.advance({ seconds: 20 * DAY })
  const young = await send(project)
  await deliver()
  clock.advance({ seconds: 11 * DAY })
  await sweep()
  expect(await rowsOf([old])).toEqual({
    ...{ messages: 1, contents: 0, raws: 0, files: 0, tags: 1, attempts: 1 },
  })
  expect(await rowsOf([young])).toMatchObject({ contents: 1, raws: 1 })

  const record = (await project.get(`/v1/emails/${old}`)).body.data
  expect(record).toMatchObject({ status: "delivered", subject: "Ding", html: null, text: null })
  for (const part of ["content", "raw"]) {
    const gone = await project.get(`/v1/emails/${old}/${part}`)
    expect(refusal(gone)).toEqual([404, "not_found"])
    expect(gone.body.error.details).toEqual({ reason: "retention_over" })
  }
  const file = await project.get(`/v1/emails/${old}/attachments/${record.attachments[0].id}`)
  expect(refusal(file)).toEqual([404, "not_found"])
  const again = await project.post(`/v1/emails/${old}/resend`)
  expect(refusal(again)).toEqual([409, "conflict"])
  expect(again.body.error.details).toEqual({ reason: "body_expired", id: old })
  expect((await project.get(`/v1/emails/${young}/content`)).body.data.text).toBe("Dong")
  await agree(project)
})

test("a file goes with the last content that names it, also one that was submitted", async () => {
  const project = await service.project()
  const content = Buffer.from("shared").toString("base64")
  const attachments = [{ filename: "a.txt", content }]
  await send(project, { attachments })
  const { login, submit } = testSubmission(service)
  const raw = `From: a@mailbox.test\n\n${"large \n".repeat(20_000)}`
  await submit(await login(project.key), { to: ["ann@mailbox.test"], raw })
  await deliver()
  const all = await store.read.select().from(messageFiles)
  const names = [...new Set(all.map(({ sha256 }) => sha256))]
  expect(names.length).toBeGreaterThan(1)
  clock.advance({ seconds: 20 * DAY })
  await send(project, { attachments })
  await deliver()
  clock.advance({ seconds: 11 * DAY })
  await sweep()
  for (const name of names) {
    const path = parts.blobs.path(name)
    if (existsSync(path)) utimesSync(path, 0, 0) // written long ago
  }
  await fileSweeper(store, parts.blobs, messageFiles).all()
  const left = await store.read.select().from(messageFiles)
  const kept = new Set(left.map(({ sha256 }) => sha256))
  expect(kept.size).toBeGreaterThan(0)
  for (const name of names) {
    expect([name, existsSync(parts.blobs.path(name))]).toEqual([name, kept.has(name)])
  }
})

test("messages go after their days with all that names them, and the totals follow", async () => {
  const project = await service.project()
  await keep(project, { messages_days: 10, bodies_days: 5 })
  const old = [
    await send(project),
    await send(project, { to: "nobody@example.test" }),
    await send(project, { cc: "other@example.test" }),
  ]
  const cancelled = await send(project, { scheduled_at: secondsFromNow(3600) })
  await project.post(`/v1/emails/${cancelled}/cancel`)
  await deliver()
  clock.advance({ seconds: 8 * DAY })
  const young = await send(project)
  await deliver()
  clock.advance({ seconds: 3 * DAY })
  await agree(project)
  await sweep()
  expect(await rowsOf([...old, cancelled])).toEqual({
    ...{ messages: 0, contents: 0, raws: 0, files: 0, tags: 0, attempts: 0 },
  })
  expect(await rowsOf([young])).toMatchObject({ messages: 1, contents: 1, tags: 1 })
  await agree(project)
  const listed = (await project.get("/v1/emails")).body
  expect([listed.meta.total, listed.data[0].id]).toEqual([1, young])
  expect((await project.get("/v1/emails?status=bounced")).body.meta.total).toBe(0)
  expect((await project.get("/v1/emails?tag=kept")).body.data).toHaveLength(1)
})

test("what waits is kept, however old it is, and counts from its scheduled time", async () => {
  const project = await service.project()
  await keep(project, { messages_days: 1, bodies_days: 1 })
  const [later, waiting] = [
    await send(project, { scheduled_at: secondsFromNow(60 * DAY) }),
    await send(project),
  ]
  await store.tx((tx) =>
    tx.update(messages).set({ state: HELD, owner: "email" }).where(eq(messages.id, waiting)),
  )
  clock.advance({ seconds: 40 * DAY })
  await sweep()
  expect(await rowsOf([later, waiting])).toMatchObject({ messages: 2, contents: 2 })
  await store.tx((tx) =>
    tx.update(messages).set({ state: READY, owner: null }).where(eq(messages.id, waiting)),
  )
  clock.advance({ seconds: 20 * DAY })
  await deliver()
  await sweep()
  expect(await rowsOf([later])).toMatchObject({ messages: 1, contents: 1 }) // sent just now
  expect(await rowsOf([waiting])).toMatchObject({ messages: 0, contents: 0 })
  clock.advance({ seconds: 1.1 * DAY })
  await sweep()
  expect(await rowsOf([later])).toMatchObject({ messages: 0, contents: 0 })
  await agree(project)
})

test("received mail goes after the days of its project", async () => {
  const [short, long] = [await service.project(), await service.project()]
  await keep(short, { inbound_days: 5 })
  for (const project of [short, long]) await addInbound(store, project)
  const left = async ({ project_id }: TestProject) =>
    (await store.read.select().from(inboundEmails).where(eq(inboundEmails.project_id, project_id)))
      .length
  clock.advance({ seconds: 6 * DAY })
  await sweep()
  expect([await left(short), await left(long)]).toEqual([0, 1])
  clock.advance({ seconds: 25 * DAY })
  await sweep()
  expect(await left(long)).toBe(0)
})

/** Ends every delivery of the project, as if its receiver had answered. */
const endDeliveries = ({ project_id }: TestProject) =>
  store.tx((tx) =>
    tx
      .update(deliveries)
      .set({ state: OVER, status: "success", run_at: secondsFromNow(0) })
      .where(eq(deliveries.project_id, project_id)),
  )

async function ofProject({ project_id }: TestProject) {
  const ours = (table: typeof deliveries | typeof events) =>
    store.read
      .select({ n: count() })
      .from(table)
      .where(eq(table.project_id, project_id))
      .then(([row]) => Number(row?.n))
  return { deliveries: await ours(deliveries), events: await ours(events) }
}

test("deliveries and events go after their days, and no event before its deliveries", async () => {
  const [hooked, plain] = [await service.project(), await service.project()]
  await keep(hooked, { webhook_deliveries_days: 20, events_days: 1 })
  await keep(plain, { events_days: 3 })
  const { id } = await endpoint(hooked)
  await send(hooked)
  await send(plain)
  await deliver()
  clock.advance({ seconds: 4 * DAY })
  const before = await ofProject(hooked)
  expect(before.deliveries).toBeGreaterThan(0)
  await sweep()
  expect(await ofProject(hooked)).toEqual(before)
  expect(await ofProject(plain)).toEqual({ deliveries: 0, events: 0 })

  clock.advance({ seconds: 17 * DAY })
  await sweep()
  expect((await ofProject(hooked)).deliveries).toBe(before.deliveries) // open: they are tried yet
  await hooked.call("DELETE", `/v1/webhooks/${id}`) // also those of an endpoint that is gone
  await endDeliveries(hooked)
  await sweep()
  expect(await ofProject(hooked)).toEqual({ deliveries: 0, events: 0 })
})

test("an event stays while a delivery of it is open, however old it is", async () => {
  const project = await service.project()
  await keep(project, { webhook_deliveries_days: 1, events_days: 1 })
  await endpoint(project)
  await send(project)
  await deliver()
  const rows = await store.read
    .selectDistinct({ id: deliveries.event_id })
    .from(deliveries)
    .where(eq(deliveries.project_id, project.project_id))
  expect(rows.length).toBeGreaterThan(0)
  clock.advance({ seconds: 20 * DAY })
  await sweep()
  expect((await ofProject(project)).events).toBe(rows.length)
  await endDeliveries(project)
  await sweep()
  expect(await ofProject(project)).toEqual({ deliveries: 0, events: 0 })
})

test("the operator's limits count where they are shorter", async () => {
  const project = await service.project()
  await keep(project, { webhook_deliveries_days: 300, events_days: 300 })
  await endpoint(project)
  await send(project)
  await deliver()
  await endDeliveries(project)
  clock.advance({ seconds: 8 * DAY })
  await sweep()
  expect((await ofProject(project)).events).toBeGreaterThan(0)
  await sweep({ "retention.deliveries": 7 * DAY * 1000, "retention.events": 7 * DAY * 1000 })
  expect(await ofProject(project)).toEqual({ deliveries: 0, events: 0 })
})

test("more rows than one transaction takes go, and each call goes on with the next projects", async () => {
  const project = await service.project()
  await keep(project, { messages_days: 1, bodies_days: 1, events_days: 1 })
  const list = Array.from({ length: 100 }, () => mail())
  for (let batch = 0; batch < 5; batch++) {
    await project.post("/v1/emails/batch", { messages: list })
  }
  await deliver()
  clock.advance({ seconds: 2 * DAY })
  const look = retentionSweeper(store, NO_CEILING)
  await look()
  expect(await ofProject(project)).toMatchObject({ events: 0 })
  expect((await project.get("/v1/emails")).body.meta.total).toBe(0)
  await agree(project)
  await look() // begins with the first project again
  const left = await store.read
    .select({ n: count() })
    .from(events)
    .where(sql`${like(events.type, "email.%")} AND ${eq(events.project_id, project.project_id)}`)
  expect(Number(left[0]?.n)).toBe(0)
})

test("requests run between two projects, also where nothing is old", async () => {
  await using fresh = await testStore()
  const projects = 20
  for (let nth = 0; nth < projects; nth++) await addProject(fresh.store)
  let [turns, is_over] = [0, false]
  const count = () => {
    turns += 1
    if (!is_over) setImmediate(count)
  }
  setImmediate(count)
  await retentionSweeper(fresh.store, NO_CEILING)()
  is_over = true
  expect(turns).toBeGreaterThanOrEqual(projects)
})

test("a recount of usage leaves days alone whose messages may be gone", async () => {
  const project = await service.project()
  await keep(project, { messages_days: 1, bodies_days: 1 })
  await send(project)
  await deliver()
  const period = currentPeriod()
  clock.advance({ seconds: 2.5 * DAY })
  await sweep()
  expect((await project.get("/v1/emails")).body.data).toEqual([])
  const { account_id } = project
  const recount = await reconcile(store, { account_id, quota_subject: account_id, period })
  expect(recount.before).toMatchObject({ email: 1 })
  expect(recount.drift).toMatchObject({ email: 0 })
})

test("the body of a text that was sent or came in goes after its days, and the text later", async () => {
  const project = await service.project()
  const ids = [
    await addReceived(store, project, { to: "+4366012345678", body: "STOP" }),
    await addText(store, project, { to: "+4366012345678", body: "waits" }),
  ]
  clock.advance({ seconds: 31 * DAY })
  await sweep()
  expect(await rowsOf(ids)).toMatchObject({ messages: 2, contents: 1 })
  clock.advance({ seconds: 60 * DAY })
  await sweep()
  expect(await rowsOf(ids)).toMatchObject({ messages: 1, contents: 1 })
})
