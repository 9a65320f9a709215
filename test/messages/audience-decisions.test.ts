import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { millis, now } from "../../src/core/time"
import { PROJECT_DEFAULTS } from "../../src/identity/caller"
import type { ProjectSettings } from "../../src/identity/tables"
import { OVER } from "../../src/jobs/work-item"
import { decideAll, lockFor, type MessageQuery } from "../../src/messages/audience-decisions"
import { messages } from "../../src/messages/tables"
import { audienceOf } from "../../src/subscribers/audience"
import {
  categories,
  mergedSubscribers,
  subscribers,
  unsubscribes,
} from "../../src/subscribers/tables"
import { suppress } from "../../src/suppressions/suppressions"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const clock = movableClock()

type Subscriber = typeof subscribers.$inferInsert
type MessageRow = typeof messages.$inferInsert

/** A project with one subscriber, and what can be asked about messages to it. */
async function audience(settings: Partial<ProjectSettings> = {}, fields: Partial<Subscriber> = {}) {
  const { account_id, project_id } = await service.project()
  const id = await addSubscriber(project_id, fields)
  const project = { id: project_id, settings: { ...PROJECT_DEFAULTS, ...settings } }

  async function plain(fields: Partial<MessageQuery> = {}): Promise<MessageQuery> {
    const subscriber = (await audienceOf(store.read, project_id, [id])).get(id) ?? null
    return {
      subscriber,
      address: subscriber?.email_key ?? null,
      category: null,
      topic: null,
      channel: "email",
      stream: "transactional",
      at: millis(),
      ...fields,
    }
  }

  return {
    account_id,
    project_id,
    id,
    plain,
    /** The rows that decided. */
    async ask(...list: Partial<MessageQuery>[]) {
      const asked = await Promise.all(list.map(plain))
      const decisions = await store.tx((tx) => decideAll(tx, project, asked))
      return decisions.map(({ row, reason }) => `${row} ${reason ?? "yes"}`)
    },
    send: (row: Partial<MessageRow> = {}) =>
      addMessage({ account_id, project_id, subscriber_id: id, ...row }),
  }
}

async function addSubscriber(project_id: string, fields: Partial<Subscriber>): Promise<string> {
  const id = newId()
  await store.tx((tx) =>
    tx.insert(subscribers).values({
      ...{ id, project_id, external_id: id, email: "ann@example.test", status: "active" },
      ...{
        email_key: "ann@example.test",
        metadata: {},
        tags: [],
        preferences: null,
        search_key: "",
      },
      ...{ created_at: now(), updated_at: now() },
      ...fields,
    }),
  )
  return id
}

async function addMessage(row: OwnedMessage): Promise<string> {
  const fields = messageRow(row)
  await store.tx((tx) => tx.insert(messages).values(fields))
  return fields.id
}

type OwnedMessage = Partial<MessageRow> & Pick<MessageRow, "account_id" | "project_id">

const messageRow = (row: OwnedMessage): MessageRow => ({
  ...{ id: newId(), channel: "email", status: "sent", address: "ann@example.test" },
  ...{ recipients: [], stream: "transactional", source: "api", tags: [], metadata: {} },
  ...{ sandbox: false, priority: 0, state: OVER, run_at: now(), attempt: 1, category: null },
  ...{ created_at: now(), updated_at: now() },
  ...row,
})

const CAP = { frequency_cap: { count: 2, per_seconds: 60 } }

test("a subscriber is loaded with what was unsubscribed from, and only in its project", async () => {
  const one = await audience()
  const other = await audience()
  await store.tx((tx) =>
    tx.insert(unsubscribes).values({
      ...{ id: newId(), project_id: one.project_id, subscriber_id: one.id, channel: "email" },
      ...{ category: "", reason: null, created_at: now() },
    }),
  )
  const found = await audienceOf(store.read, one.project_id, [one.id, other.id, newId(), one.id])
  expect([...found.keys()]).toEqual([one.id])
  expect(found.get(one.id)?.unsubscribes).toMatchObject([{ channel: "email", category: "" }])
  expect(await one.ask({}, { channel: "sms", address: null })).toEqual(["5 unsubscribed", "9 yes"])
  expect(await other.ask({})).toEqual(["9 yes"])
})

test("suppressions are asked by channel, category and topic", async () => {
  const { project_id, ask } = await audience({}, { phone: "+4915112345678" })
  const add = (fields: object) =>
    store.tx((tx) =>
      suppress(tx, project_id, {
        ...{ channel: "email", address: "ann@example.test", reason: "manual", origin: "api" },
        ...fields,
      }),
    )
  const topic = { key: "releases", default: "on" } as const
  const sms = { channel: "sms", address: "+4915112345678" } as const
  await add({ scope: { type: "category", key: "news" } })
  await add({ scope: { type: "topic", key: "releases" } })
  await add({ scope: { type: "broadcast", key: null } })
  const suppressed = "2 suppressed"
  expect(await ask({}, { category: "news" }, { category: "offers" }, { topic })).toEqual([
    ...["9 yes", suppressed, "9 yes", suppressed],
  ])
  expect(
    await ask({ stream: "broadcast" }, { stream: "broadcast", topic: { ...topic, key: "b" } }),
  ).toEqual([suppressed, "9 yes"])
  expect(await ask({ category: "news", address: null }, sms)).toEqual(["9 yes", "9 yes"])
  await add({ channel: "sms", address: "+4915112345678" })
  expect(await ask({}, sms, { subscriber: null, ...sms })).toEqual([
    "9 yes",
    suppressed,
    suppressed,
  ])
})

