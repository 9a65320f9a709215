import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { secondsFromNow } from "../../src/core/time"
import { jobs } from "../../src/jobs/tables"
import { bump } from "../../src/store/counters"
import { topicMembers } from "../../src/topics/tables"
import { MOST_TOPICS, removeMembers } from "../../src/topics/topics"
import { complaints, refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "./made-subscribers"

const service = await sharedService()
const { store } = service

const ALL = "/v1/topics"

async function made(project: TestProject, fields: object = {}) {
  const { status, body, text } = await project.post(ALL, { name: "Product news", ...fields })
  if (status !== 201) throw new Error(text)
  return body.data
}

const patch = (project: TestProject, key: string, body: object) =>
  project.call("PATCH", `${ALL}/${key}`, { body })

const keysIn = ({ body }: { body: { data: { key: string }[] } }) => body.data.map(({ key }) => key)

describe("a new topic", () => {
  test("gets a key that is made of its name, and the defaults", async () => {
    const project = await service.project()
    const topic = await made(project, { name: "Große Küche & Café" })
    expect(topic).toEqual({
      id: expect.any(String),
      key: "grosse-kuche-cafe",
      name: "Große Küche & Café",
      description: null,
      default: "on",
      visibility: "private",
      subscriber_count: 0,
      created_at: expect.any(String),
      updated_at: topic.created_at,
    })
    expect((await project.get(`${ALL}/grosse-kuche-cafe`)).body.data).toEqual(topic)
  })

  test("keeps what it is given", async () => {
    const project = await service.project()
    const fields = {
      key: "news.2026_v-1",
      description: "All of it",
      default: "off",
      visibility: "public",
    }
    expect(await made(project, fields)).toMatchObject(fields)
  })

  test("is refused where the project has too many, also of several at once", async () => {
    const project = await service.project()
    await store.tx((tx) => bump(tx, project.project_id, "topics", MOST_TOPICS - 1))
    const answers = await Promise.all(
      ["a", "b", "c"].map((key) => project.post(ALL, { name: key, key })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const refused = answers.find(({ status }) => status === 409)
    expect(refused?.body.error.details).toEqual({ reason: "too_many", limit: MOST_TOPICS })
    expect(keysIn(await project.get(ALL))).toHaveLength(1)
    const taken = await project.post(ALL, { name: "Again", key: keysIn(await project.get(ALL))[0] })
    expect(taken.body.error.details.reason).toBe("key_taken")
  })

  test("takes the default as the resend client says it", async () => {
    const project = await service.project()
    const wish = { name: "A", default_subscription: "opt_out" }
    expect((await made(project, wish)).default).toBe("off")
    expect((await made(project, { name: "B", default_subscription: "opt_in" })).default).toBe("on")
    const both = await project.post(ALL, { ...wish, name: "C", default: "on" })
    expect(complaints(both)).toEqual(["default_subscription"])
  })

  test("needs a key that no other topic of the project has", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const again = await project.post(ALL, { name: "Product News!" })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "key_taken", id })
    expect((await made(await service.project())).key).toBe("product-news")
  })

  test.each<[string, object, string[]]>([
    ["no name", { name: undefined }, ["name"]],
    ["a name of two lines", { name: "a\nb" }, ["name"]],
    ["a name of which no key can be made", { name: "日本語" }, ["key"]],
    ["a key with other letters", { key: "News" }, ["key"]],
    ["a key that begins with a dot", { key: ".news" }, ["key"]],
    ["a key with a slash", { key: "a/b" }, ["key"]],
    ["a key that is too long", { key: "k".repeat(65) }, ["key"]],
    ["a name with NUL", { name: "a\0b" }, ["name"]],
    ["half of a surrogate pair", { name: "a\ud800", key: "a" }, ["name"]],
    ["a name that is too long", { name: "n".repeat(10_000) }, ["name"]],
    ["a key with NUL", { key: "a\0" }, ["key"]],
    ["a description with NUL", { description: "a\0" }, ["description"]],
    ["a description that is too long", { description: "d".repeat(10_000) }, ["description"]],
    ["a default that is neither", { default: true }, ["default"]],
    ["a visibility that is neither", { visibility: "hidden" }, ["visibility"]],
  ])("is refused with %s", async (_, fields, paths) => {
    const project = await service.project()
    const answer = await project.post(ALL, { name: "Product news", ...fields })
    expect(answer.status).toBe(422)
    expect(complaints(answer)).toEqual(paths)
  })

  test.each(["batch", "bulk", "categories", "external", "preferences", "stats", "user"])(
    "is refused with the reserved key %s, also where it comes from the name",
    async (key) => {
      const project = await service.project()
      for (const body of [{ name: "A", key }, { name: key.toUpperCase() }]) {
        const { status, body: answer } = await project.post(ALL, body)
        expect([status, answer.error.details.fields]).toEqual([
          422,
          [{ path: "key", code: "reserved", message: expect.stringContaining(key) }],
        ])
      }
    },
  )

  test("is made once by one Idempotency-Key", async () => {
    const project = await service.project()
    const headers = { "idempotency-key": "k1" }
    const [first, second] = [
      await project.post(ALL, { name: "News" }, headers),
      await project.post(ALL, { name: "News" }, headers),
    ]
    expect(second.body.data).toEqual(first.body.data)
    expect((await project.get(ALL)).body.meta.total).toBe(1)
  })
})

