import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import * as members from "../../src/topics/memberships"
import { topicMembers, topics } from "../../src/topics/tables"
import { complaints, refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "./made-subscribers"

const service = await sharedService()
const { store } = service

const ALL = "/v1/topics"
const PEOPLE = ["ann", "ben", "eve"] as const

/** A project with a topic and three subscribers. */
async function town(name = "News") {
  const project = await service.project()
  const topic = (await project.post(ALL, { name })).body.data
  const ids = await makeSubscribers(
    service,
    project,
    PEOPLE.map((external_id) => ({ external_id, email: `${external_id}@example.test` })),
  )
  const [ann = "", ben = "", eve = ""] = ids
  return { project, topic, path: `${ALL}/${topic.key}/subscribers`, ann, ben, eve }
}

const join = async (project: TestProject, path: string, ...subscriber_ids: string[]) =>
  (await project.post(path, { subscriber_ids })).body.data

const leave = (project: TestProject, path: string, ...subscriber_ids: string[]) =>
  project.call("DELETE", path, { body: { subscriber_ids } })

const countOf = async (project: TestProject, key = "news"): Promise<number> =>
  (await project.get(`${ALL}/${key}`)).body.data.subscriber_count

const rowsOf = async (topic_id: string) => {
  const rows = store.read.select().from(topicMembers).where(eq(topicMembers.topic_id, topic_id))
  return (await rows).toSorted((a, b) => a.number - b.number)
}

const names = ({ body }: { body: { data: { external_id: string }[] } }) =>
  body.data.map(({ external_id }) => external_id)

describe("members", () => {
  test("join by id and by external id, once, and those who do not exist are named", async () => {
    const { project, path, ann, topic } = await town()
    const nobody = newId()
    expect(await join(project, path, ann, "ben", "ann", "x", "x", nobody)).toEqual({
      added: 2,
      already: 0,
      not_found: ["x", nobody],
    })
    expect(await join(project, path, "ann", "eve")).toEqual({ added: 1, already: 1, not_found: [] })
    expect(await countOf(project)).toBe(3)
    expect((await rowsOf(topic.id)).map(({ number }) => number)).toEqual([1, 2, 3])
  })

  test("are listed with their addresses, the latest first", async () => {
    const { project, path, ann } = await town()
    await join(project, path, "ann")
    await join(project, path, "ben")
    await join(project, path, "eve")
    const all = await project.get(path)
    expect(all.body.data.at(-1)).toEqual({
      subscriber_id: ann,
      external_id: "ann",
      email: "ann@example.test",
      subscribed_at: expect.any(String),
    })
    expect([names(all), all.body.meta.total]).toEqual([["eve", "ben", "ann"], 3])
    const page = await project.get(`${path}?per_page=2`)
    const { next_cursor } = page.body.meta
    expect(names(page)).toEqual(["eve", "ben"])
    expect(names(await project.get(`${path}?per_page=2&cursor=${next_cursor}`))).toEqual(["ann"])
    expect(names(await project.get(`${path}?after=${ann}`))).toEqual([])
    expect(names(await project.get(`${path}?before=${ann}`))).toEqual(["eve", "ben"])
    expect(refusal(await project.get(`${path}?after=${newId()}`))).toEqual([
      422,
      "validation_error",
    ])
  })

  test("leave many at once or one alone, and nobody gets their number", async () => {
    const { project, path, ben, topic } = await town()
    await join(project, path, ...PEOPLE)
    const left = await leave(project, path, "eve", ben, "x")
    expect([left.status, left.body.data]).toEqual([200, { removed: 2, not_found: ["x"] }])
    expect((await leave(project, path, "eve")).body.data).toEqual({
      removed: 0,
      not_found: ["eve"],
    })
    expect(await countOf(project)).toBe(1)
    await join(project, path, "ben")
    expect((await rowsOf(topic.id)).map(({ number }) => number)).toEqual([1, 4])
    const one = await project.call("DELETE", `${path}/ben`)
    expect([one.status, one.body.data]).toEqual([200, { id: ben, deleted: true }])
    const again = await project.call("DELETE", `${path}/${ben}`)
    expect(refusal(again)).toEqual([404, "subscriber_not_found"])
    expect(await countOf(project)).toBe(1)
  })

  test("may have external ids with slashes and signs", async () => {
    const { project, path } = await town()
    await makeSubscribers(service, project, [{ external_id: "a/b" }, { external_id: "c%2Fd é" }])
    expect(await join(project, path, "a/b", "c%2Fd é")).toMatchObject({ added: 2 })
    for (const name of ["a/b", "c%2Fd é"]) {
      const { status } = await project.call("DELETE", `${path}/${encodeURIComponent(name)}`)
      expect(status).toBe(200)
    }
  })

  test("are subscribers of the same project, in a topic of it", async () => {
    const here = await town()
    const there = await town()
    expect(await join(here.project, here.path, there.ann)).toEqual({
      added: 0,
      already: 0,
      not_found: [there.ann],
    })
    await join(there.project, there.path, "ann")
    expect((await leave(here.project, here.path, there.ann)).body.data).toEqual({
      removed: 0,
      not_found: [there.ann],
    })
    for (const name of [there.ann, "nobody", "a%2Fb", "%00"]) {
      const foreign = await here.project.call("DELETE", `${here.path}/${name}`)
      expect(refusal(foreign)).toEqual([404, "subscriber_not_found"])
    }
    expect(await countOf(there.project)).toBe(1)
    const nowhere = `${ALL}/nothing/subscribers`
    for (const answer of [
      await here.project.get(nowhere),
      await here.project.post(nowhere, { subscriber_ids: ["ann"] }),
      await leave(here.project, nowhere, "ann"),
      await here.project.call("DELETE", `${nowhere}/ann`),
    ]) {
      expect(refusal(answer)).toEqual([404, "topic_not_found"])
    }
  })

  test.each<[string, unknown]>([
    ["no list", undefined],
    ["an empty list", []],
    ["one that is no text", [7]],
    ["an empty text", [""]],
    ["a text with NUL", ["a\0"]],
    ["half of a surrogate pair", ["\ud800"]],
    ["more than 1,000", Array.from({ length: 1001 }, (_, at) => `s${at}`)],
  ])("are refused with %s", async (_, subscriber_ids) => {
    const { project, path } = await town()
    for (const answer of [
      await project.post(path, { subscriber_ids }),
      await project.call("DELETE", path, { body: { subscriber_ids } }),
    ]) {
      expect(answer.status).toBe(422)
      expect(complaints(answer)[0]).toStartWith("subscriber_ids")
    }
  })

  test("are 1,000 in one request, and joined by many requests at once each exactly once", async () => {
    const { project, path, topic } = await town()
    const list = Array.from({ length: 1000 }, (_, at) => ({ external_id: `s${at}` }))
    await makeSubscribers(service, project, list)
    const all = list.map(({ external_id }) => external_id)
    const halves = [all, all.slice(500), all.slice(0, 700), all.toReversed()]
    const answers = await Promise.all(halves.map((half) => join(project, path, ...half)))
    expect(answers.reduce((sum, { added }) => sum + added, 0)).toBe(1000)
    expect(await countOf(project)).toBe(1000)
    const rows = await rowsOf(topic.id)
    expect(rows.map(({ number }) => number)).toEqual(rows.map((_, at) => at + 1))
  })
})

describe("what joins subscribers and topics", () => {
  test("a subscriber leaves every topic at once", async () => {
    const { project, path, ann, topic } = await town()
    const other = (await project.post(ALL, { name: "Offers" })).body.data
    await join(project, path, "ann", "ben")
    await join(project, `${ALL}/offers/subscribers`, "ann")
    expect(await store.tx((tx) => members.leaveAll(tx, [ann]))).toBe(2)
    expect([await countOf(project), await countOf(project, "offers")]).toEqual([1, 0])
    expect([(await rowsOf(topic.id)).length, (await rowsOf(other.id)).length]).toEqual([1, 0])
    expect(await store.tx((tx) => members.leaveAll(tx, [ann]))).toBe(0)
  })

  test("memberships move to another subscriber, who is counted once", async () => {
    const { project, path, ann, ben, topic } = await town()
    const other = (await project.post(ALL, { name: "Offers" })).body.data
    await join(project, path, "ann", "ben")
    await join(project, `${ALL}/offers/subscribers`, "ann")
    expect(await store.tx((tx) => members.moveAll(tx, ann, ben, async () => false))).toBe(1)
    expect([await countOf(project), await countOf(project, "offers")]).toEqual([1, 1])
    expect(await rowsOf(topic.id)).toMatchObject([{ subscriber_id: ben, number: 2 }])
    expect(await rowsOf(other.id)).toMatchObject([{ subscriber_id: ben, number: 1 }])
    const counts = await store.read.select().from(topics).where(eq(topics.id, other.id))
    expect(counts).toMatchObject([{ subscriber_count: 1, last_number: 1 }])
  })
})
