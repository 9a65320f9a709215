import { describe, expect, test } from "bun:test"
import { eq, inArray } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { decidedAtSend } from "../../src/messages/decided"
import { messages } from "../../src/messages/tables"
import { categories, subscribers } from "../../src/subscribers/tables"
import { suppress } from "../../src/suppressions/suppressions"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { replyOf, testSubmission } from "../harness/submission"
import { makeSubscribers } from "../topics/made-subscribers"

const service = await sharedService()
const { login, submit } = testSubmission(service)
const clock = movableClock()

type Made = Partial<typeof subscribers.$inferInsert>
type Category = Partial<typeof categories.$inferInsert>

/** A project with one subscriber, Ann, and what it sends her. */
async function withAnn(fields: Made = {}) {
  const project = await service.project()
  const [id = ""] = await makeSubscribers(service, project, [
    { external_id: "ann", name: "Ann", email: "ann@example.test", ...fields },
  ])
  return {
    project,
    id,
    send: (more: object = {}) =>
      project.post("/v1/emails", mail({ subscriber_id: "ann", ...more })),
    change: (change: Made) =>
      service.store.tx((tx) => tx.update(subscribers).set(change).where(eq(subscribers.id, id))),
  }
}

const addCategory = ({ project_id }: TestProject, slug: string, more: Category = {}) =>
  service.store.tx((tx) =>
    tx.insert(categories).values({
      ...{ id: newId(), project_id, slug, name: slug, description: null, critical: false },
      ...{ default: "on", visibility: "public", channels: ["email"] },
      ...{ created_at: now(), updated_at: now(), ...more },
    }),
  )

const patch = (project: TestProject, body: Record<string, unknown>) =>
  project.call("PATCH", "/v1/settings", { body })

const read = async (project: TestProject, id: string) =>
  (await project.get(`/v1/emails/${id}`)).body.data

const stepsOf = async (project: TestProject, id: string, stage: string) => {
  const { steps } = (await project.get(`/v1/emails/${id}/explain`)).body.data
  return steps.filter((step: { stage: string }) => step.stage === stage)
}

describe("a send to a subscriber", () => {
  test("names it by id or external id, and its record and the lists know it", async () => {
    const { project, id, send } = await withAnn()
    const [one, other] = [await send(), await send({ subscriber_id: id, category: "news" })]
    expect([one.status, other.status]).toEqual([201, 201])
    expect(await read(project, one.body.id)).toMatchObject({ subscriber_id: id, category: null })
    await project.post("/v1/emails", mail())
    const listed = async (query: string) => {
      const { body } = await project.get(`/v1/emails?${query}`)
      return [body.meta.total, ...body.data.map((email: { id: string }) => email.id)]
    }
    expect(await listed("subscriber_id=ann")).toEqual([2, other.body.id, one.body.id])
    expect(await listed(`subscriber_id=${id}&category=news`)).toEqual([1, other.body.id])
    expect(await listed("subscriber_id=nobody")).toEqual([0])
    expect((await deliverAll(service)).length).toBeGreaterThanOrEqual(3)
    expect(await read(project, other.body.id)).toMatchObject({ status: "delivered" })
  })

  test("takes an external id of 255 characters, whatever their length in memory", async () => {
    const external_id = "😀".repeat(255)
    const { id, project, send } = await withAnn({ external_id })
    const one = await send({ subscriber_id: external_id })
    expect([one.status, (await read(project, one.body.id)).subscriber_id]).toEqual([201, id])
  })

  test("is refused for one that the project does not have", async () => {
    const { id } = await withAnn()
    const other = await service.project()
    for (const subscriber_id of [id, newId(), "nobody", "a/b", "%2F"]) {
      const reply = await other.post("/v1/emails", mail({ subscriber_id }))
      expect(refusal(reply)).toEqual([404, "subscriber_not_found"])
    }
    for (const subscriber_id of ["", 7, {}, "x".repeat(256)]) {
      const reply = await other.post("/v1/emails", mail({ subscriber_id }))
      expect(complaints(reply)).toEqual(["subscriber_id"])
    }
  })

  test("renders with the subscriber, in its language and zone", async () => {
    const { project, send } = await withAnn({ locale: "de-AT", timezone: "Asia/Kathmandu" })
    const template = {
      name: "hello",
      subject: "Hello {{subscriber.name}}",
      text: 'It is {{date at "HH:mm"}}.',
      locale: "en",
      locales: { de: { subject: "Hallo {{subscriber.name}}" } },
    }
    expect((await project.post("/v1/templates", template)).status).toBe(201)
    const variables = { at: "2026-11-22T12:00:00Z" }
    const { body } = await send({ template_id: "hello", variables })
    expect(await read(project, body.id)).toMatchObject({
      subject: "Hallo Ann",
      text: "It is 17:45.",
    })
    const inline = { subject: "{{subscriber.external_id}}", text: "x", html: null, variables: {} }
    expect(await read(project, (await send(inline)).body.id)).toMatchObject({ subject: "ann" })
  })
})