describe("the list of topics", () => {
  test("is newest first, and searches keys, names and descriptions", async () => {
    const project = await service.project()
    await made(project, { name: "Ändern", key: "one" })
    await made(project, { name: "Two", description: "100% to ÄNDERN" })
    await made(project, { name: "Three" })
    expect(keysIn(await project.get(ALL))).toEqual(["three", "two", "one"])
    const search = async (text: string) =>
      keysIn(await project.get(`${ALL}?search=${encodeURIComponent(text)}`))
    expect(await search("ändern")).toEqual(["two", "one"])
    expect(await search("THREE")).toEqual(["three"])
    expect(await search("%")).toEqual(["two"])
    expect(await search("nothing")).toEqual([])
    for (const text of ["\0", "s".repeat(10_000)]) {
      const refused = await project.get(`${ALL}?search=${encodeURIComponent(text)}`)
      expect(complaints(refused)).toEqual(["search"])
    }
    const { body } = await project.get(`${ALL}?search=t&per_page=1`)
    expect([body.meta.total, body.has_more]).toEqual([2, true])
  })

  test("goes on behind a cursor and an id", async () => {
    const project = await service.project()
    const first = await made(project, { name: "One" })
    const second = await made(project, { name: "Two" })
    const page = await project.get(`${ALL}?per_page=1`)
    expect(keysIn(page)).toEqual(["two"])
    const next = page.body.meta.next_cursor
    expect(keysIn(await project.get(`${ALL}?per_page=1&cursor=${next}`))).toEqual(["one"])
    expect(keysIn(await project.get(`${ALL}?after=${second.id}`))).toEqual(["one"])
    expect(keysIn(await project.get(`${ALL}?before=${first.id}`))).toEqual(["two"])
  })
})

