import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { secondsFromNow } from "../../src/core/time"
import { MOST_OPEN_PUBLISHES } from "../../src/fan-out/publishing"
import { fanOuts } from "../../src/fan-out/tables"
import { accounts } from "../../src/identity/tables"
import { messagesOf, walkAll } from "../fan-out/audiences"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "./made-subscribers"

const service = await sharedService()
const { parts, store } = service
const clock = movableClock()

const ALL = "/v1/topics"
const NEWS = `${ALL}/news`

const EMAIL = { subject: "News", text: "Hello {{subscriber.name}}", from: "news@example.test" }

/** A project with the topic `news`, and as many members. */
async function town(members = 2) {
  const project = await service.project()
  await project.post(ALL, { name: "News" })
  const people = Array.from({ length: members }, (_, at) => ({
    external_id: `s${at}`,
    name: `Reader ${at}`,
    email: `s${at}@example.test`,
  }))
  const ids = await makeSubscribers(service, project, people)
  if (ids.length > 0) await project.post(`${NEWS}/subscribers`, { subscriber_ids: ids })
  return { project, ids }
}

const publish = (project: TestProject, fields: object = {}) =>
  project.post(`${NEWS}/publish`, { channels: ["email"], content: { email: EMAIL }, ...fields })

const started = async (project: TestProject, fields: object = {}) => {
  const { status, body, text } = await publish(project, fields)
  if (status !== 201) throw new Error(text)
  return body.data
}

const NOBODY_SKIPPED = { no_address: 0, preference: 0, suppressed: 0, frequency_cap: 0, quota: 0 }