describe("a recipient that does not want it", () => {
  test.each<[string, Made, number]>([
    ["blocked", { status: "blocked" }, 1],
    ["unsubscribed", { status: "unsubscribed" }, 5],
    ["channel_disabled", { preferences: { email: { enabled: false } } }, 6],
    ["preference", { preferences: { email: { categories: { news: false } } } }, 7],
  ])("is %s: the email is accepted and ends failed", async (rule, fields, row) => {
    const { project, send } = await withAnn(fields)
    const reply = await send({ category: "news", cc: "ben@example.test" })
    expect(reply.status).toBe(201)
    const email = await read(project, reply.body.id)
    expect(email).toMatchObject({
      status: "failed",
      status_reason: "preference",
      error: { code: "preference" },
      recipients: [{ status: "failed" }, { status: "failed", status_reason: "preference" }],
      attempts: 0,
    })
    expect(email.timeline.map(({ type }: { type: string }) => type).sort()).toEqual([
      "email.failed",
      "email.failed",
      "email.queued",
      "email.queued",
    ])
    expect((await deliverAll(service)).map(({ message_id }) => message_id)).not.toContain(email.id)
    const [step] = await stepsOf(project, email.id, "preference")
    expect(step).toMatchObject({ rule, outcome: "fail" })
    expect(step.detail).toContain(`row ${row} `)
    const counted = await project.get("/v1/emails?status=failed")
    expect(counted.body.meta.total).toBe(1)
  })

  test("and one that was cancelled have no bytes to wait for", async () => {
    const { project, send, change } = await withAnn()
    const raw = async (id: string) => (await project.get(`/v1/emails/${id}/raw`)).body.error
    const cancelled = (await send({ scheduled_at: secondsFromNow(3600) })).body.id
    expect((await raw(cancelled)).message).toContain("not been composed yet")
    await project.call("DELETE", `/v1/scheduled/${cancelled}`)
    await change({ status: "blocked" })
    const refused = (await send()).body.id
    for (const id of [cancelled, refused]) {
      expect(await raw(id)).toMatchObject({
        code: "not_found",
        message: "The message was not sent, so there are no bytes.",
        details: { reason: "not_sent" },
      })
    }
  })

  test("is asked again before the email leaves", async () => {
    const { project, send, change } = await withAnn()
    const { body } = await send({ category: "news" })
    expect(await stepsOf(project, body.id, "preference")).toMatchObject([{ rule: "allowed" }])
    await change({ preferences: { email: { categories: { news: false } } } })
    await deliverAll(service)
    expect(await read(project, body.id)).toMatchObject({
      status: "failed",
      status_reason: "preference",
    })
    expect(await stepsOf(project, body.id, "preference")).toMatchObject([
      { rule: "preference", outcome: "fail" },
    ])
  })

  test("and is suppressed beside it: what was suppressed later is said of the address", async () => {
    const { project, send, change } = await withAnn()
    const { body } = await send()
    await change({ preferences: { email: { enabled: false } } })
    const address = "ann@example.test"
    await service.store.tx((tx) =>
      suppress(tx, project.project_id, {
        ...{ channel: "email", address, reason: "manual", origin: "api" },
      }),
    )
    expect(refusal(await send())).toEqual([422, "suppressed_recipient"])
    await deliverAll(service)
    expect(await read(project, body.id)).toMatchObject({ status_reason: "suppressed_recipient" })
  })

  test("was deleted before the email leaves: then nothing leaves, and the email says so", async () => {
    const { project, id, send } = await withAnn()
    const sent = [await send(), await send({ category: "news" })]
    expect((await project.call("DELETE", `/v1/subscribers/${id}`)).status).toBe(200)
    await deliverAll(service)
    for (const { body } of sent) {
      expect(await read(project, body.id)).toMatchObject({
        ...{ status: "failed", status_reason: "subscriber_not_found", recipients: [{}] },
        error: { code: "subscriber_not_found", message: expect.stringContaining("was deleted") },
      })
      expect(await stepsOf(project, body.id, "preference")).toMatchObject([
        { rule: "subscriber_not_found", outcome: "fail" },
      ])
    }
    const again = await project.post(`/v1/emails/${sent[0]?.body.id}/resend`)
    expect(await read(project, again.body.id)).toMatchObject({
      status_reason: "subscriber_not_found",
    })
  })

  test("was merged before the email leaves: the other subscriber's choices count", async () => {
    const { project, id, send } = await withAnn()
    const [heir = ""] = await makeSubscribers(service, project, [
      { external_id: "anna", preferences: { email: { categories: { news: false } } } },
    ])
    const sent = [await send(), await send({ category: "news" })]
    const ids = sent.map(({ body }) => body.id)
    const claimed = await service.store.read
      .select()
      .from(messages)
      .where(inArray(messages.id, ids))
    const merged = await project.post(`/v1/subscribers/${heir}/merge`, { from_id: id })
    expect(merged.status).toBe(200)
    const decisions = claimed.map((message) => decidedAtSend(service.store.read, message))
    const allowed = (await Promise.all(decisions)).map((decision) => decision?.is_allowed)
    expect(allowed.toSorted()).toEqual([false, true])
    await deliverAll(service)
    const reasons = [null, "preference"]
    for (const [at, one] of ids.entries()) {
      expect(await read(project, one)).toMatchObject({
        ...{ subscriber_id: heir, status_reason: reasons[at] },
      })
    }
  })

  test("gets what is critical", async () => {
    const { project, send } = await withAnn({ status: "unsubscribed" })
    await addCategory(project, "alarm", { critical: true })
    const { body } = await send({ category: "alarm" })
    await deliverAll(service)
    expect(await read(project, body.id)).toMatchObject({ status: "delivered" })
    expect(await stepsOf(project, body.id, "preference")).toMatchObject([{ rule: "critical" }])
    const raw = await project.call("GET", `/v1/emails/${body.id}/raw`)
    expect(raw.status).toBe(200)
    expect(raw.text).not.toMatch(/list-unsubscribe/i)
    expect(raw.text).toContain("Subject:")
  })
})

