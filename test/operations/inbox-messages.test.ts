import { describe, expect, test } from "bun:test"
import { and, eq, inArray } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { dayOf, secondsFromNow } from "../../src/core/time"
import * as inbox from "../../src/inbox/inbox"
import { purgeInboxDays } from "../../src/inbox/inbox-retention"
import { countsIn, followInboxes, type InboxChange } from "../../src/inbox/ledger"
import { inboxRemoved, removeInbox } from "../../src/inbox/removed-inbox"
import {
  inboxCategories,
  inboxChanges,
  inboxContents,
  inboxDays,
  inboxEntries,
  inboxes,
} from "../../src/inbox/tables"
import { wakeInboxes } from "../../src/inbox/waking"
import type { JobKind, JobRow } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { messages } from "../../src/messages/tables"
import { type BrokenInvariant, brokenIn } from "../../src/operations/invariants"
import { moveRest, subscriberMerged } from "../../src/operations/merged-messages"
import { retentionSweeper } from "../../src/operations/retention-sweep"
import { namedByMessages } from "../../src/operations/table-lives"
import { totals } from "../../src/store/counters"
import { addSubscriber } from "../harness/audience"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addNote } from "../inbox/notes"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const path = (id: string, verb = "") => `/v1/subscribers/${id}${verb}`

const DAY = 86_400
const NO_CEILING = {
  "retention.deliveries": 3650 * DAY * 1000,
  "retention.events": 3650 * DAY * 1000,
}

/** Messages in every state: unread, read, archived and snoozed. */
async function fill(project: TestProject, subscriber_id: string) {
  const owner = { project_id: project.project_id, subscriber_id }
  const add = (more = {}) => addNote(service, project, subscriber_id, more)
  const ids = [
    await add({ category: "billing", collapse_key: "k", tags: ["a"] }),
    await add({ category: "billing" }),
    await add(),
    await add({ category: "news" }),
  ]
  const [, read = "", archived = "", snoozed = ""] = ids
  await store.tx((tx) => inbox.markOne(tx, owner, read, "read"))
  await store.tx((tx) => inbox.markOne(tx, owner, archived, "archived"))
  const snoozed_until = secondsFromNow(3600)
  await store.tx((tx) => inbox.patch(tx, owner, snoozed, { snoozed_until }))
  return ids
}

/** What changed in inboxes of the project while `act` ran. */
async function heard({ project_id }: TestProject, act: () => Promise<unknown>) {
  const told: InboxChange[] = []
  const stop = followInboxes(store.read, (changes) => void told.push(...changes))
  await act()
  stop()
  return told.filter((change) => change.project_id === project_id)
}

async function brokenOf({ project_id }: TestProject) {
  const found: BrokenInvariant[] = []
  await store.snapshot(async (db) => {
    const look = { db, pause: async () => {}, since: null, overdue_before: null }
    for (const kind of ["project", "inboxes"] as const)
      for await (const place of brokenIn(look, { kind, id: kind === "project" ? project_id : "" }))
        if (place.owner_id === project_id) found.push(place)
  })
  return found
}

const counts = async (id: string) => {
  const { unread, unseen, total } = await countsIn(store.read, id)
  return [unread, unseen, total]
}

/** How many rows of each table are about an inbox. */
async function rowsOf(subscriber_id: string) {
  const of = async (table: typeof inboxChanges | typeof inboxCategories | typeof inboxEntries) =>
    (await store.read.select().from(table).where(eq(table.subscriber_id, subscriber_id))).length
  const own = await store.read.select().from(inboxes).where(eq(inboxes.id, subscriber_id))
  return [own.length, await of(inboxEntries), await of(inboxChanges), await of(inboxCategories)]
}

const there = async (ids: string[]) => {
  const rows = store.read.select({ id: messages.id }).from(messages)
  return (await rows.where(inArray(messages.id, ids))).map(({ id }) => id).sort()
}

const contentsAmong = async (ids: string[]) =>
  (await store.read.select().from(inboxContents).where(inArray(inboxContents.id, ids))).length

