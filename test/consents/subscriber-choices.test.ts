import { describe, expect, test } from "bun:test"
import { brokenRecord } from "../../src/consents/consents"
import { addUnsubscribes, MOST_UNSUBSCRIBES } from "../../src/consents/subscriber-choices"
import { unexpired } from "../../src/suppressions/look-up"
import { suppress } from "../../src/suppressions/suppressions"
import { addCategory, addSubscriber, chainOfSubscriber } from "../harness/audience"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { linkTo, unsubscribedIn } from "../harness/unsubscribed"

const service = await sharedService()
const { store } = service

const person = (project: TestProject, fields: object = {}) =>
  addSubscriber(project, { email: "Ann@Example.test", ...fields })

const at = (id: string, verb: string) => `/v1/subscribers/${encodeURIComponent(id)}/${verb}`

const NEWS = { channel: "email", category: "news" }

describe("unsubscribe", () => {
  test("ends one category of a channel, with record and event", async () => {
    const project = await service.project()
    const { id, external_id } = await person(project)
    const answer = await project.post(at(id, "unsubscribe"), { ...NEWS, reason: "By telephone." })
    expect(answer.status).toBe(201)
    const row = {
      id: expect.any(String),
      subscriber_id: id,
      channel: "email",
      category: "news",
      reason: "By telephone.",
      created_at: expect.any(String),
    }
    expect(answer.body.data).toEqual(row)
    const list = (await project.get(at(external_id, "unsubscribes"))).body
    expect([list.data, list.meta.total]).toEqual([[row], 1])
    const [consent] = (await project.get(at(id, "consents"))).body.data
    expect(consent).toMatchObject({
      subscriber_id: id,
      ...{ channel: "email", category: "news", scope: { type: "category", key: "news" } },
      ...{ action: "withdrawn", source: "api", proof: "By telephone.", ip_hash: null },
      ...{ number: 1, prev_hash: null },
    })
    const { events, ended } = await unsubscribedIn(service, project)
    expect(ended).toEqual([])
    expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: "subscriber.unsubscribed",
        data: {
          ...{ subscriber_id: id, external_id, channel: "email" },
          scope: { type: "category", key: "news" },
          reason: "By telephone.",
          timestamp: expect.any(String),
        },
      },
    ])
  })

  test("without a category ends the whole channel", async () => {
    const project = await service.project()
    const { id } = await person(project)
    const answer = await project.post(at(id, "unsubscribe"), { channel: "sms" })
    expect(answer.body.data).toMatchObject({ channel: "sms", category: null, reason: null })
    const { events } = await unsubscribedIn(service, project)
    expect(events[0]?.data).toMatchObject({ scope: { type: "project", key: null }, reason: "api" })
    const [consent] = (await project.get(at(id, "consents"))).body.data
    expect(consent).toMatchObject({ channel: "sms", category: null, scope: null })
  })

  test("a second time is a conflict that names the first, and records nothing", async () => {
    const project = await service.project()
    const { id } = await person(project)
    const first = await project.post(at(id, "unsubscribe"), NEWS)
    const again = await project.post(at(id, "unsubscribe"), NEWS)
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "exists", id: first.body.data.id })
    expect((await project.get(at(id, "consents"))).body.meta.total).toBe(1)
    expect((await unsubscribedIn(service, project)).events).toHaveLength(1)
  })

  test("with an Idempotency-Key answers the same again", async () => {
    const project = await service.project()
    const { id } = await person(project)
    const ask = { body: NEWS, headers: { "idempotency-key": "once" } }
    const first = await project.call("POST", at(id, "unsubscribe"), ask)
    const again = await project.call("POST", at(id, "unsubscribe"), ask)
    expect([again.status, again.body.data]).toEqual([201, first.body.data])
  })

  test.each([
    [{}, "channel"],
    [{ channel: "fax" }, "channel"],
    [{ channel: "email", category: "No Slug" }, "category"],
    [{ channel: "email", category: "" }, "category"],
    [{ channel: "email", reason: "two\nlines" }, "reason"],
    [{ channel: "email", reason: "x".repeat(501) }, "reason"],
  ])("refuses %p", async (body, field) => {
    const project = await service.project()
    const { id } = await person(project)
    const answer = await project.post(at(id, "unsubscribe"), body)
    expect([answer.status, complaints(answer)]).toEqual([422, [field]])
  })

  test("of one category too many is a conflict, and the subscriber can still end a whole channel", async () => {
    const project = await service.project()
    const subscriber = { ...(await person(project)), project_id: project.project_id }
    const { id } = subscriber
    const ended = Array.from({ length: MOST_UNSUBSCRIBES - 1 }, (_, at) => ({
      ...{ channel: "email" as const, category: `c${at}` },
    }))
    await store.tx((tx) => addUnsubscribes(tx, subscriber, ended))
    const end = (category?: string) =>
      project.post(at(id, "unsubscribe"), { channel: "email", category })
    const answers = await Promise.all([end("x"), end("y"), end("z")])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const details = { reason: "too_many", limit: MOST_UNSUBSCRIBES }
    const refused = answers.filter(({ status }) => status === 409)
    expect(refused.map(({ body }) => body.error.details)).toEqual([details, details])
    expect((await end("c0")).body.error.details.reason).toBe("exists")
    expect(await chainOfSubscriber(service, id)).toHaveLength(1)
    expect((await end()).status).toBe(201)
    expect((await project.post(at(id, "resubscribe"), { channel: "email" })).status).toBe(200)
    expect((await end("x")).status).toBe(201)
  })

  test("knows the project's categories as soon as there is one", async () => {
    const project = await service.project()
    const { id } = await person(project)
    await addCategory(service, project, "News")
    const answer = await project.post(at(id, "unsubscribe"), { channel: "email", category: "x" })
    expect(answer.status).toBe(422)
    expect(answer.body.error.details.fields[0].code).toBe("unknown_category")
    expect((await project.post(at(id, "unsubscribe"), NEWS)).status).toBe(201)
  })

  test("of somebody else's subscriber is a 404, as of one that nobody has", async () => {
    const project = await service.project()
    const { id } = await person(await service.project())
    for (const name of [id, NOBODY, "nobody", "a/b", "\u0000", "x".repeat(10_000)]) {
      for (const verb of ["unsubscribe", "resubscribe"]) {
        const answer = await project.post(at(name, verb), NEWS)
        expect(refusal(answer)).toEqual([404, "subscriber_not_found"])
      }
      for (const verb of ["unsubscribes", "consents"]) {
        expect(refusal(await project.get(at(name, verb)))).toEqual([404, "subscriber_not_found"])
      }
    }
  })
})