test("a blocked subscriber comes before a suppressed address", async () => {
  const { project, send } = await withAnn({ status: "blocked" })
  const address = "ann@example.test"
  await service.store.tx((tx) =>
    suppress(tx, project.project_id, {
      ...{ channel: "email", address, reason: "manual", origin: "api" },
    }),
  )
  const reply = await send()
  expect(reply.status).toBe(201)
  expect(await read(project, reply.body.id)).toMatchObject({ status_reason: "preference" })
  const foreseen = await project.post("/v1/emails/preflight", mail({ subscriber_id: "ann" }))
  expect(foreseen.body.data).toMatchObject({ ok: true, errors: [] })
})

describe("a subscriber that is blocked after the address was suppressed", () => {
  const suppressAnn = ({ project_id }: TestProject, category?: string) =>
    service.store.tx((tx) =>
      suppress(tx, project_id, {
        ...{ channel: "email", address: "ann@example.test", reason: "manual", origin: "api" },
        ...(category && { scope: { type: "category", key: category } }),
      }),
    )

  test("gets a mail that is sent again as blocked, and another address as suppressed", async () => {
    const { project, send, change } = await withAnn()
    const { body } = await send()
    await deliverAll(service)
    await suppressAnn(project)
    const again = (fields: object) => project.post(`/v1/emails/${body.id}/resend`, fields)
    expect(refusal(await again({}))).toEqual([422, "suppressed_recipient"])
    await change({ status: "blocked" })
    const blocked = await again({})
    expect(blocked.status).toBe(201)
    expect(await read(project, blocked.body.id)).toMatchObject({ status_reason: "preference" })
    const other = await again({ to: "ann@example.test" })
    expect(refusal(other)).toEqual([422, "suppressed_recipient"])
  })

  test.each(["", "X-Svc-Template-Id: hello\n"])(
    "gets a submitted mail of the suppressed category as blocked %j",
    async (template) => {
      const { project, change } = await withAnn()
      await project.post("/v1/templates", { name: "hello", subject: "Hello", text: "Ding." })
      await suppressAnn(project, "news")
      const head = `From: bell@example.test\nTo: ann@example.test\nSubject: Ding\n${template}`
      const raw = `${head}X-Svc-Subscriber-Id: ann\nX-Svc-Category: news\n\nDong.\n`
      const session = await login(project.key)
      const send = () => submit(session, { raw, to: "ann@example.test" })
      expect(await replyOf(send())).toContain("suppressed_recipient")
      await change({ status: "blocked" })
      await send()
      const { data } = (await project.get("/v1/emails")).body
      expect(data).toMatchObject([{ status_reason: "preference" }])
    },
  )
})

