import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { moveUsers } from "../auth/linked-subscriber"
import { settings } from "../core/config"
import { Problems } from "../core/errors"
import { giveDevices, removeDevicesOf } from "../devices/device-rows"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce, refuseAnswered } from "../http/idempotency"
import { type ListParts, listPage } from "../http/page"
import type { RateLimits } from "../http/rate-limits"
import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import * as removedInbox from "../inbox/removed-inbox"
import { comparable, notOneAddress, parseMailbox } from "../lib/address"
import { readPhone } from "../lib/phone"
import {
  shownSubscriber as shown,
  shownSubscribers as shownAll,
} from "../operations/shown-subscribers"
import type { Reader, Tx } from "../store/store"
import { leaveAll } from "../topics/memberships"
import { topicMembers, topics } from "../topics/tables"
import { readBulk, saveAll } from "./bulk"
import {
  externalForUpdate,
  find,
  findExternal,
  findForUpdate,
  noSubscriber,
  type SubscriberRow,
} from "./find-subscriber"
import * as schemas from "./schemas"
import { readSearch } from "./search-words"
import { checkNamed, readChanges, readNew, readUpsert } from "./subscriber-input"
import { type FollowerSource, list, type SubscriberFilter } from "./subscriber-list"
import * as subscribers from "./subscribers"

const ALL = "/v1/subscribers"
const ONE = `${ALL}/{subscriber_id}` as const
const EXTERNAL = `${ALL}/external/{external_id}` as const

const by = <const Path extends string>(method: Method, path: Path, status = 200) =>
  projectRow(method, path, method === "GET" ? "subscribers:read" : "subscribers:write", status)

interface SubscriberParts extends ListParts {
  limits: RateLimits
}

export const subscriberRoutes = (parts: SubscriberParts): AnyRoute[] => [
  ...listRoutes(parts),
  bulkRoute(parts),
  ...externalRoutes(parts),
  ...oneRoutes(parts),
]

type SubscriberQuery = Static<typeof schemas.subscriberQuery>

const listRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List subscribers, newest first",
    description:
      "Filters can be combined. `search` finds words by their first letters. `total` is null if a search has more than 1,000 matches, or if several filters have more than 100.",
    query: schemas.subscriberQuery,
    response: schemas.Subscriber,
    errors: ["invalid_email", "invalid_phone_number"],
    handle: async (call) => {
      const filter = await filterOf(store.read, call)
      const found = await list(store.read, call.project_id, filter)
      return listPage(call, cursors, {
        ...found,
        list: async (window) => {
          const page = await found.list(window)
          return { ...page, rows: await shownAll(store.read, page.rows) }
        },
      })
    },
  }),
  route({
    ...by("POST", ALL, 201),
    summary: "Add a subscriber",
    description: "409 means that the project has a subscriber with this `external_id` already.",
    body: schemas.NewSubscriber,
    example: { external_id: "user-42", email: "ann@example.com", name: "Ann Example" },
    read: readNew,
    response: schemas.Subscriber,
    errors: ["duplicate_subscriber", "invalid_email", "invalid_phone_number"],
    idempotent: true,
    handle: ({ project_id, body, claim }) =>
      answerOnce(store, claim, async (tx) =>
        shown(tx, await subscribers.create(tx, project_id, body)),
      ),
  }),
]

const BULK_LIMIT_BYTES = 8_388_608
const BULK_KEYS = 50_000

const bulkRoute = ({ store, limits }: SubscriberParts): AnyRoute =>
  route({
    ...by("POST", `${ALL}/bulk`),
    summary: "Add or change up to 1,000 subscribers",
    description:
      "`failed` names those that cannot be read. `status` never becomes weaker here. Each project may call it 10 times a minute, unless the instance sets another number.",
    body: schemas.BulkSubscribers,
    example: { subscribers: [{ external_id: "user-42", email: "ann@example.com" }] },
    readRaw: readBulk,
    response: schemas.BulkSaved,
    limit: BULK_LIMIT_BYTES,
    most_keys: BULK_KEYS,
    idempotent: true,
    handle: async ({ project_id, body, claim }) => {
      await refuseAnswered(store.read, claim)
      const most = settings()["subscribers.bulk_per_minute"]
      await limits.take(`subscriber_bulk:${project_id}`, most, "subscriber_bulk")
      return answerOnce(store, claim, (tx) => saveAll(tx, project_id, body), project_id)
    },
  })

async function filterOf(
  db: Reader,
  { project_id, query }: Call<unknown, SubscriberQuery>,
): Promise<SubscriberFilter> {
  const { search, email, phone, external_id, status, tag, topic } = query
  const problems = new Problems()
  const mailbox = email === undefined ? undefined : parseMailbox(email)
  if (email !== undefined && !mailbox) problems.add("email", "invalid_email", notOneAddress(email))
  if (phone !== undefined) readPhone(phone, "phone", problems)
  problems.throwIfAny()
  const words = readSearch(search)
  const followers = topic === undefined ? undefined : await followersOf(db, project_id, topic)
  const address = mailbox && comparable(mailbox.email)
  return { words, email: address, phone, external_id, status, tag, topic: followers }
}

