import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { accounts } from "../../src/identity/tables"
import { inboxContents } from "../../src/inbox/tables"
import { type Reply, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "../topics/made-subscribers"
import { codesOf, inboxEvents, onlyMessage } from "./inboxes"
import { addSubscriber } from "./subscriber-app"

const service = await sharedService()
const { store } = service

async function town(options = {}, names = ["ann"]) {
  const project = await service.project(options)
  const people = names.map((external_id) => ({ external_id }))
  const ids = await makeSubscribers(service, project, people)
  const send = (body: object, headers?: Record<string, string>): Promise<Reply> =>
    project.post("/v1/inbox", body, headers)
  const ding = (more: object = {}) => send({ external_id: names[0], title: "Ding", ...more })
  return { project, ids, send, ding }
}

const PAY = { key: "pay", label: "Pay", url: "https://example.com/pay" }

const WHOLE = {
  ...{ title: "Your invoice", body: "It is due.\nPay it.", category: "billing", icon: "/i.svg" },
  ...{ action_url: "/invoices/7", action_label: "Show", priority: "high", data: { invoice: 7 } },
  ...{
    actions: [
      { ...PAY, style: "primary" },
      { key: "no", label: "No" },
    ],
    tags: ["invoice"],
  },
  ...{
    image_url: "https://example.com/a.png",
    metadata: { order: "A" },
    collapse_key: "invoice-7",
  },
}

describe("a message to one subscriber", () => {
  test("is in the inbox when the answer comes, with all that it was given", async () => {
    const { project, ids, ding } = await town()
    const [subscriber_id] = ids
    const expires_at = secondsFromNow(3600)
    const sent = await ding({ ...WHOLE, expires_at })
    expect(sent.status).toBe(201)
    const { id } = sent.body.data
    expect(sent.body.data).toEqual({
      ...{ id, status: "created", skipped: 0, messages: [{ id, subscriber_id }] },
    })
    const { data } = (await project.get(`/v1/inbox/${id}`)).body
    const actions = [
      { ...PAY, style: "primary", completed_at: null },
      { key: "no", label: "No", url: null, style: null, completed_at: null },
    ]
    expect(data).toMatchObject({ ...WHOLE, actions, id, seq: 1, subscriber_id, expires_at })
    expect(data).toMatchObject({ seen_at: null, read_at: null, archived_at: null })
    expect(await onlyMessage(project, "ann")).toEqual(data)
    expect(await inboxEvents(project)).toEqual(["inbox.created"])
    const [event] = (await project.get("/v1/events?types=inbox.created")).body.data
    expect(event.data).toMatchObject({ inbox_message_id: id, subscriber_id, external_id: "ann" })
    expect(event.data).toMatchObject({ category: "billing", metadata: { order: "A" } })
    expect((await project.get("/v1/usage")).body.data.in_app.used).toBe(1)
    expect((await project.get("/v1/inbox/stats")).body.data).toMatchObject({ created: 1, read: 0 })
  })

  test("is found by its filters, and is gone after its deletion", async () => {
    const { project, ids, ding } = await town()
    const { id } = (await ding({ tags: ["t"], category: "billing" })).body.data
    await ding()
    const found = async (query: string) => (await project.get(`/v1/inbox?${query}`)).body.data
    const by = `subscriber_id=${ids[0]}&category=billing&tag=t&state=unseen`
    expect((await found(by)).map((one: { id: string }) => one.id)).toEqual([id])
    for (const none of ["state=read", "external_id=bob", "subscriber_id=bob", "tag=x"])
      expect(await found(none)).toEqual([])
    const stranger = await town()
    await stranger.ding()
    for (const other of [NOBODY, stranger.ids[0]])
      expect(await found(`subscriber_id=${other}`)).toEqual([])
    expect(await found("external_id=ann")).toHaveLength(2)
    const both = await project.get(`/v1/inbox?subscriber_id=${ids[0]}&external_id=ann`)
    expect(codesOf(both)).toEqual({ external_id: "invalid" })
    expect((await project.call("DELETE", `/v1/inbox/${id}`)).body.data).toEqual({
      ...{ id, deleted: true },
    })
    for (const gone of [id, NOBODY, "x"])
      expect(refusal(await project.get(`/v1/inbox/${gone}`))).toEqual([404, "not_found"])
    expect(await found("external_id=ann")).toHaveLength(1)
  })

  test("takes the place of an unread one with its key, which is unseen again", async () => {
    const { project, ding } = await town()
    const first = (await ding({ ...WHOLE, collapse_key: "k" })).body.data.id
    await project.call("PATCH", `/v1/inbox/${first}`, { body: { seen: true } })
    const again = await ding({ collapse_key: "k", title: "Dong", tags: ["new"] })
    expect(again.body.data).toMatchObject({ id: first, messages: [{ id: first }] })
    expect(await onlyMessage(project, "ann")).toMatchObject({
      ...{ id: first, seq: 3, title: "Dong", body: null, actions: [], tags: ["new"] },
      ...{ category: null, metadata: {}, seen_at: null },
    })
    expect((await project.get("/v1/inbox?tag=invoice")).body.data).toEqual([])
    await project.call("PATCH", `/v1/inbox/${first}`, { body: { read: true } })
    expect((await ding({ collapse_key: "k" })).body.data.id).not.toBe(first)
    expect(await inboxEvents(project)).toEqual([
      ...["inbox.created", "inbox.seen", "inbox.read", "inbox.created"],
    ])
  })

  test("is sent once for an Idempotency-Key", async () => {
    const { project, send } = await town()
    const body = { external_id: "ann", title: "Ding" }
    const [one, two] = [
      await send(body, { "idempotency-key": "a" }),
      await send(body, { "idempotency-key": "a" }),
    ]
    expect(two.body.data).toEqual(one.body.data)
    expect(two.headers.get("idempotent-replayed")).toBe("true")
    expect((await onlyMessage(project, "ann")).id).toBe(one.body.data.id)
  })
})

const long = (length: number) => "é".repeat(length)

/** As JSON it has so many bytes. */
const dataOf = (bytes: number) => ({ a: "x".repeat(bytes - '{"a":""}'.length) })

describe("a message is refused", () => {
  test.each<[string, object, Record<string, string>]>([
    ["without a title", { title: undefined }, { title: "missing_required_field" }],
    ["with a long title", { title: long(201) }, { title: "invalid" }],
    ["with a title of two lines", { title: "a\nb" }, { title: "invalid" }],
    ["with a long body", { body: long(5001) }, { body: "invalid" }],
    ["with NUL in its body", { body: "a\0" }, { body: "invalid" }],
    ["with a long label", { action_label: long(101) }, { action_label: "invalid" }],
    ["with four actions", { actions: ["a", "b", "c", "d"].map(named) }, { actions: "invalid" }],
    [
      "with two actions of a key",
      { actions: [named("a"), named("a")] },
      { "actions.1.key": "duplicate" },
    ],
    [
      "with a key that is no part of a path",
      { actions: [named("a/b")] },
      { "actions.0.key": "invalid" },
    ],
    [
      "with a wrong action URL",
      { actions: [{ ...PAY, url: "x" }] },
      { "actions.0.url": "invalid_url" },
    ],
    ["with a priority of its own", { priority: "huge" }, { priority: "invalid" }],
    ["with much data", { data: dataOf(16_385) }, { data: "too_large" }],
    ["with a number too large", { data: { n: 2 ** 60 } }, { "data.n": "invalid" }],
    ["with a category of another form", { category: "Not So" }, { category: "invalid" }],
    ["with a long key", { collapse_key: long(256) }, { collapse_key: "invalid" }],
    ["with an end that has passed", { expires_at: secondsFromNow(-1) }, { expires_at: "invalid" }],
    [
      "with an end without offset",
      { expires_at: "2099-01-01T00:00:00" },
      { expires_at: "invalid" },
    ],
    ["with two targets", { subscriber_id: "ann" }, { subscriber_id: "invalid" }],
    ["with no target", { external_id: undefined }, { subscriber_id: "missing_required_field" }],
    ["with eleven tags", { tags: Array(11).fill("t") }, { tags: "invalid" }],
    ["with much metadata", { metadata: dataOf(16_385) }, { metadata: "too_large" }],
    [
      "with two mistakes",
      { title: "", icon: "ftp://a.test/" },
      { title: "invalid", icon: "invalid_url" },
    ],
  ])("%s", async (_, fields, codes) => {
    const { ding } = await town()
    const refused = await ding(fields)
    expect(refused.status).toBe(422)
    expect(codesOf(refused)).toEqual(codes)
  })

  test("with a URL that leads elsewhere", async () => {
    const { ding } = await town()
    const wrong = [
      "//evil.test",
      "/\\evil.test",
      "javascript:alert(1)",
      "data:text/html,x",
      "a/b",
      "",
    ]
    for (const url of [...wrong, "https:/x", "/a b", "/a\tb", `/${long(2048)}`, "https://"]) {
      for (const field of ["action_url", "icon", "image_url"])
        expect([url, refusal(await ding({ [field]: url }))]).toEqual([url, [422, "invalid_url"]])
    }
  })

  test("for somebody that there is not, or with a category that there is not", async () => {
    const { project, send, ding } = await town({}, ["ann", "bob"])
    const stranger = await addSubscriber(service, await service.project())
    for (const to of [{ external_id: "x" }, { subscriber_id: NOBODY }, { subscriber_id: stranger }])
      expect(refusal(await send({ ...to, title: "a" }))).toEqual([404, "subscriber_not_found"])
    const many = await send({ subscriber_ids: ["ann", "x", NOBODY], title: "a" })
    expect(refusal(many)).toEqual([404, "subscriber_not_found"])
    expect(many.body.error.details.missing).toEqual(["x", NOBODY])
    const crowd = Array.from({ length: 501 }, (_, at) => `p${at}`)
    expect((await send({ subscriber_ids: crowd, title: "a" })).status).toBe(422)
    await project.post("/v1/subscribers/categories", { name: "News", slug: "news" })
    expect(codesOf(await ding({ category: "other" }))).toEqual({ category: "unknown_category" })
    expect((await ding({ category: "news" })).status).toBe(201)
    expect((await ding({ data: dataOf(16_384), title: long(200), body: long(5000) })).status).toBe(
      201,
    )
  })

  test("when a limit of the account or of the body is reached", async () => {
    const few = await town({ limits: { in_app_per_month: 2, sends_per_second: null } }, [
      "ann",
      "bob",
    ])
    expect((await few.ding()).status).toBe(201)
    const both = { subscriber_ids: ["ann", "bob"], title: "Ding" }
    expect(refusal(await few.send(both))).toEqual([402, "payment_required"])
    expect((await few.project.get("/v1/inbox")).body.data).toHaveLength(1)
    const slow = await town({ limits: { sends_per_second: 1 } })
    expect((await slow.ding()).status).toBe(201)
    const refused = await slow.ding()
    expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
    expect(refused.body.error.details.scope).toBe("sends")
    const large = await few.ding({ unknown: "x".repeat(262_144) })
    expect(refusal(large)).toEqual([413, "payload_too_large"])
    const frozen = { sending_status: "frozen" as const }
    const cold = await service.project()
    await addSubscriber(service, cold, "ann")
    await store.tx((tx) => tx.update(accounts).set(frozen).where(eq(accounts.id, cold.account_id)))
    const from_cold = await cold.post("/v1/inbox", { external_id: "ann", title: "Ding" })
    expect(refusal(from_cold)).toEqual([403, "account_frozen"])
  })
})

const named = (key: string) => ({ key, label: "Go" })

describe("a message to several subscribers", () => {
  const PEOPLE = ["ann", "bob", "cid"]

  test("is stored once, and is a message of each", async () => {
    const { project, ids, send } = await town({}, PEOPLE)
    const [ann = "", bob] = ids
    const sent = await send({ subscriber_ids: [ann, "ann", "bob"], title: "Ding", data: { a: 1 } })
    const { id, messages } = sent.body.data
    expect(messages.map((one: { subscriber_id: string }) => one.subscriber_id)).toEqual([ann, bob])
    expect(messages.map((one: { id: string }) => one.id)).not.toContain(id)
    const mine = (row: { project_id: string }) => row.project_id === project.project_id
    expect((await store.read.select().from(inboxContents)).filter(mine)).toHaveLength(1)
    await project.call("PATCH", `/v1/inbox/${messages[0].id}`, { body: { title: "Dong" } })
    expect(await onlyMessage(project, "ann")).toMatchObject({ title: "Dong", data: { a: 1 } })
    expect(await onlyMessage(project, "bob")).toMatchObject({ title: "Ding", data: { a: 1 } })
    await project.call("DELETE", `/v1/inbox/${messages[0].id}`)
    expect(await onlyMessage(project, "bob")).toMatchObject({ title: "Ding" })
  })

  test("passes over those whose preferences exclude it", async () => {
    const { project, ids, send, ding } = await town({}, PEOPLE)
    await project.post(`/v1/subscribers/${ids[0]}/preferences`, { in_app: { enabled: false } })
    await project.call("PATCH", `/v1/subscribers/${ids[1]}`, { body: { status: "blocked" } })
    expect((await ding()).body.data).toEqual({
      ...{ id: null, status: "created", messages: [], skipped: 1 },
    })
    const sent = await send({ subscriber_ids: PEOPLE, title: "Ding" })
    expect(sent.body.data).toMatchObject({ messages: [{ subscriber_id: ids[2] }], skipped: 2 })
    expect(await inboxEvents(project)).toEqual(["inbox.created"])
    expect((await project.get("/v1/usage")).body.data.in_app.used).toBe(1)
  })

  test("obeys the frequency cap, and neither the hours of quiet", async () => {
    const { project, send } = await town({}, PEOPLE)
    const quiet = { enabled: true, start: "00:00", end: "23:59", channels: ["email"] }
    const settings = { frequency_cap: { count: 1, per_seconds: 3600 }, quiet_hours: quiet }
    expect((await project.call("PATCH", "/v1/settings", { body: settings })).status).toBe(200)
    await send({ external_id: "ann", title: "Ding" })
    const sent = await send({ subscriber_ids: PEOPLE, title: "Ding" })
    expect(sent.body.data).toMatchObject({ skipped: 1 })
    expect(sent.body.data.messages).toHaveLength(2)
  })

  test("in the sandbox is in the inbox, and counts nothing", async () => {
    const { project, ding } = await town({ limits: { in_app_per_month: 0 } })
    expect(refusal(await ding())).toEqual([402, "payment_required"])
    await project.call("PATCH", "/v1/settings", { body: { sandbox: true } })
    expect((await ding()).status).toBe(201)
    expect((await project.get("/v1/usage")).body.data.in_app.used).toBe(0)
    expect(await onlyMessage(project, "ann")).toMatchObject({ title: "Ding" })
  })
})