test.each(["\0", "a\0b", "\ud800", "x".repeat(10_000), "a/b", "%2F", "ann "])(
  "a name that nobody can have finds nobody (%j)",
  async (name) => {
    const { project } = await withAnn()
    const sent = await project.post("/v1/emails", mail({ subscriber_id: name }))
    expect([404, 422]).toContain(sent.status)
    const query = encodeURIComponent(name.toWellFormed())
    for (const filter of ["subscriber_id", "category"]) {
      const listed = await project.get(`/v1/emails?${filter}=${query}`)
      expect([200, 422]).toContain(listed.status)
      if (listed.status === 200) expect(listed.body.data).toEqual([])
    }
  },
)

describe("a category", () => {
  test("may be any text until the project has categories, then it is one of them", async () => {
    const project = await service.project()
    const send = (category: string) => project.post("/v1/emails", mail({ category }))
    expect((await send("anything")).status).toBe(201)
    await addCategory(project, "news")
    const unknown = await send("newz")
    expect(unknown.body.error.details.fields).toMatchObject([
      { path: "category", code: "unknown_category" },
    ])
    expect(unknown.body.error.message).toContain("The nearest is news.")
    expect((await send("news")).status).toBe(201)
  })

  test("that is not for email fails, also to a raw address", async () => {
    const project = await service.project()
    await addCategory(project, "texts", { channels: ["sms"] })
    const { body } = await project.post("/v1/emails", mail({ category: "texts" }))
    expect(await read(project, body.id)).toMatchObject({ status_reason: "preference" })
    expect(await stepsOf(project, body.id, "preference")).toMatchObject([
      { rule: "category_channels" },
    ])
  })
})

describe("the frequency cap", () => {
  const CAP = { frequency_cap: { count: 2, per_seconds: 3600 } }

  test("counts by subscriber and category, once, and lets more through when its time is over", async () => {
    const { project, send } = await withAnn()
    expect((await patch(project, CAP)).status).toBe(200)
    const statuses = async (sends: object[]) => {
      const replies = []
      for (const fields of sends) replies.push(await send(fields))
      const emails = await Promise.all(replies.map(({ body }) => read(project, body.id)))
      return emails.map(({ status_reason }) => status_reason)
    }
    expect(await statuses([{}, {}, {}])).toEqual([null, null, "frequency_cap"])
    expect(await statuses([{ category: "news" }])).toEqual([null])
    await deliverAll(service)
    const listed = (await project.get("/v1/emails?status=delivered")).body
    expect(listed.meta.total).toBe(3)
    clock.advance({ seconds: 3601 })
    expect(await statuses([{}, {}, {}])).toEqual([null, null, "frequency_cap"])
  })

  test("holds for sends that come at the same moment, and within a batch", async () => {
    const { project, send } = await withAnn()
    await patch(project, CAP)
    const replies = await Promise.all(Array.from({ length: 10 }, () => send()))
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 201))
    const failed = await project.get("/v1/emails?status=failed")
    expect(failed.body.meta.total).toBe(8)
    const other = await withAnn()
    await patch(other.project, CAP)
    const messages = Array.from({ length: 5 }, () => mail({ subscriber_id: "ann" }))
    const batch = await other.project.post("/v1/emails/batch", { messages })
    expect(batch.body.data).toMatchObject({ succeeded: 5 })
    expect((await other.project.get("/v1/emails?status=failed")).body.meta.total).toBe(3)
  })

  test("neither counts nor stops raw addresses", async () => {
    const { project } = await withAnn()
    await patch(project, CAP)
    for (let sent = 0; sent < 4; sent++) await project.post("/v1/emails", mail())
    expect((await project.get("/v1/emails?status=failed")).body.meta.total).toBe(0)
  })
})

