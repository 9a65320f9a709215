import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { brokenRecord, MOST_MOVED, recordConsent } from "../../src/consents/consents"
import { addUnsubscribes, MOST_UNSUBSCRIBES } from "../../src/consents/subscriber-choices"
import { consents } from "../../src/consents/tables"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { messages } from "../../src/messages/tables"
import { MOST_MERGED, mergedInto } from "../../src/subscribers/merged-subscribers"
import { mergedSubscribers, subscribers } from "../../src/subscribers/tables"
import { addSubscriber, chainOfSubscriber } from "../harness/audience"
import { complaints, refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

const EMAIL = { channel: "email" as const }

const path = (id: string, verb = "") => `/v1/subscribers/${id}${verb}`

const merge = (project: TestProject, into: string, from: string) =>
  project.post(path(into, "/merge"), { from_id: from })

const prefer = (id: string, preferences: object) =>
  store.tx((tx) => tx.update(subscribers).set({ preferences }).where(eq(subscribers.id, id)))

describe("merge", () => {
  test("moves memberships, unsubscribes, consents and messages, and removes the other one", async () => {
    const project = await service.project()
    const into = await addSubscriber(project, { email: "ann@mailbox.test", tags: ["a"] })
    const from = await addSubscriber(project, {
      ...{ email: "old@mailbox.test", phone: "+4915112345678", name: "Ann" },
      ...{ tags: ["b"], metadata: { plan: "pro" } },
    })
    for (const key of ["both", "one"]) await project.post("/v1/topics", { name: key, key })
    await project.post("/v1/topics/both/subscribers", { subscriber_ids: [into.id, from.id] })
    await project.post("/v1/topics/one/subscribers", { subscriber_ids: [from.id] })
    await project.post(path(into.id, "/unsubscribe"), { channel: "email", category: "news" })
    await project.post(path(from.id, "/unsubscribe"), { channel: "email", category: "news" })
    await project.post(path(from.id, "/unsubscribe"), { channel: "sms" })
    const sent = await project.post("/v1/emails", mail({ to: "old@mailbox.test" }))
    await store.tx((tx) =>
      tx.update(messages).set({ subscriber_id: from.id }).where(eq(messages.id, sent.body.id)),
    )
    const before = await chainOfSubscriber(service, from.id)

    const answer = await merge(project, into.external_id, from.external_id)
    expect([answer.status, answer.body.data]).toMatchObject([
      200,
      {
        ...{ id: into.id, email: "ann@mailbox.test", phone: "+4915112345678", name: "Ann" },
        ...{ tags: ["a", "b"], metadata: { plan: "pro" } },
      },
    ])
    expect(refusal(await project.get(path(from.id)))).toEqual([404, "subscriber_not_found"])
    expect((await project.get("/v1/subscribers")).body.meta.total).toBe(1)
    expect((await project.get("/v1/subscribers?search=old")).body.data).toEqual([])

    for (const key of ["both", "one"]) {
      const members = (await project.get(`/v1/topics/${key}/subscribers`)).body.data
      expect(members).toMatchObject([{ subscriber_id: into.id }])
    }
    const counts = (await project.get("/v1/topics")).body.data
    expect(counts.map((one: { subscriber_count: number }) => one.subscriber_count)).toEqual([1, 1])
    const ended = (await project.get(path(into.id, "/unsubscribes"))).body.data
    expect(
      ended.map(({ channel, category }: Record<string, unknown>) => [channel, category]).sort(),
    ).toEqual([
      ["email", "news"],
      ["sms", null],
    ])
    const [message] = await store.read.select().from(messages).where(eq(messages.id, sent.body.id))
    expect(message?.subscriber_id).toBe(into.id)

    const chain = await chainOfSubscriber(service, into.id)
    expect(brokenRecord(chain)).toBeUndefined()
    expect(chain).toHaveLength(3)
    expect(await chainOfSubscriber(service, from.id)).toEqual([])
    for (const [at, { id, hash, created_at, channel }] of before.entries()) {
      expect(chain[at + 1]).toMatchObject({ created_at, channel, action: "withdrawn" })
      expect(chain[at + 1]?.proof).toContain(`record ${id} of subscriber ${from.id}, hash ${hash}`)
    }
  })

  test("does not hide that a record of the removed chain is missing", async () => {
    const project = await service.project()
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const add = (id: string) =>
      project.post(path(id, "/consents"), { ...EMAIL, action: "granted", source: "import" })
    for (const { id } of [into, from, from, from]) await add(id)
    const [, second, third] = await chainOfSubscriber(service, from.id)
    await store.tx((tx) => tx.delete(consents).where(eq(consents.id, second?.id ?? "")))
    await merge(project, into.id, from.id)
    await add(into.id)
    const chain = await chainOfSubscriber(service, into.id)
    expect(chain.map(({ number }) => number)).toEqual([1, 3, 4, 5])
    expect(chain[2]?.proof).toContain(`record ${third?.id} of`)
    expect(brokenRecord(chain)).toBe(chain[1]?.id)
  })

  test("keeps the stricter preference and status", async () => {
    const project = await service.project()
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    await prefer(into.id, { email: { categories: { news: true, offers: true } } })
    await prefer(from.id, { email: { categories: { news: false, offers: true } } })
    await project.call("PATCH", path(from.id), { body: { status: "unsubscribed" } })
    expect((await merge(project, into.id, from.id)).body.data.status).toBe("unsubscribed")
    const [row] = await store.read.select().from(subscribers).where(eq(subscribers.id, into.id))
    expect(row?.preferences).toEqual({ email: { categories: { news: false, offers: true } } })
  })

  test("of a subscriber with itself is a conflict, by whichever name", async () => {
    const project = await service.project()
    const { id, external_id } = await addSubscriber(project)
    for (const from of [id, external_id]) {
      const answer = await merge(project, id, from)
      expect(refusal(answer)).toEqual([409, "conflict"])
      expect(answer.body.error.details).toEqual({ reason: "same_subscriber", id })
    }
    expect((await project.get(path(id))).status).toBe(200)
  })

  test("in a circle ends with one subscriber, also at the same time", async () => {
    const project = await service.project()
    const all = [
      await addSubscriber(project),
      await addSubscriber(project),
      await addSubscriber(project),
    ]
    const [a, b, c] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]]
    for (const { id } of all) await project.post(path(id, "/unsubscribe"), { channel: "email" })
    const answers = await Promise.all([
      merge(project, a.id, b.id),
      merge(project, b.id, c.id),
      merge(project, c.id, a.id),
    ])
    expect(answers.every(({ status }) => status === 200 || status === 404)).toBe(true)
    const done = answers.filter(({ status }) => status === 200).length
    const left = (await project.get("/v1/subscribers")).body
    expect([left.data.length, left.meta.total]).toEqual([3 - done, 3 - done])
    const chains = await Promise.all(all.map(({ id }) => chainOfSubscriber(service, id)))
    for (const chain of chains) expect(brokenRecord(chain)).toBeUndefined()
    expect(chains.flat()).toHaveLength(3)
    const back = await merge(project, b.id, a.id)
    expect([200, 404]).toContain(back.status)
  })

  test("takes in a limited number of subscribers, and moves nothing beyond", async () => {
    const project = await service.project()
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const names = Array.from({ length: MOST_MERGED }, (_, at) => ({
      ...{ id: newId(), project_id: project.project_id, external_id: `old-${at}` },
      ...{ subscriber_id: at % 2 === 0 ? into.id : from.id },
      ...{ email_key: null, phone: null, created_at: now() },
    }))
    await store.tx((tx) => tx.insert(mergedSubscribers).values(names))
    const sent = await project.post("/v1/emails", mail({ subscriber_id: from.id }))
    const answer = await merge(project, into.id, from.id)
    expect(refusal(answer)).toEqual([409, "conflict"])
    expect(answer.body.error.details).toEqual({ reason: "too_many", limit: MOST_MERGED })
    const [message] = await store.read.select().from(messages).where(eq(messages.id, sent.body.id))
    expect(message?.subscriber_id).toBe(from.id)
    const { id = "" } = names[0] ?? {}
    await store.tx((tx) => tx.delete(mergedSubscribers).where(eq(mergedSubscribers.id, id)))
    expect((await merge(project, into.id, from.id)).status).toBe(200)
    expect(await mergedInto(store.read, into.id)).toHaveLength(MOST_MERGED)
    await project.call("DELETE", path(into.id))
    expect(await mergedInto(store.read, into.id)).toEqual([])
  })

  test("that would have too many unsubscribes or consents is refused, and moves nothing", async () => {
    const project = await service.project()
    const { project_id } = project
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const ended = (count: number, name: string) =>
      Array.from({ length: count }, (_, at) => ({ ...EMAIL, category: `${name}${at}` }))
    const end = (id: string, choices: ReturnType<typeof ended>) =>
      store.tx((tx) => addUnsubscribes(tx, { id, project_id }, choices))
    await end(into.id, ended(MOST_UNSUBSCRIBES, "a"))
    await end(from.id, [...ended(10, "a"), ...ended(1, "b")])
    const refused = await merge(project, into.id, from.id)
    const details = { reason: "too_many", limit: MOST_UNSUBSCRIBES }
    expect([refused.status, refused.body.error.details]).toEqual([409, details])
    const again = { channel: "email", category: "b0" }
    await project.post(path(from.id, "/resubscribe"), again)

    const granted = { ...EMAIL, action: "granted", source: "import" }
    await project.post(path(from.id, "/consents"), granted)
    const [last] = (await chainOfSubscriber(service, from.id)).slice(-1)
    if (!last) throw new Error("there is no consent")
    const beyond = (number: number) =>
      store.tx((tx) => tx.update(consents).set({ number }).where(eq(consents.id, last.id)))
    await beyond(MOST_MOVED + 1)
    const longer = await merge(project, into.id, from.id)
    const limit = { reason: "too_many", limit: MOST_MOVED }
    expect([longer.status, longer.body.error.details]).toEqual([409, limit])
    await beyond(last.number)
    expect((await merge(project, into.id, from.id)).status).toBe(200)
  })

  test("moves a chain of a thousand consents as it was", async () => {
    const project = await service.project()
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const { project_id } = project
    const said = { ...EMAIL, scope: null, action: "granted" as const, source: "import" as const }
    await store.tx(async (tx) => {
      for (let at = 0; at < 1000; at++) {
        const proof = `form ${at}`
        const record = { ...said, project_id, subscriber_id: from.id, proof, ip: null }
        await recordConsent(tx, service.parts.secrets, record)
      }
    })
    await project.post(path(into.id, "/unsubscribe"), { channel: "sms" })
    expect((await merge(project, into.id, from.id)).status).toBe(200)
    const chain = await chainOfSubscriber(service, into.id)
    expect(brokenRecord(chain)).toBeUndefined()
    expect(chain).toHaveLength(1001)
    for (const [at, { proof }] of chain.slice(1).entries())
      expect(proof).toStartWith(`form ${at} (`)
  })

  test("needs both in the project", async () => {
    const project = await service.project()
    const { id } = await addSubscriber(project)
    const theirs = await addSubscriber(await service.project())
    for (const other of [theirs.id, NOBODY, "nobody"]) {
      expect(refusal(await merge(project, id, other))).toEqual([404, "subscriber_not_found"])
      expect(refusal(await merge(project, other, id))).toEqual([404, "subscriber_not_found"])
    }
    expect(complaints(await project.post(path(id, "/merge"), {}))).toEqual(["from_id"])
  })
})