/** Runs the jobs of a kind that the project has. */
async function runJobs<Payload>(
  { project_id }: TestProject,
  { name }: JobKind<Payload>,
  run: (job: JobRow) => unknown,
) {
  const ours = and(eq(jobs.project_id, project_id), eq(jobs.name, name))
  const rows = await store.read.select().from(jobs).where(ours).orderBy(jobs.id)
  for (const job of rows) await run(job)
  await store.tx((tx) => tx.delete(jobs).where(ours))
  return rows.length
}

const runRemovals = (project: TestProject) =>
  runJobs(project, inboxRemoved, (job) =>
    removeInbox(store, namedByMessages).run(job.payload as never, job),
  )

const runMerges = (project: TestProject) =>
  runJobs(project, subscriberMerged, (job) => moveRest(store).run(job.payload as never, job))

describe("a merge", () => {
  test("moves the inbox: both inboxes give numbers, states stay, and no event tells of it", async () => {
    const project = await service.project()
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    await addNote(service, project, into.id, { category: "billing" })
    const ids = await fill(project, from.id)
    const [unread = "", read = ""] = ids
    const events = async () =>
      (await project.get("/v1/events?types=inbox.created")).body.data.length
    const before = await events()

    const told = await heard(project, () =>
      project.post(path(into.id, "/merge"), { from_id: from.id }),
    )
    const of = (id: string) => told.filter(({ subscriber_id }) => subscriber_id === id)
    expect(of(from.id).map(({ seq, kind }) => [seq, kind])).toEqual(
      [8, 9, 10, 11].map((seq) => [seq, "deleted"]),
    )
    expect(of(into.id).map(({ seq, kind, created }) => [seq, kind, created?.tags])).toEqual([
      [2, "created", ["a"]],
      ...[3, 4, 5].map((seq): [number, "created", string[]] => [seq, "created", []]),
    ])
    expect(of(into.id).at(-1)?.counts).toEqual({ unread: 2, unseen: 2, total: 3 })
    expect(await counts(into.id)).toEqual([2, 2, 3])
    expect(await counts(from.id)).toEqual([0, 0, 0])
    const owner = { project_id: project.project_id, subscriber_id: into.id }
    expect(await inbox.find(store.read, owner, unread)).toMatchObject({ seq: 2, read_at: null })
    expect((await inbox.find(store.read, owner, read)).read_at).not.toBeNull()
    const moved = await store.read.select().from(messages).where(inArray(messages.id, ids))
    for (const { subscriber_id, address, recipients } of moved)
      expect([subscriber_id, address, recipients[0]?.email]).toEqual([into.id, into.id, into.id])
    expect(await events()).toBe(before)
    expect(await brokenOf(project)).toEqual([])

    expect(await runMerges(project)).toBe(1)
    expect(await rowsOf(from.id)).toEqual([0, 0, 0, 0])
    expect(await contentsAmong(ids)).toBe(ids.length)
    await store.tx((tx) => inbox.markOne(tx, owner, unread, "read"))
    expect(await counts(into.id)).toEqual([1, 1, 3])
    expect(await brokenOf(project)).toEqual([])
  })

  test("leaves nothing in the inbox of a kept subscriber that is removed before the job", async () => {
    const project = await service.project()
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const ids = await fill(project, from.id)
    await project.post(path(into.id, "/merge"), { from_id: from.id })
    await project.call("DELETE", path(into.id))
    await runMerges(project)
    await runRemovals(project)
    expect(await there(ids)).toEqual([])
    for (const { id } of [into, from]) expect(await rowsOf(id)).toEqual([0, 0, 0, 0])
  })
})