/** Of a topic that is not there nobody is found. */
async function followersOf(db: Reader, project_id: string, key: string): Promise<FollowerSource> {
  const wanted = and(eq(topics.project_id, project_id), eq(topics.key, key))
  const [topic] = await db.select().from(topics).where(wanted)
  const { id = "", subscriber_count = 0 } = topic ?? {}
  return {
    rows: topicMembers,
    id: topicMembers.subscriber_id,
    where: eq(topicMembers.topic_id, id),
    total: subscriber_count,
  }
}

type OfExternal<Body = unknown> = Call<Body, unknown, { external_id: string }>

const externalRoutes = (parts: ListParts): AnyRoute[] => [
  route({
    ...by("GET", EXTERNAL),
    summary: "Show the subscriber with an external id",
    description: "The id of your own system, encoded for a URL.",
    response: schemas.Subscriber,
    errors: ["subscriber_not_found"],
    handle: async ({ project_id, params }) => ({
      data: await shown(
        parts.store.read,
        await findExternal(parts.store.read, project_id, params.external_id),
      ),
    }),
  }),
  route({
    ...by("PUT", EXTERNAL),
    status: [201, 200],
    summary: "Add a subscriber, or change the one with this external id",
    description: "Fields that are absent stay as they are. 201 means that the subscriber is new.",
    body: schemas.SubscriberUpsert,
    example: { email: "ann@example.com", name: "Ann Example" },
    read: readUpsert,
    response: schemas.Subscriber,
    errors: ["invalid_email", "invalid_phone_number"],
    handle: (call) => put(parts, call),
  }),
  route({
    ...by("DELETE", EXTERNAL),
    summary: "Remove the subscriber with an external id",
    description: REMOVAL,
    response: Deleted,
    errors: ["subscriber_not_found"],
    handle: (call) =>
      remove(parts, call, (tx) => externalForUpdate(tx, call.project_id, call.params.external_id)),
  }),
]

const REMOVAL =
  "Also removes the inbox, devices, memberships of topics, preferences and unsubscribes. Other messages and consents stay under the id of the subscriber. `erase` removes them, also later by this id."

async function put({ store }: ListParts, call: OfExternal<ReturnType<typeof readUpsert>>) {
  const { project_id, params, body } = call
  const { external_id } = params
  const problems = new Problems()
  checkNamed(external_id, body.external_id, problems)
  problems.throwIfAny()
  const { fields } = body
  const { row, is_new } = await store.tx((tx) =>
    subscribers.put(tx, project_id, { external_id, fields }),
  )
  return { data: await shown(store.read, row), status: is_new ? 201 : 200 }
}

async function remove(
  { store }: ListParts,
  { caller }: Call,
  holdRow: (tx: Tx) => Promise<SubscriberRow | undefined>,
) {
  return store.tx(async (tx) => {
    const row = (await holdRow(tx)) ?? noSubscriber()
    await leaveAll(tx, [row.id])
    await removedInbox.plan(tx, row)
    await removeDevicesOf(tx, row.project_id, [row.external_id])
    await moveUsers(tx, row, null)
    await subscribers.remove(tx, caller, row)
    return deleted(row.id)
  })
}

const oneRoutes = (parts: ListParts): AnyRoute[] => [
  route({
    ...by("GET", ONE),
    summary: "Show a subscriber",
    description: "By its id. An external id also works where it is no UUID.",
    response: schemas.Subscriber,
    errors: ["subscriber_not_found"],
    handle: async ({ project_id, params }) => ({
      data: await shown(
        parts.store.read,
        await find(parts.store.read, project_id, params.subscriber_id),
      ),
    }),
  }),
  route({
    ...by("PATCH", ONE),
    summary: "Change a subscriber",
    description:
      "Fields that are absent stay as they are. The keys of `metadata` are added to those that are there, and null removes one.",
    body: schemas.SubscriberPatch,
    example: { name: "Ann Example", metadata: { plan: "pro" } },
    read: readChanges,
    response: schemas.Subscriber,
    errors: [
      "subscriber_not_found",
      "duplicate_subscriber",
      "invalid_email",
      "invalid_phone_number",
    ],
    handle: async ({ project_id, params, body }) => ({
      data: await parts.store.tx(async (tx) => {
        const before = await findForUpdate(tx, project_id, params.subscriber_id)
        const after = await subscribers.patch(tx, before, body)
        if (after.external_id !== before.external_id)
          await giveDevices(tx, project_id, before.external_id, after.external_id)
        return shown(tx, after)
      }),
    }),
  }),
  route({
    ...by("DELETE", ONE),
    summary: "Remove a subscriber",
    description: REMOVAL,
    response: Deleted,
    errors: ["subscriber_not_found"],
    handle: (call) =>
      remove(parts, call, (tx) => findForUpdate(tx, call.project_id, call.params.subscriber_id)),
  }),
]
