import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { totals } from "../../src/store/counters"
import { subscribers, subscriberTags, subscriberWords } from "../../src/subscribers/tables"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const PATH = "/v1/subscribers"

const external = (id: string) => `${PATH}/external/${encodeURIComponent(id)}`

const add = async (project: TestProject, fields: object = { external_id: "user-1" }) =>
  (await project.post(PATH, fields)).body.data

const patch = (project: TestProject, id: string, body: object) =>
  project.call("PATCH", `${PATH}/${encodeURIComponent(id)}`, { body })

const put = (project: TestProject, id: string, body: object = {}) =>
  project.call("PUT", external(id), { body })

describe("a subscriber", () => {
  test("is added, and shown by its id and by its external id", async () => {
    const project = await service.project()
    const added = await project.post(PATH, {
      external_id: "user-1",
      email: "Ann <Ann@Example.test>",
      phone: "+4915112345678",
      name: "Ann Example",
      avatar_url: "https://example.test/ann.png",
      locale: "de-AT",
      timezone: "Europe/Vienna",
      metadata: { plan: "pro" },
      tags: ["beta", "vip", "beta"],
    })
    expect(added.status).toBe(201)
    const { data } = added.body
    expect(data).toEqual({
      id: expect.any(String),
      project_id: project.project_id,
      external_id: "user-1",
      email: "Ann@Example.test",
      phone: "+4915112345678",
      name: "Ann Example",
      avatar_url: "https://example.test/ann.png",
      locale: "de-AT",
      timezone: "Europe/Vienna",
      metadata: { plan: "pro" },
      tags: ["beta", "vip"],
      status: "active",
      auth_user_id: null,
      devices: 0,
      unread: 0,
      last_seen_at: null,
      created_at: expect.any(String),
      updated_at: data.created_at,
    })
    expect((await project.get(`${PATH}/${data.id}`)).body.data).toEqual(data)
    expect((await project.get(`${PATH}/user-1`)).body.data).toEqual(data)
    expect((await project.get(external("user-1"))).body.data).toEqual(data)
  })

  test("has an external id that no other one of the project has", async () => {
    const project = await service.project()
    const { id } = await add(project)
    const again = await project.post(PATH, { external_id: "user-1", name: "Other" })
    expect(refusal(again)).toEqual([409, "duplicate_subscriber"])
    expect(again.body.error.details).toEqual({ id })
    const other = await add(project, { external_id: "user-2" })
    const renamed = await patch(project, other.id, { external_id: "user-1" })
    expect(refusal(renamed)).toEqual([409, "duplicate_subscriber"])
    expect(renamed.body.error.details).toEqual({ id })
    const elsewhere = await service.project()
    expect((await elsewhere.post(PATH, { external_id: "user-1" })).status).toBe(201)
  })

  test("gets a name that others ask for at the same moment, or a conflict", async () => {
    const project = await service.project()
    const people = await Promise.all(
      [1, 2, 3].map((at) => add(project, { external_id: `user-${at}` })),
    )
    let made = people.length
    for (const name of ["first", "second", "third"]) {
      const answers = await Promise.all([
        ...people.map(({ id }) => patch(project, id, { external_id: name })),
        project.post(PATH, { external_id: name }),
      ])
      const refused = answers.filter(({ status }) => status !== 200 && status !== 201)
      expect(refused.map(refusal)).toEqual(
        Array.from({ length: 3 }, () => [409, "duplicate_subscriber"]),
      )
      made += answers.filter(({ status }) => status === 201).length
      const named = (await project.get(`${PATH}?external_id=${name}`)).body
      expect([named.data.length, named.meta.total]).toEqual([1, 1])
    }
    expect((await project.get(PATH)).body.meta.total).toBe(made)
  })

  test("is added once under an Idempotency-Key", async () => {
    const project = await service.project()
    const key = { "idempotency-key": "one" }
    const first = await project.post(PATH, { external_id: "user-1" }, key)
    const second = await project.post(PATH, { external_id: "user-1" }, key)
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.body.data).toEqual(first.body.data)
  })

  test("changes where fields are given, and nowhere else", async () => {
    const project = await service.project()
    const before = await add(project, {
      external_id: "user-1",
      email: "ann@example.test",
      name: "Ann",
      metadata: { plan: "pro", age: 40 },
      tags: ["beta"],
    })
    const after = (
      await patch(project, before.id, {
        external_id: "user-2",
        name: null,
        status: "unsubscribed",
        metadata: { age: null, city: "Graz" },
        tags: ["vip"],
      })
    ).body.data
    expect(after).toEqual({
      ...before,
      external_id: "user-2",
      name: null,
      status: "unsubscribed",
      metadata: { plan: "pro", city: "Graz" },
      tags: ["vip"],
      updated_at: expect.any(String),
    })
    expect((await project.get(`${PATH}/user-2`)).body.data).toEqual(after)
    expect(refusal(await project.get(`${PATH}/user-1`))).toEqual([404, "subscriber_not_found"])
    expect(complaints(await patch(project, before.id, {}))).toEqual(["body"])
  })

  test("keeps a null of its metadata that a change does not name", async () => {
    const project = await service.project()
    const { id } = await add(project, {
      external_id: "user-1",
      metadata: { left_at: null, plan: "pro" },
    })
    const after = (await patch(project, id, { metadata: { plan: "free" } })).body.data
    expect(after.metadata).toEqual({ left_at: null, plan: "free" })
    const removed = (await patch(project, id, { metadata: { left_at: null } })).body.data
    expect(removed.metadata).toEqual({ plan: "free" })
  })

  test("is made or changed under its external id", async () => {
    const project = await service.project()
    const made = await put(project, "user-1", { name: "Ann", metadata: { a: 1 }, tags: ["x"] })
    expect(made.status).toBe(201)
    const changed = await put(project, "user-1", { external_id: "user-1", metadata: { b: 2 } })
    expect(changed.status).toBe(200)
    expect(changed.body.data).toEqual({
      ...made.body.data,
      metadata: { b: 2 },
      updated_at: expect.any(String),
    })
    const same = await put(project, "user-1", { name: "Ann" })
    expect(same.body.data).toEqual(changed.body.data)
    expect(complaints(await put(project, "user-1", { external_id: "user-2" }))).toEqual([
      "external_id",
    ])
  })

  test("is removed with all by which it was found", async () => {
    const project = await service.project()
    const fields = { email: "ann@example.test", tags: ["beta"] }
    const { id } = await add(project, { external_id: "user-1", ...fields })
    await add(project, { external_id: "user-2", ...fields })
    const removed = await project.call("DELETE", `${PATH}/${id}`)
    expect(removed.body.data).toEqual({ id, deleted: true })
    expect(refusal(await project.call("DELETE", `${PATH}/${id}`))).toEqual([
      404,
      "subscriber_not_found",
    ])
    const other = await project.call("DELETE", external("user-2"))
    expect(other.body.data).toEqual({ id: expect.any(String), deleted: true })
    const { read } = service.store
    for (const table of [subscribers, subscriberTags, subscriberWords]) {
      const left = await read.select().from(table).where(eq(table.project_id, project.project_id))
      expect(left).toEqual([])
    }
    expect((await project.get(PATH)).body.meta.total).toBe(0)
    const names = ["subscribers", "subscribers.status.active", "subscribers.tag.beta"]
    const sums = await totals(read, project.project_id, names)
    expect([...sums.values()]).toEqual([0, 0, 0])
  })

  test("leaves no personal data in the audit log when it is removed", async () => {
    const project = await service.project()
    const { id } = await add(project, { external_id: "canary-1", email: "canary@example.test" })
    await project.call("DELETE", `${PATH}/${id}`)
    const entries = await service.store.read
      .select()
      .from(auditLog)
      .where(eq(auditLog.project_id, project.project_id))
    const told = entries.filter(({ target_id }) => target_id === id)
    expect(told.map(({ action }) => action)).toEqual(["subscriber.deleted"])
    expect(JSON.stringify(told)).not.toContain("canary")
  })

  test("is a matter of its project alone", async () => {
    const [project, stranger] = [await service.project(), await service.project()]
    const { id } = await add(project, { external_id: "user-1" })
    for (const name of [id, "user-1", NOBODY]) {
      const gone = [404, "subscriber_not_found"]
      expect(refusal(await stranger.get(`${PATH}/${name}`))).toEqual(gone)
      expect(refusal(await stranger.call("DELETE", `${PATH}/${name}`))).toEqual(gone)
      expect(refusal(await patch(stranger, name, { name: "x" }))).toEqual(gone)
    }
    expect(refusal(await stranger.get(external("user-1")))).toEqual([404, "subscriber_not_found"])
    expect((await stranger.get(PATH)).body.data).toEqual([])
    expect((await project.get(`${PATH}/${id}`)).status).toBe(200)
  })
})

