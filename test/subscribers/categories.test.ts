import { describe, expect, test } from "bun:test"
import { auditLog } from "../../src/audit-log/tables"
import { newId } from "../../src/core/ids"
import { isoFrom, millis, now } from "../../src/core/time"
import { fanOuts } from "../../src/fan-out/tables"
import { knownCategories, MOST_CATEGORIES } from "../../src/subscribers/categories"
import { categories } from "../../src/subscribers/tables"
import { addSubscriber } from "../harness/audience"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const PATH = "/v1/subscribers/categories"

const create = (project: TestProject, fields: object = {}) =>
  project.post(PATH, { name: "Newsletter", ...fields })

describe("a category", () => {
  test("is created, shown, listed, changed and deleted", async () => {
    const project = await service.project()
    const created = await create(project)
    expect(created.status).toBe(201)
    const { data } = created.body
    expect(data).toEqual({
      id: expect.any(String),
      slug: "newsletter",
      name: "Newsletter",
      description: null,
      critical: false,
      default: "on",
      visibility: "public",
      channels: ["email", "push", "sms", "in_app"],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await project.get(`${PATH}/${data.id}`)).body.data).toEqual(data)
    const changed = await project.call("PATCH", `${PATH}/${data.id}`, {
      body: {
        name: "News",
        slug: "other",
        critical: true,
        channels: ["email", "email"],
        id: newId(),
      },
    })
    expect(changed.body.data).toEqual({
      ...{ ...data, name: "News", critical: true, channels: ["email"] },
      updated_at: expect.any(String),
    })
    const second = (await create(project, { slug: "offers_2" })).body.data
    const listed = (await project.get(PATH)).body
    expect(listed.data).toEqual([second, changed.body.data])
    expect(listed.meta.total).toBe(2)
    const removed = await project.call("DELETE", `${PATH}/${data.id}`)
    expect(removed.body.data).toEqual({ id: data.id, deleted: true })
    expect(refusal(await project.get(`${PATH}/${data.id}`))).toEqual([404, "not_found"])
    expect(refusal(await project.call("DELETE", `${PATH}/${data.id}`))).toEqual([404, "not_found"])
  })

  test("has every field that the project gives", async () => {
    const fields = {
      ...{ name: "Alerts", slug: "alerts", description: "Of your account.", critical: true },
      ...{ default: "off", visibility: "private", channels: ["sms", "in_app"] },
    }
    expect((await create(await service.project(), fields)).body.data).toMatchObject(fields)
  })

  test("belongs to its project alone", async () => {
    const [one, other] = [await service.project(), await service.project()]
    const { id } = (await create(one)).body.data
    expect((await create(other)).status).toBe(201)
    const foreign = `${PATH}/${id}`
    const body = { name: "Mine" }
    expect(refusal(await other.get(foreign))).toEqual([404, "not_found"])
    expect(refusal(await other.call("PATCH", foreign, { body }))).toEqual([404, "not_found"])
    expect(refusal(await other.call("DELETE", foreign))).toEqual([404, "not_found"])
    expect((await one.get(foreign)).body.data.name).toBe("Newsletter")
  })

  test("needs a slug of its own, also where it is made from the name", async () => {
    const project = await service.project()
    const { id } = (await create(project)).body.data
    const taken = await create(project, { name: "NewsLetter!" })
    expect(refusal(taken)).toEqual([409, "conflict"])
    expect(taken.body.error.details).toEqual({ reason: "slug_taken", id })
    expect(complaints(await create(project, { name: "新聞" }))).toEqual(["slug"])
    expect((await create(project, { name: "新聞", slug: "news" })).status).toBe(201)
  })

  test.each<[string, object, string]>([
    ["no name", { name: undefined }, "name"],
    ["a name of two lines", { name: "a\nb" }, "name"],
    ["a slug in capitals", { slug: "News" }, "slug"],
    ["a slug with a slash", { slug: "a/b" }, "slug"],
    ["a slug of 65 characters", { slug: "x".repeat(65) }, "slug"],
    ["a default that is neither", { default: "maybe" }, "default"],
    ["no channel", { channels: [] }, "channels"],
    ["a channel that is not there", { channels: ["fax"] }, "channels.0"],
    ["a word for a switch", { critical: "yes" }, "critical"],
  ])("is refused with %s", async (_, fields, path) => {
    const project = await service.project()
    const refused = await create(project, fields)
    expect(refused.status).toBe(422)
    expect(complaints(refused)).toEqual([path])
    expect((await project.get(PATH)).body.data).toEqual([])
  })

  test("a change that names no field of it is refused", async () => {
    const project = await service.project()
    const { id } = (await create(project)).body.data
    const refused = await project.call("PATCH", `${PATH}/${id}`, { body: { slug: "other" } })
    expect(refused.body.error.details.fields[0].code).toBe("nothing_to_change")
  })

  test("leaves a trace of each change in the audit log", async () => {
    const project = await service.project()
    const { id } = (await create(project)).body.data
    await project.call("PATCH", `${PATH}/${id}`, { body: { default: "off" } })
    await project.call("DELETE", `${PATH}/${id}`)
    const entries = await store.read.select().from(auditLog).orderBy(auditLog.id)
    const ours = entries.filter(({ target_id }) => target_id === id)
    expect(ours.map(({ action }) => action)).toEqual([
      "category.created",
      "category.updated",
      "category.deleted",
    ])
  })
})