describe("a topic", () => {
  test("changes by the fields that are named, but never its key", async () => {
    const project = await service.project()
    const before = await made(project, { description: "Old" })
    const { status, body } = await patch(project, before.key, { name: "News", default: "off" })
    expect(status).toBe(200)
    const { updated_at, ...rest } = body.data
    expect({ ...rest, updated_at: before.updated_at }).toEqual({
      ...before,
      name: "News",
      default: "off",
    })
    expect(updated_at >= before.updated_at).toBe(true)
    expect(await keysOfSearch(project, "news")).toEqual([before.key])
    const emptied = await patch(project, before.key, { description: null, key: "other" })
    expect(emptied.body.data).toMatchObject({ description: null, key: before.key })
    const nothing = await patch(project, before.key, { key: "other" })
    expect(refusal(nothing)).toEqual([422, "validation_error"])
    expect(complaints(nothing)).toEqual(["body"])
  })

  const keysOfSearch = async (project: TestProject, text: string) =>
    keysIn(await project.get(`${ALL}?search=${text}`))

  test("is found by its id as well, where no other topic has that for its key", async () => {
    const project = await service.project()
    const { id, key } = await made(project)
    expect((await project.get(`${ALL}/${id}`)).body.data).toMatchObject({ id, key })
    const changed = await patch(project, id, { name: "Other" })
    expect(changed.body.data).toMatchObject({ key, name: "Other" })
    const odd = await made(project, { name: "Odd", key: id })
    expect((await project.get(`${ALL}/${id}`)).body.data.id).toBe(odd.id)
  })

  test("is nobody else's, and not found by half a name", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const { id, key } = await made(project)
    for (const [who, name] of [
      [other, key],
      [other, id],
      [project, "product"],
      [project, "a%2Fb"],
      [project, "PRODUCT-NEWS"],
      [project, "%00"],
    ] as const) {
      expect(refusal(await who.get(`${ALL}/${name}`))).toEqual([404, "topic_not_found"])
      expect(refusal(await patch(who, name, { name: "x" }))).toEqual([404, "topic_not_found"])
      const removed = await who.call("DELETE", `${ALL}/${name}`)
      expect(refusal(removed)).toEqual([404, "topic_not_found"])
    }
    expect((await project.get(ALL)).body.meta.total).toBe(1)
  })

  test("is deleted with its memberships, and its key is free again", async () => {
    const project = await service.project()
    const { id, key } = await made(project)
    const [ann] = await makeSubscribers(service, project, [{ external_id: "ann" }])
    await project.post(`${ALL}/${key}/subscribers`, { subscriber_ids: ["ann"] })
    const removed = await project.call("DELETE", `${ALL}/${key}`)
    expect([removed.status, removed.body.data]).toEqual([200, { id, deleted: true }])
    expect(refusal(await project.call("DELETE", `${ALL}/${key}`))).toEqual([404, "topic_not_found"])
    const planned = await store.read
      .select()
      .from(jobs)
      .where(eq(jobs.project_id, project.project_id))
    const [job] = planned.filter(({ name }) => name === "topic.removed")
    expect(job?.payload).toEqual({ id })
    expect(await removeMembers(store).run({ id }, job as never)).toEqual({})
    const left = store.read
      .select()
      .from(topicMembers)
      .where(eq(topicMembers.subscriber_id, ann ?? ""))
    expect(await left).toEqual([])
    expect((await made(project)).subscriber_count).toBe(0)
    expect((await project.get(ALL)).body.meta.total).toBe(1)
  })

  test("stays while a publish to it is not over", async () => {
    const project = await service.project()
    const { key } = await made(project)
    const publish = await project.post(`${ALL}/${key}/publish`, {
      channels: ["email"],
      content: { email: { subject: "News", text: "Hello", from: "news@example.test" } },
      scheduled_at: secondsFromNow(3600),
    })
    const refused = await project.call("DELETE", `${ALL}/${key}`)
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason: "publish_running" })
    await project.post(`${ALL}/${key}/publishes/${publish.body.data.id}/cancel`)
    expect((await project.call("DELETE", `${ALL}/${key}`)).status).toBe(200)
  })

  test("leaves a trace of its making, its changes and its end in the audit log", async () => {
    const project = await service.project()
    const { id, key } = await made(project)
    await patch(project, key, { name: "News" })
    await project.call("DELETE", `${ALL}/${key}`)
    const all = await store.read.select().from(auditLog).where(eq(auditLog.target_id, id))
    const told = all.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(told.map(({ action }) => action)).toEqual([
      "topic.created",
      "topic.updated",
      "topic.deleted",
    ])
    expect(told[1]).toMatchObject({
      before: { topic: key, name: "Product news" },
      after: { topic: key, name: "News" },
    })
  })
})