describe("a publish", () => {
  test("is refused where too many of the project are not over, also of several topics at once", async () => {
    const { project } = await town(0)
    await project.post(ALL, { name: "Other" })
    const first = await started(project, { dedupe_key: "first" })
    const [row] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, first.id))
    if (!row) throw new Error("there is no publish")
    const others = Array.from({ length: MOST_OPEN_PUBLISHES - 2 }, () => ({ ...row, id: newId() }))
    for (let at = 0; at < others.length; at += 100) {
      const some = others.slice(at, at + 100).map((one) => ({ ...one, dedupe_key: null }))
      await store.tx((tx) => tx.insert(fanOuts).values(some))
    }
    const body = { channels: ["email"], content: { email: EMAIL } }
    const answers = await Promise.all(
      ["news", "other", "news"].map((key) => project.post(`${ALL}/${key}/publish`, body)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const refused = answers.find(({ status }) => status === 409)
    expect(refused?.body.error.details).toEqual({ reason: "too_many", limit: MOST_OPEN_PUBLISHES })
    expect((await publish(project, { dedupe_key: "first" })).status).toBe(200)
    await project.post(`${NEWS}/publishes/${first.id}/cancel`, {})
    expect((await publish(project)).status).toBe(201)
    const ours = eq(fanOuts.project_id, project.project_id)
    await store.tx((tx) => tx.delete(fanOuts).where(ours))
  })

  test("is queued, sends one email to each member, and is counted", async () => {
    const { project, ids } = await town()
    const first = await started(project)
    expect(first).toEqual({
      id: expect.any(String),
      topic_key: "news",
      status: "queued",
      status_reason: null,
      audience: 0,
      channels: { email: { planned: 0, sent: 0, skipped: NOBODY_SKIPPED, failed: 0 } },
      scheduled_at: null,
      created_at: expect.any(String),
      completed_at: null,
    })
    await walkAll(service)
    const { body } = await project.get(`${NEWS}/publishes/${first.id}`)
    expect(body.data).toEqual({
      ...first,
      status: "completed",
      audience: 2,
      channels: { email: { planned: 2, sent: 2, skipped: NOBODY_SKIPPED, failed: 0 } },
      completed_at: expect.any(String),
    })
    const made = await messagesOf(parts, project, first.id)
    expect(made.map(({ subscriber_id }) => subscriber_id)).toEqual(ids)
    expect((await project.get(`${NEWS}/publishes`)).body.data).toEqual([body.data])
  })

  test("leaves out members that are excluded by id or external id", async () => {
    const { project, ids } = await town(4)
    const { id } = await started(project, { exclude: ["s1", ids[2], "nobody", newId()] })
    await walkAll(service)
    const made = await messagesOf(parts, project, id)
    expect(made.map(({ subscriber_id }) => subscriber_id)).toEqual([ids[0] ?? "", ids[3] ?? ""])
  })

  test("can come from a template, named by its name", async () => {
    const { project } = await town(1)
    const texts = { name: "issue", subject: "Issue {{number}}", html: "<p>{{subscriber.name}}</p>" }
    await project.post("/v1/templates", texts)
    await project.call("PATCH", "/v1/settings", { body: { default_from: "news@example.test" } })
    const fields = { content: undefined, template_id: "issue", variables: { number: 7 } }
    const { id } = await started(project, fields)
    await walkAll(service)
    const [made] = await messagesOf(parts, project, id)
    const email = await project.get(`/v1/emails/${made?.id}`)
    expect(email.body.data).toMatchObject({ subject: "Issue 7", html: "<p>Reader 0</p>" })
  })

  test("waits for its time, and is cancelled before it", async () => {
    const { project } = await town(1)
    const scheduled_at = secondsFromNow(3600)
    const { id, status } = await started(project, { scheduled_at })
    expect(status).toBe("scheduled")
    const cancelled = await project.post(`${NEWS}/publishes/${id}/cancel`)
    expect([cancelled.status, cancelled.body.data]).toMatchObject([
      200,
      { id, status: "cancelled", scheduled_at, completed_at: expect.any(String) },
    ])
    const again = await project.post(`${NEWS}/publishes/${id}/cancel`)
    expect(refusal(again)).toEqual([409, "conflict"])
    await walkAll(service)
    expect(await messagesOf(parts, project, id)).toEqual([])
  })

  test("begins now where its time has passed", async () => {
    const { project } = await town(1)
    expect(await started(project, { scheduled_at: secondsFromNow(-60) })).toMatchObject({
      status: "queued",
      scheduled_at: null,
    })
  })

  test("is made once by one dedupe_key within a day, for one topic", async () => {
    const { project } = await town(1)
    await project.post(ALL, { name: "Offers" })
    const first = await started(project, { dedupe_key: "issue-7" })
    const again = await publish(project, {
      dedupe_key: "issue-7",
      template_id: "gone",
      content: undefined,
    })
    expect([again.status, again.body.data.id]).toEqual([200, first.id])
    const other = await project.post(`${ALL}/offers/publish`, {
      ...{ channels: ["email"], content: { email: EMAIL }, dedupe_key: "issue-7" },
    })
    expect(other.status).toBe(201)
    const long_ago = { created_at: secondsFromNow(-86_401) }
    await store.tx((tx) => tx.update(fanOuts).set(long_ago).where(eq(fanOuts.id, first.id)))
    expect((await publish(project, { dedupe_key: "issue-7" })).status).toBe(201)
  })

  test("is answered by its dedupe_key also when its end has passed", async () => {
    const { project } = await town(1)
    const fields = { dedupe_key: "short", expires_at: secondsFromNow(600) }
    const first = await started(project, fields)
    clock.advance({ seconds: 900 })
    const again = await publish(project, fields)
    expect([again.status, again.body.data.id]).toEqual([200, first.id])
    for (const dedupe_key of ["another", null]) {
      const late = await publish(project, { ...fields, dedupe_key })
      expect([late.status, complaints(late)]).toEqual([422, ["expires_at"]])
    }
  })

  test("is one of many requests with one dedupe_key at once", async () => {
    const { project } = await town(1)
    const all = await Promise.all(
      Array.from({ length: 8 }, () => publish(project, { dedupe_key: "same" })),
    )
    expect(all.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201])
    expect(new Set(all.map(({ body }) => body.data.id)).size).toBe(1)
    expect((await project.get(`${NEWS}/publishes`)).body.meta.total).toBe(1)
  })

  test("is made once by one Idempotency-Key", async () => {
    const { project } = await town(1)
    const body = { channels: ["email"], content: { email: EMAIL } }
    const headers = { "idempotency-key": "k1" }
    const [first, second] = [
      await project.post(`${NEWS}/publish`, body, headers),
      await project.post(`${NEWS}/publish`, body, headers),
    ]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(second.body.data.id).toBe(first.body.data.id)
    expect(second.headers.get("idempotent-replayed")).toBe("true")
  })
})