describe("a subscriber that is deleted", () => {
  test("loses the inbox with its messages, some at a time, and no other one does", async () => {
    const project = await service.project()
    const [ann, bob] = [await addSubscriber(project), await addSubscriber(project)]
    const shared_id = newId()
    const ids = await fill(project, ann.id)
    for (let n = 0; n < 120; n++) ids.push(await addNote(service, project, ann.id, { shared_id }))
    const others = [await addNote(service, project, bob.id, { shared_id })]
    expect((await project.call("DELETE", path(ann.id))).status).toBe(200)
    expect(await runRemovals(project)).toBe(1)
    expect(await there([...ids, ...others])).toEqual(others)
    expect(await rowsOf(ann.id)).toEqual([0, 0, 0, 0])
    expect(await contentsAmong(ids)).toBe(0)
    expect(await contentsAmong([shared_id])).toBe(1)
    const told = await totals(store.read, project.project_id, ["in_app", "in_app.delivered"])
    expect([...told.values()]).toEqual([1, 1])
    expect(await counts(bob.id)).toEqual([1, 1, 1])
    expect(await brokenOf(project)).toEqual([])
  })

  test("without an inbox leaves no work", async () => {
    const project = await service.project()
    const { id } = await addSubscriber(project)
    await project.call("DELETE", path(id))
    expect(await runRemovals(project)).toBe(0)
  })
})

test("an export shows the inbox, and an erasure leaves nothing of it, nor of what names the person", async () => {
  const project = await service.project()
  const email = "ann@mailbox.test"
  const [ann, bob] = [await addSubscriber(project, { email }), await addSubscriber(project)]
  const ids = await fill(project, ann.id)
  const shared_id = newId()
  const naming = await addNote(service, project, bob.id, { content: { data: { by: email } } })
  const shared = { shared_id, content: { data: { by: ann.id } } }
  const named = [naming, await addNote(service, project, bob.id, shared)]
  const kept = await addNote(service, project, bob.id)

  const { data } = (await project.get(path(ann.id, "/export"))).body
  expect(data.subscriber).toMatchObject({ id: ann.id, unread: 1 })
  expect((await project.get(path(ann.id))).body.data).toEqual(data.subscriber)
  const listed = (await project.get("/v1/subscribers")).body.data
  expect(listed.map(({ unread }: { unread: number }) => unread)).toEqual([3, 1])
  expect(data.messages.map(({ id }: { id: string }) => id)).toEqual(ids)
  expect(data.messages[1]).toMatchObject({
    ...{
      channel: "in_app",
      title: "Your order",
      body: null,
      archived_at: null,
      category: "billing",
    },
    ...{ read_at: expect.any(String), attempts: [], tags: [] },
  })
  expect(data.messages[1].events.map(({ type }: { type: string }) => type).sort()).toEqual(
    ["inbox.created", "inbox.read"].toSorted(),
  )

  const told = await heard(project, async () => {
    const { body } = await project.post(path(ann.id, "/erase"), { confirm: ann.external_id })
    expect(body.data.counts.messages).toBe(ids.length + named.length)
  })
  expect(told.map(({ kind }) => kind)).toEqual(Array(6).fill("deleted"))
  expect(await there([...ids, ...named, kept])).toEqual([kept])
  expect(await rowsOf(ann.id)).toEqual([0, 0, 0, 0])
  expect(await contentsAmong([...ids, ...named, shared_id])).toBe(0)
  expect(await counts(bob.id)).toEqual([1, 1, 1])
  expect((await project.get("/v1/events?limit=100")).text).not.toContain(ids[0])
  expect(await brokenOf(project)).toEqual([])
})