describe("quiet hours", () => {
  /** Of the whole day but its last minute, so that the test runs at any hour. */
  const quiet = {
    ...{ enabled: true, start: "00:00", end: "23:59", timezone: "UTC", channels: ["email"] },
  }

  const atNoon = () => {
    clock.freeze()
    const noon = new Date(`${now().slice(0, 10)}T12:00:00Z`).getTime() + 86_400_000
    clock.advance({ seconds: (noon - Date.parse(now())) / 1000 })
    return now().slice(0, 10)
  }

  test("move the time of an email, in its answer, too, and a repeated request says the same", async () => {
    const { project, send } = await withAnn()
    await patch(project, { quiet_hours: quiet })
    const end = `${atNoon()}T23:59:00.000Z`
    const body = mail({ subscriber_id: "ann" })
    const key = { "idempotency-key": newId() }
    const first = await project.post("/v1/emails", body, key)
    const again = await project.post("/v1/emails", body, key)
    for (const reply of [first, again]) {
      expect(reply.body.data).toMatchObject({ id: first.body.id, scheduled_at: end })
    }
    const [waiting] = (await project.get("/v1/scheduled")).body.data
    expect(waiting).toMatchObject({ id: first.body.id, status: "scheduled", scheduled_at: end })
    expect(await stepsOf(project, first.body.id, "quiet_hours")).toMatchObject([
      { rule: "quiet_hours", outcome: "wait" },
    ])
    const later = await send({ scheduled_at: new Date(Date.parse(end) + 30_000).toISOString() })
    expect(later.body.data.scheduled_at).not.toBe(end)
    clock.advance({ seconds: 12 * 3600 - 60 })
    const handed = await deliverAll(service)
    expect(handed.map(({ message_id }) => message_id)).toContain(first.body.id)
  })

  test("move the new time of an email that waits, too", async () => {
    const { project, send, change } = await withAnn()
    await patch(project, { quiet_hours: quiet })
    const day = atNoon()
    const [end, outside] = [`${day}T23:59:00.000Z`, `${day}T23:59:30.000Z`]
    const { body } = await send({ scheduled_at: outside })
    const moveTo = async (scheduled_at: string) => {
      const answer = await project.call("PATCH", `/v1/emails/${body.id}`, {
        body: { scheduled_at },
      })
      const [step] = await stepsOf(project, body.id, "quiet_hours")
      return [answer.status, answer.body.data.scheduled_at, step.rule]
    }
    expect(await moveTo(`${day}T15:00:00.000Z`)).toEqual([200, end, "quiet_hours"])
    expect(await moveTo(outside)).toEqual([200, outside, "no_quiet_hours"])
    await change({ status: "blocked" })
    const quiet_time = `${day}T16:00:00.000Z`
    expect(await moveTo(quiet_time)).toEqual([200, quiet_time, "no_quiet_hours"])
  })

  test("that began between accept and send let the email wait, and it leaves at their end", async () => {
    const { project, send, change } = await withAnn()
    atNoon()
    const { body } = await send()
    await change({ preferences: { quiet_hours: quiet as never } })
    const waits = async () => (await read(project, body.id)).status_reason === "quiet_hours"
    expect(await deliverAll(service, undefined, waits)).toEqual([])
    expect(await stepsOf(project, body.id, "quiet_hours")).toMatchObject([
      { rule: "quiet_hours", outcome: "wait" },
    ])
    clock.advance({ seconds: 12 * 3600 - 30 })
    await deliverAll(service)
    expect(await read(project, body.id)).toMatchObject({ status: "delivered" })
  })
})