const RESERVED = ["batch", "bulk", "categories", "external", "preferences", "stats", "user"]

describe("an external id", () => {
  test.each(RESERVED)("%s is reserved", async (name) => {
    const project = await service.project()
    const answers = [
      await project.post(PATH, { external_id: name }),
      await put(project, name),
      await patch(project, (await add(project)).id, { external_id: name }),
    ]
    for (const answer of answers) {
      expect(refusal(answer)).toEqual([422, "validation_error"])
      const [{ path, code }] = answer.body.error.details.fields
      expect([path, code]).toEqual(["external_id", "reserved"])
    }
  })

  test.each([".", ".."])("%s cannot be in a path, so it is refused", async (name) => {
    const project = await service.project()
    const { id } = await add(project)
    const item = { external_id: name }
    const answers = [await project.post(PATH, item), await patch(project, id, item)]
    for (const { status, body } of answers) {
      const { path, code, message } = body.error.details.fields[0]
      expect([status, path, code]).toEqual([422, "external_id", "reserved"])
      expect(message).toStartWith(`A URL cannot hold ${name} as a name`)
    }
    const { body } = await project.post(`${PATH}/bulk`, { subscribers: [item] })
    expect([body.data.created, body.data.failed.length]).toEqual([0, 1])
    expect((await project.post(PATH, { external_id: `${name}a` })).status).toBe(201)
  })

  test.each([
    "a/b",
    "a%2Fb",
    "%",
    "%2F",
    "a b+c",
    "?x=1#y",
    "ü/王",
    "../x",
    "Bulk",
    "a\\b",
    "😀",
    "x".repeat(255),
  ])("may be %j", async (external_id) => {
    const project = await service.project()
    const { id } = (await put(project, external_id, { name: "Ann" })).body.data
    for (const path of [external(external_id), `${PATH}/${encodeURIComponent(external_id)}`]) {
      const found = await project.get(path)
      expect([found.status, found.body.data.id]).toEqual([200, id])
      expect(found.body.data.external_id).toBe(external_id)
    }
    const query = `${PATH}?external_id=${encodeURIComponent(external_id)}`
    expect((await project.get(query)).body.data.map((one: { id: string }) => one.id)).toEqual([id])
    expect((await project.call("DELETE", external(external_id))).status).toBe(200)
  })

  test("that looks like an id of ours is found under `external` alone", async () => {
    const project = await service.project()
    const { id } = await add(project, { external_id: NOBODY })
    expect((await project.get(external(NOBODY))).body.data.id).toBe(id)
    expect(refusal(await project.get(`${PATH}/${NOBODY}`))).toEqual([404, "subscriber_not_found"])
  })

  test.each(["", "a\nb", "a\0", "\u001f", "\u2028", "x".repeat(256), "\ud800", 7, null])(
    "cannot be %j",
    async (external_id) => {
      const project = await service.project()
      const answer = await project.post(PATH, { external_id })
      expect(answer.status).toBe(422)
      expect(complaints(answer)).toEqual(["external_id"])
    },
  )

  test.each(["%00", "%0A", "%ff", "%ED%A0%80", "%C3%28", "%"])(
    "in a path %s is not found",
    async (name) => {
      const project = await service.project()
      for (const path of [`${PATH}/external/${name}`, `${PATH}/${name}`]) {
        expect([400, 404]).toContain((await project.get(path)).status)
        expect([400, 404]).toContain((await project.call("DELETE", path)).status)
      }
      const made = await project.call("PUT", `${PATH}/external/${name}`, { body: {} })
      expect(made.status).toBeGreaterThanOrEqual(200)
      expect(made.status).toBeLessThan(500)
    },
  )
})