describe("resubscribe", () => {
  test("removes the row of the category, and what unsubscribing suppressed for it", async () => {
    const project = await service.project()
    const { id, external_id } = await person(project)
    await project.post(at(id, "unsubscribe"), NEWS)
    await project.post(at(id, "unsubscribe"), { channel: "email", category: "offers" })
    const { project_id } = project
    const address = { channel: "email" as const, address: "ann@example.test" }
    const news = { scope: { type: "category" as const, key: "news" } }
    await store.tx(async (tx) => {
      const ended = { ...address, ...news, reason: "unsubscribe" as const, origin: "page" as const }
      await suppress(tx, project_id, ended)
      await suppress(tx, project_id, { ...address, reason: "bounce", origin: "event" })
    })
    const answer = await project.post(at(external_id, "resubscribe"), NEWS)
    expect([answer.status, answer.body.data]).toEqual([200, { removed: 2 }])
    const left = await unexpired(store.read, project_id, "email", ["ann@example.test"])
    expect(left.map(({ reason }) => reason)).toEqual(["bounce"])
    const rows = (await project.get(at(id, "unsubscribes"))).body.data
    expect(rows.map(({ category }: { category: string }) => category)).toEqual(["offers"])
    const chain = await chainOfSubscriber(service, id)
    expect(chain.map(({ action, scope_key }) => [action, scope_key])).toEqual([
      ["withdrawn", "news"],
      ["withdrawn", "offers"],
      ["granted", "news"],
    ])
  })

  test("without a category allows all of the channel, but not what suppresses the address whole", async () => {
    const project = await service.project()
    const { id } = await person(project, { phone: "+4915112345678" })
    await project.post(at(id, "unsubscribe"), NEWS)
    await project.post(at(id, "unsubscribe"), { channel: "email" })
    await project.post(at(id, "unsubscribe"), { channel: "sms" })
    await store.tx((tx) =>
      suppress(tx, project.project_id, {
        ...{ channel: "sms", address: "+4915112345678" },
        ...{ reason: "unsubscribe", origin: "event" },
      }),
    )
    const email = await project.post(at(id, "resubscribe"), { channel: "email" })
    expect(email.body.data).toEqual({ removed: 2 })
    const sms = await project.post(at(id, "resubscribe"), { channel: "sms" })
    expect(sms.body.data).toEqual({ removed: 1 })
    expect(await unexpired(store.read, project.project_id, "sms", ["+4915112345678"])).toHaveLength(
      1,
    )
  })

  test("undoes what the link of a topic's mail ended", async () => {
    const project = await service.project()
    const { id } = await person(project)
    await project.post("/v1/topics", { name: "Trains", key: "trains", default: "off" })
    const wanted = { topics: { trains: { email: true, push: false } } }
    await project.post(at(id, "preferences"), wanted)
    const token = await linkTo(service, project, "trains", { type: "topic" })
    const body = "List-Unsubscribe=One-Click"
    const headers = { "content-type": "application/x-www-form-urlencoded" }
    await service.anybody.call("POST", `/u/${token}`, { body, headers })
    const topics = async () => (await project.get(at(id, "preferences"))).body.data.topics
    expect(await topics()).toEqual({ trains: { email: false, push: false } })
    const answer = await project.post(at(id, "resubscribe"), { channel: "email" })
    expect(answer.body.data).toEqual({ removed: 1 })
    expect(await topics()).toEqual(wanted.topics)
  })

  test("where nothing had ended removes nothing, records nothing and tells nothing", async () => {
    const project = await service.project()
    const { id } = await person(project)
    const answer = await project.post(at(id, "resubscribe"), NEWS)
    expect([answer.status, answer.body.data]).toEqual([200, { removed: 0 }])
    expect((await project.get(at(id, "consents"))).body.meta.total).toBe(0)
    expect((await unsubscribedIn(service, project)).events).toEqual([])
  })
})