describe("a preflight", () => {
  const checkOf = async (project: TestProject, fields: Record<string, unknown>) => {
    const { data } = (await project.post("/v1/emails/preflight", mail(fields))).body
    const check = data.checks.find(({ name }: { name: string }) => name === "preference")
    return [data.ok, check.outcome, check.detail]
  }

  test("says what the decision would be, and counts nothing", async () => {
    const { project, change } = await withAnn()
    const ann = { subscriber_id: "ann" }
    await patch(project, { frequency_cap: { count: 1, per_seconds: 60 } })
    expect(await checkOf(project, {})).toMatchObject([true, "pass", expect.anything()])
    for (let asked = 0; asked < 3; asked++) {
      expect(await checkOf(project, ann)).toMatchObject([true, "pass", expect.anything()])
    }
    await project.post("/v1/emails", mail(ann))
    expect(await checkOf(project, ann)).toEqual([true, "warn", expect.stringContaining("cap")])
    await change({ status: "blocked" })
    expect(await checkOf(project, ann)).toEqual([true, "warn", expect.stringContaining("blocked")])
    expect(await checkOf(project, { subscriber_id: "nobody" })).toMatchObject([
      false,
      "fail",
      expect.any(String),
    ])
    await addCategory(project, "news")
    expect(await checkOf(project, { category: "newz" })).toMatchObject([
      false,
      "fail",
      expect.any(String),
    ])
  })
})

test("an email that is sent again asks the same, and to another address only its category", async () => {
  const { project, id, send, change } = await withAnn()
  const { body } = await send({ category: "news" })
  await deliverAll(service)
  await change({ preferences: { email: { categories: { news: false } } } })
  const again = await project.post(`/v1/emails/${body.id}/resend`, {})
  expect(await read(project, again.body.id)).toMatchObject({
    subscriber_id: id,
    status_reason: "preference",
  })
  const other = await project.post(`/v1/emails/${body.id}/resend`, { to: "ben@example.test" })
  expect(await read(project, other.body.id)).toMatchObject({
    subscriber_id: null,
    category: "news",
    status: "queued",
  })
})

test("a batch looks its subscribers up together, and one that is missing stops only itself", async () => {
  const { project, id } = await withAnn()
  const messages = ["ann", id, "nobody"].map((subscriber_id) => mail({ subscriber_id }))
  const { body } = await project.post("/v1/emails/batch", { messages })
  expect(body.data).toMatchObject({
    succeeded: 2,
    results: [{ index: 0 }, { index: 1 }, { error: { code: "subscriber_not_found" } }],
  })
})

describe("a mail submitted with X-Svc-Subscriber-Id", () => {
  const letter = (fields: string) =>
    `From: bell@example.test\nTo: ann@example.test\nSubject: Ding\n${fields}\nDong.\n`

  test("belongs to the subscriber, whose choices count", async () => {
    const { project, id, change } = await withAnn()
    const session = await login(project.key)
    const send = (fields: string, to: string | string[] = "ann@example.test") =>
      submit(session, { raw: letter(`X-Svc-Subscriber-Id: ann\n${fields}`), to })
    await send("")
    await change({ preferences: { email: { categories: { news: false } } } })
    await send("X-Svc-Category: news\n")
    const { data } = (await project.get("/v1/emails")).body
    expect(data).toMatchObject([
      { subscriber_id: id, status_reason: "preference" },
      { subscriber_id: id, status_reason: null },
    ])
    expect(await replyOf(send("", ["ann@example.test", "ben@example.test"]))).toBe(
      "501 5.5.4 validation_error",
    )
  })

  test("is refused for a stranger", async () => {
    const project = await service.project()
    const session = await login(project.key)
    const raw = letter("X-Svc-Subscriber-Id: nobody\n")
    expect(await replyOf(submit(session, { raw, to: "ann@example.test" }))).toBe(
      "554 5.6.0 subscriber_not_found",
    )
  })
})
