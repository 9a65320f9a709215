import { Type as t } from "@sinclair/typebox"
import { chooseOwn, ownPreferences } from "../consents/own-preferences"
import type { Secrets } from "../core/secrets"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage } from "../http/page"
import type { AnyRoute, Call, Method } from "../http/route"
import { route } from "../http/route"
import { count, text } from "../lib/record-fields"
import { namedByMessages } from "../operations/table-lives"
import type { Reader, Store } from "../store/store"
import { noSubscriber } from "../subscribers/find-subscriber"
import {
  EXAMPLE,
  Preferences,
  PreferencesBody,
  readPreferences,
} from "../subscribers/preferences-input"
import * as inbox from "./inbox"
import { list } from "./inbox-list"
import { countsIn, unreadByCategory } from "./ledger"
import { markAll } from "./mark-all"
import * as input from "./own-inbox-input"
import { ownMessages } from "./records"
import { OwnInboxMessage } from "./schemas"
import type { BulkKind, BulkScope, InboxEntry } from "./tables"
import * as tickets from "./tickets"

interface SubscriberInboxParts extends ListParts {
  secrets: Secrets
}

const ALL = "/v1/subscriber-inbox"
const ONE = `${ALL}/{inbox_id}` as const

/** What the rows of a subscriber about their own inbox have in common. */
const own = <const Path extends string>(method: Method, path: Path, status = 200) => ({
  ...{ method, path, scope: "-", status: [status] as [number] },
  callers: ["subscriber", "user"] as AnyRoute["callers"],
  errors: ["subscriber_not_found"] as const,
})

/** The in-app inbox, as its subscriber uses it. */
export const subscriberInboxRoutes = (parts: SubscriberInboxParts): AnyRoute[] => [
  ...listRoutes(parts),
  ...preferenceRoutes(parts),
  ...markRoutes(parts),
  ticketRoute(parts),
  ...oneRoutes(parts),
]

/** Throws 404 `subscriber_not_found` for an end user that is no subscriber. */
function ownerOf({ project_id, caller }: Pick<Call, "project_id" | "caller">) {
  const { subscriber_id, account_id, ip, project_settings } = caller
  const own = { project_id, account_id, ip, project_settings }
  return { ...own, subscriber_id: subscriber_id ?? noSubscriber() }
}

const listRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...own("GET", ALL),
    summary: "List the messages of the inbox, newest first",
    description: "`meta` has the counts of the whole inbox, whatever the filters are.",
    query: input.ownQuery,
    response: OwnInboxMessage,
    meta: input.ownMeta,
    handle: async (call) => {
      const owner = ownerOf(call)
      const { filter, category, tag } = call.query
      const asked = { subscriber_id: owner.subscriber_id, filter, category, tag }
      const page = await listPage(call, cursors, {
        find: (id) => inbox.find(store.read, owner, id),
        list: async (window) => {
          const found = await list(store.read, owner.project_id, asked, window)
          return { ...found, rows: await ownMessages(store.read, found.rows) }
        },
      })
      const { unread, unseen, last_seq } = await countsIn(store.read, owner.subscriber_id)
      const counts = { unread_count: unread, unseen_count: unseen, last_seq }
      return { ...page, meta: { ...page.meta, ...counts } }
    },
  }),
  route({
    ...own("GET", `${ALL}/unread-count`),
    summary: "Count the messages of the inbox",
    description:
      "Archived and snoozed messages count nowhere. The answer costs the same for any inbox.",
    response: input.UnreadCount,
    handle: async (call) => {
      const { subscriber_id } = ownerOf(call)
      const { last_seq: _, ...counts } = await countsIn(store.read, subscriber_id)
      const by_category = await unreadByCategory(store.read, subscriber_id)
      return { data: { ...counts, by_category } }
    },
  }),
]

const preferenceRoutes = ({ store, secrets }: SubscriberInboxParts): AnyRoute[] => [
  route({
    ...own("GET", `${ALL}/preferences`),
    summary: "Show what the subscriber may choose, and what holds now",
    description:
      "Each public category, and each public topic that the subscriber follows, has a value for every channel that it may use.",
    response: Preferences,
    handle: async (call) => ({ data: await ownPreferences(store.read, ownerOf(call)) }),
  }),
  route({
    ...own("PUT", `${ALL}/preferences`),
    summary: "Change what the subscriber chose",
    description:
      "Choices that the body does not name stay, and null forgets one. A category or topic that is not shown to the subscriber is 422. A yes also ends an unsubscribing.",
    body: PreferencesBody,
    example: EXAMPLE,
    read: readPreferences,
    response: Preferences,
    handle: async (call) => {
      const owner = ownerOf(call)
      await store.tx((tx) => chooseOwn(tx, secrets, owner, call.body))
      return { data: await ownPreferences(store.read, owner) }
    },
  }),
]

const markRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...own("POST", `${ALL}/read-all`),
    summary: "Mark all messages as read",
    description: "Open sockets get one frame. What is read was seen, too.",
    body: input.ReadAll,
    example: { category: "billing", before: "2026-11-21T10:30:00Z" },
    read: input.readScope,
    response: input.Updated,
    handle: (call) => marked(store, call, "read"),
  }),
  route({
    ...own("POST", `${ALL}/seen-all`),
    summary: "Mark all messages as seen",
    description: "Open sockets get one frame.",
    body: input.SeenAll,
    example: { before: "2026-11-21T10:30:00Z" },
    read: input.readScope,
    response: input.Updated,
    handle: (call) => marked(store, call, "seen"),
  }),
  route({
    ...own("POST", `${ALL}/archive-all`),
    summary: "Archive all messages that are read",
    description: "Open sockets get one frame. With `read_only: false` it means unread ones, too.",
    body: input.ArchiveAll,
    example: { category: "billing" },
    read: input.readArchived,
    response: input.Updated,
    handle: (call) => marked(store, call, "archived"),
  }),
  route({
    ...own("POST", `${ALL}/mark`),
    summary: "Mark up to 500 messages",
    description: "Ids that the inbox does not have are passed over.",
    body: input.MarkInput,
    example: { ids: ["0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a"], as: "read" },
    response: input.Updated,
    handle: async (call) => {
      const { ids, as } = call.body
      const updated = await store.tx((tx) => inbox.markSome(tx, ownerOf(call), ids, as))
      return { data: { updated } }
    },
  }),
]

async function marked(store: Store, call: Call<BulkScope>, kind: BulkKind) {
  const { project_id, subscriber_id } = ownerOf(call)
  return { data: { updated: await markAll(store, { project_id, subscriber_id }, kind, call.body) } }
}

const Ticket = t.Object(
  {
    ticket: text("belfry_ticket_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c"),
    expires_in: count(tickets.TICKET_SECONDS, "Seconds."),
  },
  { title: "InboxTicket" },
)

const ticketRoute = ({ store }: ListParts): AnyRoute =>
  route({
    ...own("POST", `${ALL}/ticket`, 201),
    summary: "Make a ticket that opens one socket",
    description:
      "A page gives it in the address of the socket, which must not hold a token. It works once.",
    response: Ticket,
    idempotent: true,
    sealed: true,
    handle: (call) =>
      answerOnce(store, call.claim, async (tx) => {
        const { project_id, subscriber_id } = ownerOf(call)
        const { expires_at, end_user } = call.caller
        const [token_ends_at, session_id] = [expires_at ?? "", end_user?.session_id ?? null]
        const owner = { project_id, subscriber_id, session_id, token_ends_at }
        const ticket = await tickets.issue(tx, owner)
        return { ticket, expires_in: tickets.TICKET_SECONDS }
      }),
  })

const oneRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...own("GET", ONE),
    summary: "Show a message",
    description: "A message that has expired is 404.",
    response: OwnInboxMessage,
    handle: async (call) => {
      const entry = await inbox.find(store.read, ownerOf(call), call.params.inbox_id)
      return { data: await shown(store.read, entry) }
    },
  }),
  route({
    ...own("PATCH", ONE),
    summary: "Change the state of a message",
    description: "What is read was seen. A snoozed message comes back at its time.",
    body: input.OwnPatch,
    example: { read: true },
    read: input.readPatch,
    response: OwnInboxMessage,
    handle: async (call) => {
      const { inbox_id } = call.params
      const entry = await store.tx((tx) => inbox.patch(tx, ownerOf(call), inbox_id, call.body))
      return { data: await shown(store.read, entry) }
    },
  }),
  route({
    ...own("POST", `${ONE}/actions/{action_key}`),
    summary: "Use an action of a message",
    description: "Each use emits `inbox.action`.",
    body: input.ActionInput,
    example: { data: { answer: "yes" } },
    read: input.readAction,
    response: OwnInboxMessage,
    idempotent: true,
    handle: (call) =>
      answerOnce(store, call.claim, async (tx) => {
        const { inbox_id, action_key } = call.params
        return shown(tx, await inbox.act(tx, ownerOf(call), inbox_id, action_key))
      }),
  }),
  route({
    ...own("DELETE", ONE),
    summary: "Delete a message",
    description: "Nobody can bring it back. Archive what the subscriber may want again.",
    response: Deleted,
    handle: async (call) => {
      const { inbox_id } = call.params
      await store.tx((tx) => inbox.remove(tx, ownerOf(call), inbox_id, namedByMessages))
      return deleted(inbox_id)
    },
  }),
]

/** Throws 404 for one that was removed meanwhile. */
async function shown(db: Reader, entry: InboxEntry) {
  const [message] = await ownMessages(db, [entry])
  return message ?? inbox.noMessage()
}
