import { beforeAll, describe, expect, test } from "bun:test"
import { and, desc, eq } from "drizzle-orm"
import { isoFrom, millis, secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { inboxTickets } from "../../src/inbox/tables"
import { purgeTickets, redeem } from "../../src/inbox/tickets"
import { type Ask, client, complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, bearer, tokenOf } from "./subscriber-app"

const clock = movableClock()
const service = await sharedService()
const { store, app } = service
const INBOX = "/v1/subscriber-inbox"

const NOTE = {
  ...{ title: "Hello", metadata: { secret: "S3CR3T" } },
  actions: [{ key: "accept", label: "Accept" }],
}

/** A subscriber of a project, who asks with their own token. */
async function reader(project: TestProject, external_id?: string) {
  const subscriber_id = await addSubscriber(service, project, external_id)
  const token = await tokenOf(project, subscriber_id)
  const call = (method: string, path = "", ask: Ask = {}) =>
    client(app, undefined).call(method, `${INBOX}${path}`, {
      ...ask,
      headers: { ...bearer(token), ...ask.headers },
    })
  return {
    ...{ project, subscriber_id, token, call },
    get: (path = "") => call("GET", path),
    post: (path: string, body: unknown = {}) => call("POST", path, { body }),
    patch: (path: string, body: unknown) => call("PATCH", path, { body }),
    /** Puts messages into the inbox. Resolves with their ids. */
    add: async (...wanted: object[]): Promise<string[]> => {
      const ids: string[] = []
      for (const one of wanted) {
        const sent = await project.post("/v1/inbox", { ...NOTE, subscriber_id, ...one })
        ids.push(sent.body.data.id)
      }
      return ids
    },
  }
}

type Person = Awaited<ReturnType<typeof reader>>

const told = async ({ subscriber_id, project }: Person, type: string) => {
  const of = and(eq(events.project_id, project.project_id), eq(events.type, type))
  const rows = await store.read.select().from(events).where(of).orderBy(desc(events.id))
  return rows
    .map(({ data }) => data as Record<string, unknown>)
    .filter((data) => data.subscriber_id === subscriber_id)
}

let ann: Person
let others: Person[]

beforeAll(async () => {
  const project = await service.project({ plan: "enterprise" })
  ann = await reader(project)
  others = [await reader(project), await reader(await service.project())]
})

const fresh = async () => reader(await service.project({ plan: "enterprise" }))

describe("the list", () => {
  test("has the newest first, with the counts of the inbox, and nothing of the project's own", async () => {
    const me = await fresh()
    const tag = "t".repeat(100)
    const [old, archived, snoozed, last] = await me.add(
      { category: "billing", tags: [tag] },
      ...[{}, {}, { category: "news" }],
    )
    await me.patch(`/${archived}`, { archived: true })
    await me.patch(`/${snoozed}`, { snoozed_until: secondsFromNow(60) })
    await me.patch(`/${old}`, { read: true })
    const idsOf = async (query: string) =>
      (await me.get(query)).body.data.map(({ id }: { id: string }) => id)
    const page = await me.get()
    expect(page.body.data.map(({ id }: { id: string }) => id)).toEqual([last, old])
    expect(page.body.meta).toMatchObject({
      unread_count: 1,
      unseen_count: 1,
      last_seq: 7,
      total: 2,
    })
    expect(page.text).not.toContain("S3CR3T")
    expect(await idsOf("?filter=unread")).toEqual([last])
    expect(await idsOf("?filter=archived")).toEqual([archived])
    expect(await idsOf("?filter=snoozed")).toEqual([snoozed])
    expect(await idsOf("?category=billing")).toEqual([old])
    expect(await idsOf(`?tag=${tag}`)).toEqual([old])
    expect(await idsOf(`?after=${last}`)).toEqual([old])
    expect(await idsOf(`?before=${old}`)).toEqual([last])
    expect(complaints(await me.get("?filter=read"))).toEqual(["filter"])
    const counts = await me.get("/unread-count")
    expect(counts.body.data).toEqual({ unread: 1, unseen: 1, total: 2, by_category: { news: 1 } })
  })

  test("goes on behind a page from which a message has just expired", async () => {
    const me = await fresh()
    const [first] = await me.add({}, { expires_at: secondsFromNow(5) }, {}, {})
    clock.advance({ seconds: 6 })
    const seen: string[] = []
    for (let next: string | null = ""; next !== null; ) {
      const { body } = await me.get(`?limit=1${next && `&cursor=${next}`}`)
      seen.push(...body.data.map(({ id }: { id: string }) => id))
      next = body.meta.next_cursor
    }
    expect([seen.length, new Set(seen).size, seen.at(-1)]).toEqual([3, 3, first])
  })
})

describe("one message", () => {
  test("is shown, changed and deleted by its subscriber", async () => {
    const me = await fresh()
    const [id] = await me.add({})
    expect((await me.get(`/${id}`)).body.data).toMatchObject({ id, read_at: null, seq: 1 })
    const read = await me.patch(`/${id}`, { read: true })
    expect(read.body.data).toMatchObject({ id, seq: 2, seen_at: expect.any(String) })
    const until = isoFrom(millis() + 60_000)
    const snoozed = await me.patch(`/${id}`, { snoozed_until: until.replace("Z", "+00:00") })
    expect(snoozed.body.data.snoozed_until).toBe(until)
    expect((await me.patch(`/${id}`, { snoozed_until: null })).body.data.snoozed_until).toBeNull()
    for (const wrong of ["2020-01-01T00:00:00Z", "2120-01-01T00:00:00", "tomorrow"]) {
      const refused = await me.patch(`/${id}`, { snoozed_until: wrong })
      expect([refused.status, ...complaints(refused)]).toEqual([422, "snoozed_until"])
    }
    const deletions = Array.from({ length: 3 }, () => me.call("DELETE", `/${id}`))
    const [gone, ...late] = (await Promise.all(deletions)).sort((a, b) => a.status - b.status)
    expect(gone?.body.data).toEqual({ id, deleted: true })
    expect(late.map(refusal)).toEqual(late.map(() => [404, "not_found"]))
    expect((await told(me, "inbox.read")).length).toBe(1)
  })

  test("is nobody else's, whether of the same project or another one", async () => {
    const [id = ""] = await ann.add({})
    const asks = (who: Person, name: string) => [
      who.get(`/${name}`),
      who.patch(`/${name}`, { read: true }),
      who.post(`/${name}/actions/accept`),
      who.call("DELETE", `/${name}`),
    ]
    const errorsOf = async (who: Person, name: string) =>
      (await Promise.all(asks(who, name))).map(({ status, body }) => [status, body.error])
    for (const who of others) {
      const nobodys = await errorsOf(who, NOBODY)
      expect(nobodys.map(([status]) => status)).toEqual([404, 404, 404, 404])
      expect(await errorsOf(who, id)).toEqual(nobodys)
      expect((await who.post("/mark", { ids: [id], as: "read" })).body.data.updated).toBe(0)
      expect(complaints(await who.get(`?after=${id}`))).toEqual(["after"])
    }
    expect((await ann.get(`/${id}`)).body.data).toMatchObject({ read_at: null, seq: 1 })
  })

  test("has actions, each use of which is told", async () => {
    const me = await fresh()
    const [id] = await me.add({ category: "billing" })
    const use = (key: string, body?: unknown, headers = {}) =>
      me.call("POST", `/${id}/actions/${key}`, { body, headers })
    expect((await use("accept")).body.data.actions[0].completed_at).toEqual(expect.any(String))
    const once = { "idempotency-key": "k1" }
    const answers = [await use("accept", { data: { a: 1 } }, once)]
    answers.push(await use("accept", { data: { a: 1 } }, once))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(refusal(await use("decline"))).toEqual([404, "not_found"])
    const large = await use("accept", { data: { text: "x".repeat(16_384) } })
    expect([large.status, ...complaints(large)]).toEqual([422, "data"])
    const list = await told(me, "inbox.action")
    expect(list.length).toBe(2)
    expect(list[0]).toEqual({
      ...{ inbox_message_id: id, subscriber_id: me.subscriber_id, category: "billing" },
      ...{ external_id: expect.any(String), timestamp: expect.any(String) },
      ...{ metadata: { secret: "S3CR3T" }, action_key: "accept" },
    })
  })
})

describe("many messages", () => {
  test("are read, seen and archived at once, within what the request says", async () => {
    const me = await fresh()
    await me.add({ category: "billing" }, {})
    clock.advance({ seconds: 1 })
    const time = isoFrom(millis()).replace("Z", "+00:00")
    clock.advance({ seconds: 1 })
    const [last] = await me.add({})
    const updated = async (path: string, body?: unknown) =>
      (await me.call("POST", path, { body })).body.data.updated
    expect(await updated("/seen-all", { before: time })).toBe(2)
    expect(await updated("/read-all", { category: "billing" })).toBe(1)
    expect(await updated("/archive-all")).toBe(1)
    expect(await updated("/read-all", { before: time })).toBe(1)
    expect((await me.get("?filter=unread")).body.data.map(({ id }: { id: string }) => id)).toEqual([
      last,
    ])
    expect(await updated("/seen-all")).toBe(1)
    expect(await updated("/archive-all", {})).toBe(1)
    expect(await updated("/archive-all", { read_only: false })).toBe(1)
    for (const before of ["2026-11-21T10:30:00", "yesterday", 7]) {
      for (const path of ["/read-all", "/seen-all"]) {
        const refused = await me.post(path, { before })
        expect([refused.status, ...complaints(refused)]).toEqual([422, "before"])
      }
    }
  })

  test("are marked by their ids", async () => {
    const me = await fresh()
    const ids = await me.add({}, {})
    const mark = async (as: string, more: string[] = []) =>
      (await me.post("/mark", { ids: [...ids, ...more], as })).body.data.updated
    expect(await mark("read", [NOBODY, "x"])).toBe(2)
    expect(await mark("seen")).toBe(0)
    expect([await mark("unread"), await mark("archived"), await mark("unarchived")]).toEqual([
      ...[2, 2, 2],
    ])
    const many = await me.post("/mark", { ids: Array(501).fill(NOBODY), as: "read" })
    expect([many.status, ...complaints(many)]).toEqual([422, "ids"])
  })
})

test("a ticket works once, for a minute, and not longer than its token", async () => {
  const me = await fresh()
  const ask = (headers = {}) => me.call("POST", "/ticket", { headers })
  const use = (ticket: string) => store.tx((tx) => redeem(tx, ticket))
  const answer = await ask()
  expect([answer.status, answer.body.data.expires_in]).toEqual([201, 60])
  const [row] = await store.read.select().from(inboxTickets)
  expect(JSON.stringify(row)).not.toContain(answer.body.data.ticket)
  const { subscriber_id, project } = me
  expect(await use(answer.body.data.ticket)).toEqual({
    ...{ subscriber_id, project_id: project.project_id, session_id: null },
    token_ends_at: expect.any(String),
  })
  expect(await use(answer.body.data.ticket)).toBeUndefined()
  const once = { "idempotency-key": "k1" }
  const again = [await ask(once), await ask(once)].map(({ body }) => body.data.ticket)
  expect(again[0]).toBe(again[1])
  clock.advance({ seconds: 61 })
  expect(await use(again[0])).toBeUndefined()
  expect(await purgeTickets(store)).toBe(1)

  const token = await tokenOf(project, subscriber_id, 60)
  clock.advance({ seconds: 30 })
  const late = await client(app, undefined).post(`${INBOX}/ticket`, undefined, bearer(token))
  clock.advance({ seconds: 31 })
  expect(await use(late.body.data.ticket)).toBeUndefined()
})

describe("the preferences", () => {
  test("show what a subscriber may choose, and take no other name", async () => {
    const me = await fresh()
    const { project, subscriber_id } = me
    for (const [slug, more] of Object.entries({
      ...{ news: {}, hidden: { visibility: "private" }, alarm: { critical: true } },
      mail: { channels: ["email"], default: "off" },
    })) {
      await project.post("/v1/subscribers/categories", { name: slug, slug, ...more })
    }
    for (const [key, visibility] of Object.entries({ open: "public", closed: "private" })) {
      await project.post("/v1/topics", { name: key, key, visibility })
      const subscriber_ids = [subscriber_id]
      await project.post(`/v1/topics/${key}/subscribers`, { subscriber_ids })
    }
    await project.post("/v1/topics", { name: "other", key: "other", visibility: "public" })
    const path = `/v1/subscribers/${subscriber_id}/preferences`
    await project.post(path, { in_app: { categories: { hidden: false } }, workflows: { w: false } })
    const { body } = await me.get("/preferences")
    const all = { email: true, push: true, sms: true, in_app: true }
    const plain = { enabled: true, categories: { news: true } }
    expect(body.data).toEqual({
      ...{ push: plain, sms: plain, in_app: plain },
      email: { enabled: true, categories: { mail: false, news: true } },
      ...{ topics: { open: all }, workflows: {}, quiet_hours: null },
    })
    const put = (change: object) => me.call("PUT", "/preferences", { body: change })
    const refusals = new Set<string>()
    for (const name of ["hidden", "alarm", "nothing"]) {
      const refused = await put({ in_app: { categories: { [name]: true } } })
      expect(refusal(refused)).toEqual([422, "validation_error"])
      refusals.add(refused.text.replaceAll(name, "NAME").replace(/req_\w+/, ""))
    }
    for (const name of ["closed", "other", "nothing"]) {
      const refused = await put({ topics: { [name]: { email: true } } })
      expect(refusal(refused)).toEqual([422, "validation_error"])
      refusals.add(refused.text.replaceAll(name, "NAME").replace(/req_\w+/, ""))
    }
    expect(refusals.size).toBe(2)
    const chosen = await put({
      in_app: { categories: { news: false } },
      topics: { open: { sms: false } },
    })
    expect(chosen.body.data.in_app.categories).toEqual({ news: false })
    expect(chosen.body.data.topics.open).toEqual({ ...all, sms: false })
    expect((await project.get(path)).body.data).toMatchObject({
      ...{ in_app: { categories: { hidden: false, news: false } }, workflows: { w: false } },
    })
    expect(await told(me, "subscriber.unsubscribed")).toHaveLength(2 + 1)
  })

  test("say yes again to what was unsubscribed from by other ways", async () => {
    const me = await fresh()
    const { project, subscriber_id } = me
    const one = `/v1/subscribers/${subscriber_id}`
    await project.call("PATCH", one, { body: { email: "Ann@example.test" } })
    await project.post("/v1/subscribers/categories", { name: "news", slug: "news" })
    await project.post(`${one}/unsubscribe`, { channel: "email", category: "news" })
    await project.post(`${one}/unsubscribe`, { channel: "in_app" })
    const scope = { type: "category", key: "news" }
    await project.post("/v1/suppressions", {
      email: "ann@example.test",
      reason: "unsubscribe",
      scope,
    })
    const before = (await me.get("/preferences")).body.data
    expect([before.in_app.enabled, before.email.categories.news]).toEqual([false, false])
    const yes = { in_app: { enabled: true }, email: { categories: { news: true } } }
    const after = (await me.call("PUT", "/preferences", { body: yes })).body.data
    expect([after.in_app.enabled, after.email.categories.news]).toEqual([true, true])
    expect(await told(me, "subscriber.resubscribed")).toHaveLength(2)
    const consents = (await project.get(`${one}/consents`)).body.data
    expect(consents[0]).toMatchObject({ action: "granted", source: "api" })
  })
})

describe("a caller", () => {
  test("is a subscriber, and no key, person, or blocked subscriber", async () => {
    const me = await fresh()
    for (const [method, path] of [
      ["GET", ""],
      ["POST", "/ticket"],
      ["DELETE", `/${NOBODY}`],
    ] as const) {
      const keyed = await me.project.call(method, `${INBOX}${path}`)
      expect(refusal(keyed)).toEqual([403, "forbidden"])
    }
    const status = { body: { status: "blocked" } }
    await me.project.call("PATCH", `/v1/subscribers/${me.subscriber_id}`, status)
    for (const path of ["", "/unread-count", "/preferences"]) {
      expect(refusal(await me.get(path))).toEqual([401, "unauthorized"])
    }
  })

  test("may be a page of a listed origin, with every method", async () => {
    const me = await fresh()
    const [id] = await me.add({})
    const origin = "https://app.example.test"
    await me.project.call("PATCH", "/v1/settings", { body: { allowed_origins: [origin] } })
    for (const [method, path, body] of [
      ["GET", ""],
      ["PATCH", `/${id}`, { read: true }],
      ["PUT", "/preferences", { in_app: { enabled: true } }],
      ["DELETE", `/${id}`],
    ] as const) {
      const asked = await client(app, undefined).call("OPTIONS", `${INBOX}${path}`, {
        headers: { origin, "access-control-request-method": method },
      })
      expect(asked.headers.get("access-control-allow-methods")).toContain(method)
      const answer = await me.call(method, path, { body, headers: { origin } })
      expect([method, answer.status]).toEqual([method, 200])
      expect(answer.headers.get("access-control-allow-origin")).toBe(origin)
      const foreign = await me.call(method, path, {
        body,
        headers: { origin: "https://evil.test" },
      })
      expect(refusal(foreign)).toEqual([403, "forbidden"])
    }
  })

  test("has a window of its own, and stands in the request log of its project", async () => {
    const project = await service.project({ plan: "free" })
    const [one, other] = [await reader(project), await reader(project)]
    const left = async (who: Person) =>
      Number((await who.get("/unread-count")).headers.get("x-ratelimit-remaining"))
    const [first, second] = [await left(one), await left(one)]
    expect([first - second, await left(other)]).toEqual([1, first])
    await service.parts.requests.flush()
    const log = await project.get("/v1/request-log")
    expect(log.text).toContain(`${INBOX}/unread-count`)
  })
})