describe("a publish is refused", () => {
  test.each<[string, object, string[]]>([
    ["without channels", { channels: [] }, ["channels"]],
    ["with a channel that there is not", { channels: ["fax"] }, ["channels.0"]],
    ["with content for no listed channel", { content: {} }, ["content.email"]],
    ["with a template and with content", { template_id: "news" }, ["content"]],
    ["with an email without a subject", email({ subject: undefined }), ["content.email.subject"]],
    ["with an email without a text", email({ text: "" }), ["content.email.html"]],
    ["with a text with NUL", email({ text: "a\0" }), ["content.email.text"]],
    ["with a sender that is no address", email({ from: "news" }), ["content.email.from"]],
    [
      "with a template that is no name",
      { template_id: "a\0", content: undefined },
      ["template_id"],
    ],
    ["with a subject with NUL", email({ subject: "a\0" }), ["content.email.subject"]],
    ["with a subject of two lines", email({ subject: "a\nb" }), ["content.email.subject"]],
    ["with half of a surrogate pair", email({ html: "a\ud800" }), ["content.email.html"]],
    ["with a dedupe_key with NUL", { dedupe_key: "a\0" }, ["dedupe_key"]],
    ["with an exclusion with NUL", { exclude: ["a\0"] }, ["exclude.0"]],
    ["with a long exclusion", { exclude: ["a".repeat(10_000)] }, ["exclude.0"]],
    ["with a category of another form", { category: "A b" }, ["category"]],
    ["with too many exclusions", { exclude: Array(1001).fill("a") }, ["exclude"]],
    ["too far ahead", { scheduled_at: secondsFromNow(91 * 86_400) }, ["scheduled_at"]],
    ["with an end that has passed", { expires_at: secondsFromNow(-1) }, ["expires_at"]],
    [
      "with an end before its beginning",
      { scheduled_at: secondsFromNow(3600), expires_at: secondsFromNow(1800) },
      ["expires_at"],
    ],
    ["with an empty dedupe_key", { dedupe_key: "" }, ["dedupe_key"]],
  ])("%s", async (_, fields, paths) => {
    const { project } = await town(0)
    const answer = await publish(project, fields)
    expect(answer.status).toBe(422)
    expect(complaints(answer)).toEqual(paths)
  })

  function email(fields: object) {
    return { content: { email: { ...EMAIL, ...fields } } }
  }

  test("by what it names first, then while the account is frozen, then for its sender", async () => {
    const { project } = await town(0)
    const ours = eq(accounts.id, project.account_id)
    await store.tx((tx) => tx.update(accounts).set({ sending_status: "frozen" }).where(ours))
    const fields = { content: undefined, template_id: "gone", category: "offers" }
    const category = await project.post("/v1/subscribers/categories", { name: "News" })
    expect(category.status).toBe(201)
    const foreign = email({ from: "news@other.test" })
    expect(refusal(await publish(project, fields))).toEqual([422, "validation_error"])
    const named = { ...fields, category: "news" }
    expect(refusal(await publish(project, named))).toEqual([404, "template_not_found"])
    expect(refusal(await publish(project, foreign))).toEqual([403, "account_frozen"])
    await store.tx((tx) => tx.update(accounts).set({ sending_status: "active" }).where(ours))
    expect(refusal(await publish(project, foreign))).toEqual([400, "domain_not_verified"])
  })

  test.each(["subject", "html", "text"])("with a %s that is no template", async (part) => {
    const { project } = await town(0)
    const refused = await publish(project, email({ html: "<p>Hi</p>", [part]: "{{#if" }))
    expect(refusal(refused)).toEqual([422, "invalid_template"])
    const { details, message } = refused.body.error
    expect(details.field).toBe(`content.email.${part}`)
    expect(message).toStartWith(`content.email.${part}: `)
  })

  test("with a subject that is too long for each recipient, in any language", async () => {
    const { project } = await town(0)
    const subject = "é".repeat(999)
    const inline = await publish(project, email({ subject }))
    expect(refusal(inline)).toEqual([422, "template_render_failed"])
    expect(inline.body.error.details).toMatchObject({ field: "content.email.subject" })
    const texts = { name: "long", subject: "News", html: "<p>News</p>", locale: "en" }
    const made = await project.post("/v1/templates", { ...texts, locales: { de: { subject } } })
    expect(made.status).toBe(201)
    const from_template = { template_id: "long", content: undefined }
    await project.call("PATCH", "/v1/settings", { body: { default_from: "news@example.test" } })
    expect(refusal(await publish(project, from_template))).toEqual([422, "template_render_failed"])
    expect((await publish(project, email({ subject: "é".repeat(998) }))).status).toBe(201)
    const personal = `{{subscriber.name}} ${subject}`
    expect((await publish(project, email({ subject: personal }))).status).toBe(201)
  })

  test("where there is no such topic, template or sender", async () => {
    const { project } = await town(0)
    const nowhere = await project.post(`${ALL}/nothing/publish`, {
      channels: ["email"],
      content: { email: EMAIL },
    })
    expect(refusal(nowhere)).toEqual([404, "topic_not_found"])
    const untold = await publish(project, email({ from: undefined }))
    expect(refusal(untold)).toEqual([400, "sender_not_configured"])
    await project.call("PATCH", "/v1/settings", { body: { default_from: "news@example.test" } })
    const unknown = await publish(project, { content: undefined, template_id: "none" })
    expect(refusal(unknown)).toEqual([404, "template_not_found"])
    const strange = email({ from: "me@not-verified.test" })
    expect(refusal(await publish(project, strange))).toEqual([400, "domain_not_verified"])
  })

  test("with a category that the project does not have, once it has categories", async () => {
    const { project } = await town(0)
    expect((await publish(project, { category: "offers" })).status).toBe(201)
    await project.post("/v1/subscribers/categories", { name: "Releases" })
    const unknown = await publish(project, { category: "offers" })
    expect(refusal(unknown)).toEqual([422, "validation_error"])
    expect(unknown.body.error.details.fields).toMatchObject([
      { path: "category", code: "unknown_category" },
    ])
    expect((await publish(project, { category: "releases" })).status).toBe(201)
    expect((await publish(project)).status).toBe(201)
  })

  test("from elsewhere: its id is found under its own topic and project alone", async () => {
    const { project } = await town(1)
    await project.post(ALL, { name: "Offers" })
    const { id } = await started(project)
    const other = (await town(0)).project
    for (const [who, path] of [
      [other, `${NEWS}/publishes/${id}`],
      [project, `${ALL}/offers/publishes/${id}`],
      [project, `${NEWS}/publishes/nothing`],
      [project, `${NEWS}/publishes/${newId()}`],
    ] as const) {
      expect(refusal(await who.get(path))).toEqual([404, "not_found"])
      expect(refusal(await who.post(`${path}/cancel`))).toEqual([404, "not_found"])
    }
    expect((await project.get(`${ALL}/offers/publishes`)).body.data).toEqual([])
    expect((await project.get(`${NEWS}/publishes/${id}`)).body.data.status).toBe("queued")
  })
})

