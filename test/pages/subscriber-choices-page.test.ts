import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { brokenRecord } from "../../src/consents/consents"
import { accept } from "../../src/messages/pipeline"
import { subscribers } from "../../src/subscribers/tables"
import { addCategory, addSubscriber, chainOfSubscriber } from "../harness/audience"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { linkTo, unsubscribedIn } from "../harness/unsubscribed"
import { letter } from "../messages/letters"

const service = await sharedService()
const { store, anybody } = service

const FORM = { "content-type": "application/x-www-form-urlencoded" }
const ANN = "ann@example.test"

const post = (path: string, fields: Record<string, string>) =>
  anybody.call("POST", path, { body: new URLSearchParams(fields).toString(), headers: FORM })

/** The boxes of the page, each with its label and whether it is checked. */
async function boxesOf(token: string) {
  const { text } = await anybody.call("GET", `/p/${token}`)
  const boxes = text.matchAll(/name="get ([^"]*)" value="1"( checked)?> (?:<bdi>)?([^<]*)/g)
  return [...boxes].map(([, name, checked, label]) => `${checked ? "x" : "-"} ${name} ${label}`)
}

/** The form as a browser sends it, with these boxes checked. */
async function save(token: string, wanted: string[], action = "save") {
  const { text } = await anybody.call("GET", `/p/${token}`)
  const seen = [...text.matchAll(/name="(seen [^"]*)"/g)].map(([, name = ""]) => [name, "1"])
  const chosen = wanted.map((name) => [`get ${name}`, "1"])
  return post(`/p/${token}`, { ...Object.fromEntries([...seen, ...chosen]), action })
}

/** A project with categories and topics, and a subscriber with the address of a link. */
async function followed(fields: object = {}) {
  const project = await service.project()
  const category = (name: string, more: Parameters<typeof addCategory>[3] = {}) =>
    addCategory(service, project, name, more)
  await category("News")
  await category("Offers", { default: "off" })
  await category("Inner", { visibility: "private" })
  await category("Codes", { critical: true })
  await category("Rings", { channels: ["push"] })
  await project.post("/v1/topics", { name: "Trains", key: "trains", visibility: "public" })
  await project.post("/v1/topics", { name: "Planes", key: "planes", visibility: "public" })
  await project.post("/v1/topics", { name: "Hidden", key: "hidden" })
  const person = await addSubscriber(project, { email: ANN, ...fields })
  const joined = { subscriber_ids: [person.id] }
  for (const key of ["trains", "hidden"])
    await project.post(`/v1/topics/${key}/subscribers`, joined)
  const token = await linkTo(service, project, "news")
  return { project, person, token }
}

/** A message of a channel, past its API: so the project uses the channel. */
async function sendIn({ account_id, project_id }: TestProject, channel: "push" | "sms") {
  const message = letter({ account_id, project_id, channel, address: `a device of ${channel}` })
  await store.tx((tx) => accept(tx, [message]))
}

const preferencesOf = async (id: string) => {
  const [row] = await store.read.select().from(subscribers).where(eq(subscribers.id, id))
  return row?.preferences
}

const endedBy = async (project: TestProject, id: string) =>
  (await project.get(`/v1/subscribers/${id}/unsubscribes`)).body.data.map(
    ({ channel, category, reason }: Record<string, string>) =>
      [channel, category, reason].join(" "),
  )