describe("retention", () => {
  test("keeps contents as long as messages, and takes both out of the inbox, unread ones too", async () => {
    const project = await service.project()
    const retention = { bodies_days: 1, messages_days: 3 }
    await project.call("PATCH", "/v1/settings", { body: { retention } })
    const { id } = await addSubscriber(project)
    const shared_id = newId()
    const ids = [
      await addNote(service, project, id, { category: "news" }),
      await addNote(service, project, id, { shared_id }),
    ]
    const all = [...ids, shared_id]
    const [first] = await store.read
      .select({ bytes: messages.stored_bytes })
      .from(messages)
      .where(eq(messages.id, ids[0] ?? ""))
    const sweep = () => retentionSweeper(store, NO_CEILING)()
    clock.advance({ seconds: 2 * DAY })
    await sweep()
    expect([await there(ids), await contentsAmong(all)]).toEqual([ids, 2])
    const [later] = await store.read
      .select({ bytes: messages.stored_bytes })
      .from(messages)
      .where(eq(messages.id, ids[0] ?? ""))
    expect(later).toEqual(first)
    clock.advance({ seconds: 2 * DAY })
    const told = await heard(project, sweep)
    expect(told.map(({ kind }) => kind)).toEqual(["deleted", "deleted"])
    expect(told.at(-1)?.counts).toEqual({ unread: 0, unseen: 0, total: 0 })
    expect([await there(ids), await contentsAmong(all)]).toEqual([[], 0])
    expect(await brokenOf(project)).toEqual([])
  })

  test("ends snoozes and removes what has expired", async () => {
    const project = await service.project()
    const { id } = await addSubscriber(project)
    await fill(project, id)
    const expires_at = secondsFromNow(60)
    const gone = await addNote(service, project, id, { expires_at })
    expect(await counts(id)).toEqual([2, 2, 3])
    clock.advance({ seconds: 3601 })
    const told = await heard(project, () => wakeInboxes(store, namedByMessages))
    expect(told.map(({ kind }) => kind).sort()).toEqual(["deleted", "updated"])
    expect(await there([gone])).toEqual([])
    expect(await counts(id)).toEqual([2, 2, 3])
    expect((await project.get("/v1/events?types=inbox.expired")).body.data).toHaveLength(1)
    expect(await brokenOf(project)).toEqual([])
  })
})

describe("the check finds", () => {
  async function busy() {
    const project = await service.project()
    const { id } = await addSubscriber(project)
    const ids = await fill(project, id)
    expect(await brokenOf(project)).toEqual([])
    return { project, id, ids }
  }

  const whats = async (project: TestProject) =>
    (await brokenOf(project)).map(({ name, id, what }) => [name, id, what])

  test("totals that are wrong", async () => {
    const { project, id } = await busy()
    await store.tx((tx) => tx.update(inboxes).set({ unseen: 9 }).where(eq(inboxes.id, id)))
    await store.tx((tx) =>
      tx
        .update(inboxCategories)
        .set({ unread: 5 })
        .where(and(eq(inboxCategories.subscriber_id, id), eq(inboxCategories.category, "billing"))),
    )
    expect(await whats(project)).toEqual([
      ["I5", id, expect.stringContaining('"unseen":9')],
      ["I5", id, expect.stringContaining('{"billing":5}, but there are {"billing":1}')],
    ])
  })

  test("messages that are in no inbox, and numbers that it never gave", async () => {
    const { project, ids } = await busy()
    const [seq = "", owner = "", gone = ""] = ids
    const change = (id: string, changes: object) =>
      store.tx((tx) => tx.update(inboxEntries).set(changes).where(eq(inboxEntries.id, id)))
    await change(seq, { seq: 1000 })
    await change(owner, { subscriber_id: newId() })
    await store.tx((tx) => tx.delete(inboxEntries).where(eq(inboxEntries.id, gone)))
    const what = "The message is not in the inbox of its subscriber."
    expect(await whats(project)).toEqual([
      ...[seq, owner, gone].map((id) => ["I5", id, what]),
      ["I5", expect.any(String), expect.stringContaining('"total":2')],
    ])
  })
})

test("what a project has in inboxes breaks no list of other messages", async () => {
  const project = await service.project()
  const { id } = await addSubscriber(project)
  await fill(project, id)
  const scheduled = await project.get("/v1/scheduled")
  expect([scheduled.status, scheduled.body.data]).toEqual([200, []])
  for (const asked of ["/v1/usage", "/v1/emails", "/v1/sms", "/v1/templates", path(id)])
    expect([asked, (await project.get(asked)).status]).toEqual([asked, 200])
})

test("counts of three years ago go", async () => {
  const { project_id } = await service.project()
  const at = (days: number) => dayOf(secondsFromNow(-days * DAY))
  const rows = [1200, 10].map((days) => ({
    ...{ project_id, day: at(days), fact: "read" as const, shard: 0, messages: 1 },
  }))
  await store.tx((tx) => tx.insert(inboxDays).values(rows))
  while ((await purgeInboxDays(store)) > 0);
  const left = await store.read.select().from(inboxDays).where(eq(inboxDays.project_id, project_id))
  expect(left).toHaveLength(1)
})
