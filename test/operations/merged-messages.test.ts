import { describe, expect, test } from "bun:test"
import { and, asc, eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { projectCaller } from "../../src/identity/caller"
import type { JobRow } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { decidedAtSend } from "../../src/messages/decided"
import { messages } from "../../src/messages/tables"
import { mergeSubscribers } from "../../src/operations/merge-subscribers"
import { moveRest, subscriberMerged } from "../../src/operations/merged-messages"
import type { Store } from "../../src/store/store"
import { addSubscriber } from "../harness/audience"
import { refusal } from "../harness/client"
import { dying } from "../harness/dying-store"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

/** More than a merge moves at once, and more than its job moves in one transaction. */
const MANY = 1100
const AT_ONCE = 500

const path = (id: string, verb = "") => `/v1/subscribers/${id}${verb}`

const merge = (project: TestProject, into: string, from: string) =>
  project.post(path(into, "/merge"), { from_id: from })

const remove = (project: TestProject, id: string) => project.call("DELETE", path(id))

const erase = (project: TestProject, { id, external_id }: { id: string; external_id: string }) =>
  project.post(path(id, "/erase"), { confirm: external_id })

/** Scheduled mail to a subscriber. */
async function write(project: TestProject, subscriber_id: string, count: number) {
  const one = mail({ to: "shared@mailbox.test", subscriber_id })
  const scheduled_at = secondsFromNow(86_400)
  for (let left = count; left > 0; left -= 100) {
    const list = Array.from({ length: Math.min(left, 100) }, () => ({ ...one, scheduled_at }))
    const { body } = await project.post("/v1/emails/batch", { messages: list })
    expect(body.data.succeeded).toBe(list.length)
  }
}

/** Subscribers with one address, of which the first one has the mail. An address that is shared names nobody. */
async function people(count = MANY) {
  const project = await service.project()
  const fields = { email: "shared@mailbox.test" }
  const [from, into] = [await addSubscriber(project, fields), await addSubscriber(project, fields)]
  await write(project, from.id, count)
  return { project, from, into }
}

/** How many messages each subscriber has. */
async function owners({ project_id }: TestProject): Promise<Record<string, number>> {
  const { subscriber_id } = messages
  const ours = eq(messages.project_id, project_id)
  const rows = await store.read.select({ subscriber_id }).from(messages).where(ours)
  const groups = Map.groupBy(rows, (row) => row.subscriber_id ?? "")
  return Object.fromEntries([...groups].map(([id, list]) => [id, list.length]))
}

/** The jobs of the merges of a project, in their order. */
async function jobsOf({ project_id }: TestProject) {
  const ours = and(eq(jobs.project_id, project_id), eq(jobs.name, subscriberMerged.name))
  return store.read.select().from(jobs).where(ours).orderBy(asc(jobs.id))
}

const run = (job: JobRow, by: Store = store) => moveRest(by).run(job.payload as never, job)

async function runAll(list: JobRow[]) {
  for (const job of list) expect(await run(job)).toEqual({})
}

describe("a merge of a subscriber with many messages", () => {
  test("moves the newest ones at once, and a job the others, which may die and run again", async () => {
    const { project, from, into } = await people()
    expect((await merge(project, into.id, from.id)).status).toBe(200)
    expect(await owners(project)).toEqual({ [into.id]: AT_ONCE, [from.id]: MANY - AT_ONCE })
    const ids = await store.read
      .select({ id: messages.id, owner: messages.subscriber_id })
      .from(messages)
      .where(eq(messages.project_id, project.project_id))
      .orderBy(asc(messages.id))
    const isFirst = (at: number) => at < MANY - AT_ONCE
    expect(ids.every(({ owner }, at) => owner === (isFirst(at) ? from.id : into.id))).toBe(true)

    const [job, ...others] = await jobsOf(project)
    if (!job) throw new Error("there is no job")
    expect(others).toEqual([])
    await expect(run(job, dying(store, 1))).rejects.toThrow("killed")
    expect(await owners(project)).toEqual({ [into.id]: 2 * AT_ONCE, [from.id]: MANY - 2 * AT_ONCE })
    await runAll([job, job])
    expect(await owners(project)).toEqual({ [into.id]: MANY })
  })

  test("changes nothing where it dies before its end", async () => {
    const { project, from, into } = await people(AT_ONCE + 1)
    const caller = await projectCaller(store.read, project.project_id)
    if (!caller) throw new Error("the project does not send")
    const tx: Store["tx"] = (work) =>
      store.tx(async (open) => {
        await work(open)
        throw new Error("killed")
      })
    const merging = mergeSubscribers({ ...store, tx }, caller, into.id, from.id)
    await expect(merging).rejects.toThrow("killed")
    expect(await owners(project)).toEqual({ [from.id]: AT_ONCE + 1 })
    expect((await project.get(path(from.id))).status).toBe(200)
    expect(await jobsOf(project)).toEqual([])
  })

  test("shows all of them meanwhile: in the list, in an export, and to the decision before they leave", async () => {
    const { project, from, into } = await people(AT_ONCE + 20)
    await merge(project, into.id, from.id)
    const exported = async () => {
      const { data } = (await project.get(path(into.id, "/export"))).body
      return data.messages.map(({ id }: { id: string }) => id) as string[]
    }
    for (const name of [into.id, into.external_id]) {
      const { meta } = (await project.get(`/v1/emails?subscriber_id=${name}`)).body
      expect(meta.total).toBe(AT_ONCE + 20)
    }
    const before = await exported()
    expect(before.length).toBe(new Set(before).size)
    expect(before).toHaveLength(AT_ONCE + 20)

    const left = await store.read.select().from(messages).where(eq(messages.subscriber_id, from.id))
    expect(left).toHaveLength(20)
    const [waiting] = left
    if (!waiting) throw new Error("all were moved")
    expect(await decidedAtSend(store.read, waiting)).toMatchObject({ is_allowed: true })
    const again = await project.post(`/v1/emails/${waiting.id}/resend`, {})
    const { data } = (await project.get(`/v1/emails/${again.body.id}`)).body
    expect(data.subscriber_id).toBe(into.id)
    await project.post(path(into.id, "/unsubscribe"), { channel: "email" })
    expect(await decidedAtSend(store.read, waiting)).toMatchObject({ reason: "unsubscribed" })

    await runAll(await jobsOf(project))
    expect(await exported()).toEqual([...before, again.body.id])
    expect(await decidedAtSend(store.read, waiting)).toMatchObject({ reason: "unsubscribed" })
  })

  test("is whole or not at all where its subscriber is erased at the same time", async () => {
    const { project, from, into } = await people()
    const [merged, erased] = await Promise.all([
      merge(project, into.id, from.id),
      erase(project, from),
    ])
    const found = Object.values(await owners(project)).reduce((sum, one) => sum + one, 0)
    if (erased.status === 200) {
      expect([merged.status, found, erased.body.data.counts.messages]).toEqual([404, 0, MANY])
    } else {
      expect([refusal(erased), merged.status, found]).toEqual([
        [404, "subscriber_not_found"],
        200,
        MANY,
      ])
    }
  })

  test("is whole or not at all where its subscriber is removed at the same time", async () => {
    const { project, from, into } = await people()
    const [merged, removed] = await Promise.all([
      merge(project, into.id, from.id),
      remove(project, from.id),
    ])
    expect([merged.status, removed.status].sort()).toEqual([200, 404])
    await runAll(await jobsOf(project))
    const owner = merged.status === 200 ? into : from
    expect(await owners(project)).toEqual({ [owner.id]: MANY })
  })

  test("leaves nothing to an erasure that comes before its job, or while it runs", async () => {
    const { project, from, into } = await people()
    await merge(project, into.id, from.id)
    const [job] = await jobsOf(project)
    if (!job) throw new Error("there is no job")
    const [erased] = await Promise.all([erase(project, into), run(job)])
    expect([erased.status, erased.body.data.counts.messages]).toEqual([200, MANY])
    expect(await owners(project)).toEqual({})
    await runAll([job])
  })

  test("gives them to the id of the kept subscriber where that one is removed before the job", async () => {
    const { project, from, into } = await people()
    await merge(project, into.id, from.id)
    const planned = await jobsOf(project)
    await remove(project, into.id)
    await runAll(planned)
    expect(await owners(project)).toEqual({ [into.id]: MANY })
  })

  test("leaves nothing to an erasure by the id of a kept subscriber that was removed before the job", async () => {
    const { project, from, into } = await people()
    const last = await addSubscriber(project)
    await merge(project, into.id, from.id)
    await merge(project, last.id, into.id)
    const planned = await jobsOf(project)
    await remove(project, last.id)
    const erased = await project.post(path(last.id, "/erase"), { confirm: last.id })
    expect([erased.status, erased.body.data.counts.messages]).toEqual([200, MANY])
    await runAll(planned)
    expect(await owners(project)).toEqual({})
  })

  test.each(["first", "last"] as const)(
    "follows a second merge whose subscriber was removed: the earlier job runs %s",
    async (place) => {
      const { project, from, into } = await people()
      const last = await addSubscriber(project)
      await merge(project, into.id, from.id)
      await merge(project, last.id, into.id)
      const planned = await jobsOf(project)
      expect(planned).toHaveLength(2)
      await remove(project, last.id)
      await runAll(place === "first" ? planned : planned.toReversed())
      expect(await owners(project)).toEqual({ [last.id]: MANY })
    },
  )

  test("follows a second merge: all belong to the last subscriber, and go with it", async () => {
    const { project, from, into } = await people()
    const last = await addSubscriber(project)
    await merge(project, into.id, from.id)
    await merge(project, last.id, into.id)
    const [job] = await jobsOf(project)
    if (!job) throw new Error("there is no job")
    await runAll([job]) // the job of the first merge, after the second one
    expect(await owners(project)).toEqual({ [last.id]: MANY })
    expect((await erase(project, last)).body.data.counts.messages).toBe(MANY)
    expect(await owners(project)).toEqual({})
  })
})