describe("the preference page of a subscriber", () => {
  test("ends and allows more kinds than one transaction takes, for all that share the address", async () => {
    const project = await service.project()
    const keys = Array.from({ length: 70 }, (_, at) => `kind${at}`)
    for (const name of keys) await addCategory(service, project, name)
    const people = [
      await addSubscriber(project, { email: ANN }),
      await addSubscriber(project, { email: ANN }),
    ]
    const token = await linkTo(service, project, "kind0")
    await save(token, [], "none")
    for (const { id } of people) {
      const chain = await chainOfSubscriber(service, id)
      expect(chain).toHaveLength(keys.length + 1)
      expect(brokenRecord(chain)).toBeUndefined()
    }
    expect((await boxesOf(token)).filter((box) => box.startsWith("x"))).toEqual([])
    await save(token, ["email", ...keys.map((key) => `category:${key}`)])
    expect((await boxesOf(token)).filter((box) => box.startsWith("-"))).toEqual([])
  })

  test("shows email as a whole, public categories and the public topics that it follows", async () => {
    const { token } = await followed()
    expect(await boxesOf(token)).toEqual([
      "x email Emails from this sender",
      "x category:news News",
      "- category:offers Offers",
      "x topic:trains Trains",
    ])
  })

  test("takes choices back and forth, so that they hold for another address, too", async () => {
    const { project, person, token } = await followed()
    const { id } = person
    await save(token, ["email", "category:offers"])
    expect(await boxesOf(token)).toEqual([
      "x email Emails from this sender",
      "- category:news News",
      "x category:offers Offers",
      "- topic:trains Trains",
    ])
    expect(await endedBy(project, id)).toEqual(["email news page"])
    expect(await preferencesOf(id)).toEqual({
      email: { categories: { offers: true } },
      topics: { trains: { email: false } },
    })
    expect((await unsubscribedIn(service, project)).ended).toEqual([
      "ann@example.test unsubscribe page category news",
      "ann@example.test unsubscribe page topic trains",
    ])
    await save(token, ["email", "category:news", "topic:trains"])
    expect(await boxesOf(token)).toEqual([
      "x email Emails from this sender",
      "x category:news News",
      "- category:offers Offers",
      "x topic:trains Trains",
    ])
    expect((await unsubscribedIn(service, project)).ended).toEqual([
      "ann@example.test unsubscribe page category offers",
    ])
    const chain = await chainOfSubscriber(service, id)
    expect(
      chain.map(({ action, scope_key, source }) => `${action} ${scope_key} ${source}`),
    ).toEqual([
      ...["withdrawn news page", "granted offers page", "withdrawn trains page"],
      ...["granted news page", "withdrawn offers page", "granted trains page"],
    ])
    expect(new Set(chain.map(({ ip_hash }) => ip_hash?.length))).toEqual(new Set([64]))
  })

  test("ends and allows email as a whole", async () => {
    const { project, person, token } = await followed()
    const { id, external_id } = person
    await save(token, ["category:news", "topic:trains"])
    expect((await boxesOf(token))[0]).toBe("- email Emails from this sender")
    expect((await boxesOf(token))[1]).toBe("x category:news News")
    expect(await endedBy(project, id)).toEqual(["email  page"])
    const { events } = await unsubscribedIn(service, project)
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      [
        "subscriber.unsubscribed",
        {
          ...{ subscriber_id: id, external_id, channel: "email", reason: "page" },
          ...{ scope: { type: "project", key: null }, timestamp: expect.any(String) },
        },
      ],
    ])
    await save(token, ["email", "category:news", "topic:trains"])
    expect((await boxesOf(token))[0]).toBe("x email Emails from this sender")
    expect(await endedBy(project, id)).toEqual([])
  })

  test("its second button ends everything", async () => {
    const { token } = await followed()
    await save(token, ["email", "category:news"], "none")
    expect((await boxesOf(token)).every((box) => box.startsWith("- "))).toBe(true)
  })

  test("shows and changes each other channel that the project uses, for the subscriber alone", async () => {
    const { project, person, token } = await followed({ phone: "+4915112345678" })
    const { id } = person
    for (const channel of ["push", "sms"] as const) await sendIn(project, channel)
    const boxes = await boxesOf(token)
    expect(boxes.slice(4)).toEqual([
      "x push Push notifications from this sender",
      "x push category:news News",
      "- push category:offers Offers",
      "x push category:rings Rings",
      "x push topic:trains Trains",
      "x sms Text messages from this sender",
      "x sms category:news News",
      "- sms category:offers Offers",
      "x sms topic:trains Trains",
    ])
    const email = ["email", "category:news", "topic:trains"]
    const push = ["push", "push category:offers", "push category:rings"]
    await save(token, [...email, ...push, "sms category:news", "sms topic:trains"])
    expect((await endedBy(project, id)).sort()).toEqual(["push news page", "sms  page"])
    expect(await preferencesOf(id)).toEqual({
      push: { categories: { offers: true } },
      topics: { trains: { push: false } },
    })
    const { ended, events } = await unsubscribedIn(service, project)
    expect(ended).toEqual([])
    const told = ["push news", "push offers", "push trains", "sms null"]
    const chain = await chainOfSubscriber(service, id)
    expect(brokenRecord(chain)).toBeUndefined()
    expect(chain.map(({ channel, scope_key }) => `${channel} ${scope_key}`).sort()).toEqual(told)
    expect(events.map(({ data }) => data.channel).sort()).toEqual(["push", "push", "push", "sms"])
    const { sms } = (await project.get(`/v1/subscribers/${id}/reachability?category=news`)).body
      .data
    expect(sms).toMatchObject({ allowed: false, reason: "unsubscribed" })
    await save(token, [...email, ...push, "push category:news", "push topic:trains", "sms"])
    expect((await boxesOf(token)).slice(4, 10)).toEqual([
      "x push Push notifications from this sender",
      "x push category:news News",
      "x push category:offers Offers",
      "x push category:rings Rings",
      "x push topic:trains Trains",
      "x sms Text messages from this sender",
    ])
    expect((await endedBy(project, id)).sort()).toEqual(["sms news page"])
    await save(token, [], "none")
    expect((await boxesOf(token)).every((box) => box.startsWith("- "))).toBe(true)
  })

  test("of an address without a subscriber shows email only", async () => {
    const { project } = await followed()
    await sendIn(project, "push")
    const token = await linkTo(service, project, "news", { address: "nobody@example.test" })
    expect(await boxesOf(token)).toEqual(["x category:news News"])
  })

  test("without a change records nothing", async () => {
    const { project, person, token } = await followed()
    await save(token, ["email", "category:news", "topic:trains"])
    expect(await chainOfSubscriber(service, person.id)).toEqual([])
    expect((await unsubscribedIn(service, project)).events).toEqual([])
    expect(await preferencesOf(person.id)).toBeNull()
  })
})

