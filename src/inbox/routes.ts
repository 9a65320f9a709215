import { type Static, Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { Deleted, deleted, optionalText } from "../http/field-schemas"
import { type Cursors, listPage, pageQuery } from "../http/page"
import { period } from "../http/period"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { count, id, maybe, word } from "../lib/record-fields"
import { subscriberIdsOf } from "../messages/send-fields"
import { namedByMessages } from "../operations/table-lives"
import type { Store } from "../store/store"
import { requireCategory } from "../subscribers/categories"
import { lookupExternal } from "../subscribers/find-subscriber"
import * as inbox from "./inbox"
import { InboxChange, InboxInput, readInboxChange, readSendNote } from "./inbox-input"
import { INBOX_STATES, list } from "./inbox-list"
import { stats } from "./inbox-stats"
import type { InboxRules } from "./prepare"
import { wholeMessages } from "./records"
import { InboxMessage, InboxStats } from "./schemas"
import { sendInbox } from "./send-inbox"
import type { InboxEntry } from "./tables"

const SEND_LIMIT_BYTES = 262_144

export interface InboxParts {
  store: Store
  rules: InboxRules
  cursors: Cursors
}

const SEND_ERRORS = [
  "subscriber_not_found",
  "template_not_found",
  "invalid_template",
  "template_render_failed",
  "invalid_url",
  "payment_required",
  "plan_limit_exceeded",
  "account_frozen",
  "account_throttled",
  "rate_limit_exceeded",
] as const

const ONE = "/v1/inbox/{inbox_id}"

const inboxQuery = pageQuery({
  subscriber_id: optionalText({ description: "Only those of this subscriber." }),
  external_id: optionalText({ description: "The same, by your own id." }),
  category: optionalText({ description: "Only this category." }),
  tag: optionalText({ description: "Only those with this tag." }),
  state: t.Optional(word(INBOX_STATES, "Only messages in this state.")),
})

export const inboxRoutes = (parts: InboxParts): AnyRoute[] => [
  sendRoute(parts),
  ...readRoutes(parts),
  ...changeRoutes(parts),
]

const sendRoute = ({ store, rules }: InboxParts): AnyRoute =>
  route({
    ...projectRow("POST", "/v1/inbox", "inbox:send", 201),
    summary: "Put a message into inboxes",
    description:
      "201 means that the message is in the inbox of each recipient. Recipients whose preferences exclude it are left out of `messages`, and `skipped` counts them. With an `Idempotency-Key`, a repeated request sends nothing twice.",
    sends: true,
    body: InboxInput,
    example: {
      external_id: "user_42",
      title: "Your invoice is ready",
      action_url: "/invoices/7",
      category: "billing",
    },
    read: readSendNote,
    response: InboxSent,
    errors: SEND_ERRORS,
    limit: SEND_LIMIT_BYTES,
    idempotent: true,
    handle: (call) => sendInbox(store, rules, call),
  })

function readRoutes({ store, cursors }: InboxParts): AnyRoute[] {
  return [
    route({
      ...projectRow("GET", "/v1/inbox", "inbox:read"),
      summary: "List inbox messages, newest first",
      description:
        "Filters can be combined. The states `unseen`, `seen` (not read) and `read` leave out what is archived or snoozed.",
      query: inboxQuery,
      response: InboxMessage,
      handle: (call) => listed({ store, cursors }, call),
    }),
    route({
      ...projectRow("GET", "/v1/inbox/stats", "inbox:read"),
      summary: "Count the inbox messages of a period",
      description: "How many were created, and were seen, read or archived first, in the period.",
      query: t.Object({ period }),
      response: InboxStats,
      handle: async ({ project_id, query }) => ({
        data: await stats(store.read, project_id, query.period),
      }),
    }),
    route({
      ...projectRow("GET", ONE, "inbox:read"),
      summary: "Show one inbox message",
      description: "Its content and its state.",
      response: InboxMessage,
      handle: async ({ project_id, params }) => ({
        data: await shown(store, await inbox.find(store.read, { project_id }, params.inbox_id)),
      }),
    }),
  ]
}

function changeRoutes({ store }: InboxParts): AnyRoute[] {
  return [
    route({
      ...projectRow("PATCH", ONE, "inbox:send"),
      summary: "Change an inbox message",
      description:
        "Its content, or its state in the inbox. Belfry tells the open sockets of its subscriber.",
      body: InboxChange,
      example: { title: "Your invoice is paid", archived: true },
      read: readInboxChange,
      response: InboxMessage,
      errors: ["invalid_url"],
      handle: async ({ project_id, params: { inbox_id }, body }) => {
        await requireCategory(store.read, project_id, body.category)
        const entry = await store.tx((tx) => inbox.patch(tx, { project_id }, inbox_id, body))
        return { data: await shown(store, entry) }
      },
    }),
    route({
      ...projectRow("DELETE", ONE, "inbox:send"),
      summary: "Delete an inbox message",
      description: "Belfry tells the open sockets of its subscriber.",
      response: Deleted,
      handle: async ({ project_id, params: { inbox_id } }) => {
        await store.tx((tx) => inbox.remove(tx, { project_id }, inbox_id, namedByMessages))
        return deleted(inbox_id)
      },
    }),
  ]
}

const InboxSent = t.Object(
  {
    id: maybe(
      id(
        "For one recipient the id of the message, null where it is skipped. For several, the id of the send.",
      ),
    ),
    status: word(["created"]),
    messages: t.Array(t.Object({ id: id(), subscriber_id: id() }, { title: "SentInboxMessage" })),
    skipped: count(0, "Recipients whose preferences exclude the message."),
  },
  { title: "InboxSent" },
)

async function shown({ read }: Store, entry: InboxEntry) {
  const [message] = await wholeMessages(read, [entry])
  return message ?? inbox.noMessage()
}

async function listed(
  { store: { read }, cursors }: Pick<InboxParts, "store" | "cursors">,
  call: Call<unknown, Static<typeof inboxQuery>>,
) {
  const { project_id, query } = call
  const { category, tag, state } = query
  const filter = { category, tag, state, subscriber_id: await ownerOf(read, project_id, query) }
  return listPage(call, cursors, {
    find: (id) => inbox.find(read, { project_id }, id),
    list: async (window) => {
      const page = await list(read, project_id, filter, window)
      return { ...page, rows: await wholeMessages(read, page.rows) }
    },
  })
}

/** The subscriber whose messages are asked for; "" for one that the project does not have. */
async function ownerOf(
  db: Store["read"],
  project_id: string,
  { subscriber_id, external_id }: Static<typeof inboxQuery>,
): Promise<string | undefined> {
  if (subscriber_id !== undefined && external_id !== undefined) {
    throw invalid("external_id", "invalid", "Give either subscriber_id or external_id, not both.")
  }
  if (external_id !== undefined)
    return (await lookupExternal(db, project_id, external_id))?.id ?? ""
  return (await subscriberIdsOf(db, project_id, subscriber_id))?.[0]
}