test("a project has a limited number of categories, because its sends remember all", async () => {
  const project = await service.project()
  const { project_id } = project
  const row = (at: number) => ({
    ...{ id: newId(), project_id, slug: `c${at}`, name: "C", description: null, critical: false },
    ...{ default: "on" as const, visibility: "public" as const, channels: [] },
    ...{ created_at: now(), updated_at: now() },
  })
  const rows = Array.from({ length: MOST_CATEGORIES - 1 }, (_, at) => row(at))
  await store.tx((tx) => tx.insert(categories).values(rows))
  const answers = await Promise.all([1, 2, 3].map((at) => create(project, { slug: `last-${at}` })))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422])
  expect((await knownCategories(store.read, project_id)).size).toBe(MOST_CATEGORIES)
})

describe("a category in use", () => {
  test("stays while a message with it waits", async () => {
    const project = await service.project()
    const { id } = (await create(project)).body.data
    const later = { scheduled_at: isoFrom(millis() + 3_600_000), category: "newsletter" }
    const message = (await project.post("/v1/emails", mail(later))).body.id
    const refused = await project.call("DELETE", `${PATH}/${id}`)
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason: "used", type: "message", id: message })
    await project.post(`/v1/emails/${message}/cancel`, {})
    expect((await project.call("DELETE", `${PATH}/${id}`)).status).toBe(200)
  })

  test("stays while a publish with it is not over", async () => {
    const project = await service.project()
    const { account_id, project_id } = project
    const { id } = (await create(project)).body.data
    const from = { email: "bell@example.test", name: null }
    const intent = {
      ...{ category: "newsletter", exclude: [], respect_preferences: true, api_key_id: null },
      email: { from, reply_to: [], template: null, track: null },
    }
    const publish = {
      ...{ id: newId(), account_id, project_id, kind: "publish" as const, channels: [], intent },
      ...{ status: "scheduled" as const, created_at: now() },
    }
    await store.tx((tx) => tx.insert(fanOuts).values(publish))
    const refused = await project.call("DELETE", `${PATH}/${id}`)
    expect(refused.body.error.details).toEqual({ reason: "used", type: "publish", id: publish.id })
    await store.tx((tx) => tx.update(fanOuts).set({ completed_at: now() }))
    expect((await project.call("DELETE", `${PATH}/${id}`)).status).toBe(200)
  })
})

test("a category that is near to no other one is refused without an offer", async () => {
  const project = await service.project()
  await create(project)
  const { body } = await project.post("/v1/emails", mail({ category: "nope" }))
  expect(body.error.details.fields[0].message).toBe(
    'The project has no category "nope". GET /v1/subscribers/categories lists all.',
  )
})

test("every request that names an unknown category gets the same words", async () => {
  const project = await service.project()
  const { id } = await addSubscriber(project)
  await create(project)
  const text =
    'The project has no category "newsletters". The nearest is newsletter. GET /v1/subscribers/categories lists all.'
  const category = "newsletters"
  const path = `/v1/subscribers/${id}`
  const ended = { channel: "email", category }
  for (const [to, body] of [
    ["/v1/emails", mail({ category })],
    [`${path}/unsubscribe`, ended],
    [`${path}/consents`, { ...ended, action: "granted", source: "import" }],
    [`${path}/preferences`, { email: { categories: { [category]: false } } }],
  ] as const) {
    const { status, body: answer } = await project.post(to, body)
    const [{ code, message }] = answer.error.details.fields
    expect([status, code, message]).toEqual([422, "unknown_category", text])
  }
})

test("sends hear of a category at once", async () => {
  const project = await service.project()
  const slugs = async () => [...(await knownCategories(store.read, project.project_id)).keys()]
  expect(await slugs()).toEqual([])
  const { id } = (await create(project)).body.data
  expect(await slugs()).toEqual(["newsletter"])
  await project.call("DELETE", `${PATH}/${id}`)
  expect(await slugs()).toEqual([])
})