describe("one click", () => {
  test("ends the category of the subscriber, and its events name it", async () => {
    const { project, person, token } = await followed()
    const ended = await post(`/u/${token}`, { "List-Unsubscribe": "One-Click" })
    expect([ended.status, ended.text]).toEqual([200, ""])
    await post(`/u/${token}`, { "List-Unsubscribe": "One-Click" })
    expect(await endedBy(project, person.id)).toEqual(["email news one_click"])
    const chain = await chainOfSubscriber(service, person.id)
    expect(chain).toMatchObject([{ action: "withdrawn", source: "one_click", scope_key: "news" }])
    const { events, consents } = await unsubscribedIn(service, project)
    expect(consents).toHaveLength(1)
    expect(events.map(({ type }) => type).sort()).toEqual([
      "subscriber.unsubscribed",
      "suppression.created",
    ])
    expect(events.find(({ type }) => type.startsWith("subscriber"))?.data).toMatchObject({
      ...{ subscriber_id: person.id, external_id: person.external_id, reason: "one_click" },
      scope: { type: "category", key: "news" },
    })
  })

  test("is undone by the API, with its suppression", async () => {
    const { project, person, token } = await followed()
    await post(`/u/${token}`, { "List-Unsubscribe": "One-Click" })
    const back = await project.post(`/v1/subscribers/${person.id}/resubscribe`, {
      ...{ channel: "email", category: "news" },
    })
    expect(back.body.data).toEqual({ removed: 2 })
    expect((await boxesOf(token))[1]).toBe("x category:news News")
  })

  test("is about every subscriber with the address, and about nobody of another project", async () => {
    const { project, person, token } = await followed()
    const twin = await addSubscriber(project, { email: "ANN@example.test" })
    const stranger = await followed()
    await post(`/u/${token}`, { "List-Unsubscribe": "One-Click" })
    for (const { id } of [person, twin]) {
      expect(await endedBy(project, id)).toEqual(["email news one_click"])
      expect(await chainOfSubscriber(service, id)).toHaveLength(1)
    }
    expect(await chainOfSubscriber(service, stranger.person.id)).toEqual([])
  })

  test("shows the name of the category on the page", async () => {
    const { token } = await followed()
    expect((await anybody.call("GET", `/u/${token}`)).text).toContain("<bdi>News</bdi>")
  })
})