describe("a field", () => {
  test.each([
    ["email", "nobody"],
    ["email", "a@x.test, b@x.test"],
    ["email", "a@x.test\n"],
    ["email", 5],
    ["phone", "015112345678"],
    ["phone", "+49 151 1234"],
    ["name", ""],
    ["name", "a\nb"],
    ["name", "x".repeat(201)],
    ["avatar_url", "javascript:alert(1)"],
    ["avatar_url", "nowhere"],
    ["locale", "no such language"],
    ["timezone", "Mars/Olympus"],
    ["timezone", "+02:00"],
    ["metadata", []],
    ["metadata", "x"],
    ["metadata", null],
    ["tags", "beta"],
    ["tags", Array.from({ length: 51 }, (_, at) => `t${at}`)],
  ])("%s cannot be %j", async (field, value) => {
    const project = await service.project()
    const answer = await project.post(PATH, { external_id: "user-1", [field]: value })
    expect(answer.status).toBe(422)
    expect(complaints(answer)[0]).toBe(field)
    expect((await project.get(PATH)).body.meta.total).toBe(0)
  })

  test("is told of by the code of its kind", async () => {
    const project = await service.project()
    const email = await project.post(PATH, { external_id: "a", email: "nobody" })
    expect(refusal(email)).toEqual([422, "invalid_email"])
    const phone = await project.post(PATH, { external_id: "a", phone: "123" })
    expect(refusal(phone)).toEqual([422, "invalid_phone_number"])
    expect(refusal(await project.post(PATH, {}))).toEqual([422, "missing_required_field"])
  })

  test("that grows by changes keeps its limit", async () => {
    const project = await service.project()
    const keys = (from: number) =>
      Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`k${from + at}`, at]))
    const { id } = await add(project, { external_id: "user-1", metadata: keys(0) })
    expect(complaints(await patch(project, id, { metadata: keys(30) }))).toEqual(["metadata"])
  })
})