describe("the chain of a subscriber", () => {
  const record = { channel: "email", action: "granted", source: "import", proof: "Form 4\nsigned" }

  test("takes records from elsewhere, and shows them newest first, page by page", async () => {
    const project = await service.project()
    const { id } = await person(project)
    for (const category of ["a", "b", "c"]) {
      const answer = await project.post(at(id, "consents"), { ...record, category })
      expect([answer.status, answer.body.data.category]).toEqual([201, category])
    }
    const first = (await project.get(at(id, "consents?per_page=2"))).body
    const rest = (await project.get(at(id, `consents?cursor=${first.meta.next_cursor}`))).body
    const all = [...first.data, ...rest.data]
    expect(all.map(({ category }: { category: string }) => category)).toEqual(["c", "b", "a"])
    expect(first.meta.total).toBe(3)
    expect(all[0].prev_hash).toBe(all[1].hash)
    // Nothing of what is sent changed.
    expect((await project.get(at(id, "unsubscribes"))).body.data).toEqual([])
    expect((await unsubscribedIn(service, project)).events).toEqual([])
  })

  test.each([
    [{ ...record, action: "erased" }, "action"],
    [{ ...record, source: "fax" }, "source"],
    [{ ...record, proof: "x".repeat(2001) }, "proof"],
    [{ ...record, proof: "a\u0000b" }, "proof"],
    [{ ...record, category: "\u0000" }, "category"],
    [{ ...record, channel: undefined }, "channel"],
  ])("refuses %p", async (body, field) => {
    const project = await service.project()
    const { id } = await person(project)
    const answer = await project.post(at(id, "consents"), body)
    expect([answer.status, complaints(answer)]).toEqual([422, [field]])
  })

  test("stays whole when many write at once, and each subscriber has its own", async () => {
    const project = await service.project()
    const [ann, ben] = [await person(project), await person(project)]
    const writes = Array.from({ length: 24 }, (_, at_once) =>
      project.post(at((at_once % 2 ? ann : ben).id, "consents"), record),
    )
    expect(new Set((await Promise.all(writes)).map(({ status }) => status))).toEqual(new Set([201]))
    for (const { id } of [ann, ben]) {
      const chain = await chainOfSubscriber(service, id)
      expect(chain).toHaveLength(12)
      expect(brokenRecord(chain)).toBeUndefined()
    }
  })

  test("shows a record that was changed, removed or swapped", async () => {
    const project = await service.project()
    const { id } = await person(project)
    for (const category of ["a", "b", "c", "d"]) {
      await project.post(at(id, "consents"), { ...record, category })
    }
    const chain = await chainOfSubscriber(service, id)
    expect(brokenRecord(chain)).toBeUndefined()
    const [first, second, third, last] = chain as [Row, Row, Row, Row]
    expect(brokenRecord([first, { ...second, action: "withdrawn" }, third, last])).toBe(second.id)
    expect(brokenRecord([first, third, last])).toBe(third.id)
    expect(brokenRecord([first, third, second, last])).toBe(third.id)
    const swapped = { ...second, ...{ id: third.id, hash: third.hash } }
    expect(brokenRecord([first, swapped, { ...third, id: second.id }, last])).toBe(third.id)
    expect(brokenRecord([second, third, last])).toBe(second.id)
  })
})

type Row = Awaited<ReturnType<typeof chainOfSubscriber>>[number]