describe("a subscriber's topics", () => {
  test("are listed by id and by external id, the latest first", async () => {
    const { project, ids } = await town(1)
    for (const name of ["Offers", "Releases"]) {
      await project.post(ALL, { name })
      await project.post(`${ALL}/${name.toLowerCase()}/subscribers`, { subscriber_ids: ["s0"] })
    }
    for (const name of ["s0", ids[0]]) {
      const { body } = await project.get(`/v1/subscribers/${name}/topics`)
      expect(body.data).toEqual([
        { key: "releases", name: "Releases", subscribed_at: expect.any(String) },
        { key: "offers", name: "Offers", subscribed_at: expect.any(String) },
        { key: "news", name: "News", subscribed_at: expect.any(String) },
      ])
      expect(body.meta.total).toBe(3)
    }
    await project.call("DELETE", `${ALL}/offers`)
    const left = await project.get("/v1/subscribers/s0/topics?limit=1")
    expect(left.body.data).toMatchObject([{ key: "releases" }])
    const next = await project.get(`/v1/subscribers/s0/topics?cursor=${left.body.meta.next_cursor}`)
    expect(next.body.data).toMatchObject([{ key: "news" }])
    for (const name of ["nobody", newId(), "%00", "a%2Fb"]) {
      const answer = await project.get(`/v1/subscribers/${name}/topics`)
      expect(refusal(answer)).toEqual([404, "subscriber_not_found"])
    }
  })
})