test("a category is that of the project, and any name means one where there is none", async () => {
  const { project_id, ask } = await audience()
  expect(await ask({ category: "news" })).toEqual(["9 yes"])
  await store.tx((tx) =>
    tx.insert(categories).values({
      ...{
        id: newId(),
        project_id,
        slug: "news",
        name: "News",
        description: null,
        critical: false,
      },
      ...{ default: "off", visibility: "public", channels: ["email"] },
      ...{ created_at: now(), updated_at: now() },
    }),
  )
  expect(await ask({ category: "news" }, { category: "news", channel: "push" })).toEqual([
    "8 default",
    "3 category_channels",
  ])
})

test("the cap counts what was accepted of the channel and category within its time", async () => {
  const { ask, send } = await audience(CAP)
  await send()
  await send({ category: "news" })
  await send({ channel: "sms" })
  expect(await ask({})).toEqual(["9 yes"])
  await send()
  expect(await ask({}, { category: "news" }, { channel: "sms", address: null })).toEqual([
    "10 frequency_cap",
    "9 yes",
    "9 yes",
  ])
  expect(await ask({ stream: "auth" }, { subscriber: null })).toEqual(["9 yes", "9 yes"])
  clock.advance({ seconds: 61 })
  expect(await ask({})).toEqual(["9 yes"])
})

test("what was left out, cancelled or a code does not count", async () => {
  const { ask, send } = await audience(CAP)
  for (const status_reason of ["preference", "frequency_cap", "cancelled"]) {
    await send({ status: "failed", status_reason })
    await send({ status: "failed", status_reason })
  }
  await send({ stream: "auth" })
  await send({ stream: "auth" })
  await send({ status: "failed", status_reason: "bounced" })
  expect(await ask({})).toEqual(["9 yes"])
  await send({ status: "queued" })
  expect(await ask({})).toEqual(["10 frequency_cap"])
})

test("messages of one call count each other, and another subscriber's do not", async () => {
  const one = await audience(CAP)
  const other = await addSubscriber(one.project_id, { email: null, email_key: null })
  const subscriber = (await audienceOf(store.read, one.project_id, [other])).get(other) ?? null
  await one.send()
  expect(await one.ask({}, { subscriber }, {}, { category: "news" }, { subscriber })).toEqual([
    ...["9 yes", "9 yes", "10 frequency_cap", "9 yes", "9 yes"],
  ])
})

test("as a message leaves only those before it count", async () => {
  const { ask, send } = await audience(CAP)
  const first = await send()
  const second = await send()
  const third = await send()
  expect(await ask({ message_id: first }, { message_id: second }, { message_id: third })).toEqual([
    ...["9 yes", "9 yes", "10 frequency_cap"],
  ])
})

test("the cap counts the messages that a merge has yet to give to the subscriber", async () => {
  const { ask, send, id, project_id } = await audience(CAP)
  const former = newId()
  const names = { external_id: "former", email_key: null, phone: null, created_at: now() }
  await store.tx((tx) =>
    tx.insert(mergedSubscribers).values({ ...names, id: former, project_id, subscriber_id: id }),
  )
  await send()
  expect(await ask({})).toEqual(["9 yes"])
  await send({ subscriber_id: former })
  const last = await send({ subscriber_id: former })
  expect(await ask({})).toEqual(["10 frequency_cap"])
  expect(await ask({ message_id: last })).toEqual(["10 frequency_cap"])
  expect(await ask({ channel: "sms" })).toEqual(["9 yes"])
})

test("two accepts at once do not pass the cap together", async () => {
  const { account_id, project_id, id, plain, send } = await audience(CAP)
  await send()
  const project = { id: project_id, settings: { ...PROJECT_DEFAULTS, ...CAP } }
  const asked = await plain()
  const accepted = await Promise.all(
    [1, 2, 3].map(() =>
      store.tx(async (tx) => {
        await audienceOf(tx, project_id, [id], lockFor(project.settings))
        const [decision] = await decideAll(tx, project, [asked])
        if (!decision?.is_allowed) return decision?.row
        const row = messageRow({ account_id, project_id, subscriber_id: id })
        await tx.insert(messages).values(row)
        return decision.row
      }),
    ),
  )
  expect(accepted.sort()).toEqual([10, 10, 9])
})
