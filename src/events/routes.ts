import { type Static, Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { oneOf, optionalText, ruledText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import type { ServerHealth } from "../http/server-health"
import { type Conversation, Upgrade } from "../http/sockets"
import { anything, eventId, flag, text, time, word } from "../lib/record-fields"
import { isSecret, newSecret } from "../lib/signature"
import type { Reader, Store } from "../store/store"
import { trigger } from "./emit"
import * as feed from "./feed"
import { lastPosition, positionOf } from "./feed"
import type { MessageWatchers } from "./message-watchers"
import { API_VERSION, askedTypes, CATEGORIES, eventTypes, lookup, noSuchType } from "./registry"
import { type Following, Forwarding, stream, streamNewest } from "./stream"

const example = lookup("email.delivered")?.example

const Envelope = t.Object(
  {
    id: eventId(),
    type: text("email.delivered"),
    api_version: text(API_VERSION),
    created_at: time("The time at which the event was recorded."),
    data: anything(
      example?.data ?? {},
      "The data depends on the type. The section `webhooks` of this document describes them.",
    ),
  },
  { title: "EventEnvelope" },
)

const Field = t.Object(
  {
    name: text("message_id", "The name of the field. A dot separates a member from its object."),
    type: word(["string", "integer", "number", "boolean", "object", "array"]),
    nullable: flag(false),
    description: text("The id of the email."),
  },
  { title: "EventField" },
)

const EventType = t.Object(
  {
    type: text("email.delivered"),
    category: word(CATEGORIES),
    description: text("The email was delivered to the recipient."),
    api_version: text(API_VERSION),
    fields: t.Array(Field),
    example: Envelope,
  },
  { title: "EventType" },
)

const typeQuery = t.Object({ category: t.Optional(oneOf("email", "push", "auth")) })

const types = optionalText({
  maxLength: 1000,
  description: "Event types, separated by commas. `email.*` is allowed.",
})

const feedQuery = t.Object({
  after: optionalText({
    maxLength: 64,
    description: "The id of the last event that you have read.",
  }),
  before: optionalText({
    maxLength: 64,
    description: "Reads the last events before this id. An empty value reads the latest events.",
  }),
  limit: t.Integer({ default: 25, minimum: 1, maximum: 100 }),
  types,
  wait: t.Integer({
    default: 0,
    minimum: 0,
    maximum: 25,
    description: "Maximum seconds to wait for an event.",
  }),
})

const Trigger = t.Object({
  type: ruledText({ maxLength: 64 }, (type) =>
    lookup(type) ? undefined : ["unknown_type", noSuchType(type)],
  ),
  data: t.Optional(
    t.Record(t.String(), t.Unknown(), { description: "Fields that replace those of the example." }),
  ),
})

type FeedQuery = Static<typeof feedQuery>

export const eventRoutes = (store: Store, health: ServerHealth): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/webhooks/events", "webhooks:read"),
    summary: "List all event types with their fields and an example",
    description: "The section `webhooks` of this document has the same types as schemas.",
    query: typeQuery,
    response: t.Array(EventType),
    handle: ({ query }) => ({
      data: eventTypes.filter(({ category }) => (query.category ?? category) === category),
    }),
  }),
  route({
    ...projectRow("GET", "/v1/events", "webhooks:read"),
    summary: "List events after a known one, oldest first",
    description:
      "A feed for programs. Keep `meta.next_after` and send it as the next `after`. `wait` holds the request until an event happens. Events can be read for 30 days. With `types` a request looks at 1,000 events: where `has_more` is true, go on also after an empty answer. With `before`, go on at `meta.next_before`.",
    query: feedQuery,
    response: Envelope,
    handle: (call) =>
      call.query.before === undefined ? read(store, health, call) : readBack(store, call),
  }),
  route({
    ...projectRow("GET", "/v1/events/{event_id}", "webhooks:read"),
    summary: "Show one event",
    description: "Shows the envelope exactly as webhooks get it.",
    response: Envelope,
    handle: async ({ project_id, params }) => ({
      data: feed.envelopeOf(await feed.find(store.read, project_id, params.event_id)),
    }),
  }),
  route({
    ...projectRow("POST", "/v1/events/trigger", "webhooks:write", 201),
    summary: "Make a simulated event to test receivers",
    description:
      "The event has the data of the example, your changes and `data.simulated: true`. It is delivered like any other event.",
    body: Trigger,
    example: { type: "email.bounced", data: { recipient_email: "ann@example.com" } },
    response: Envelope,
    idempotent: true,
    handle: ({ caller, body, claim }) =>
      answerOnce(store, claim, async (tx) => feed.envelopeOf(await trigger(tx, caller, body))),
  }),
]

/** Their order is that of the feed all the same; `has_more` says whether more stands before. */
async function readBack(store: Store, { project_id, query }: Call<unknown, FeedQuery>) {
  const { after, before = "", limit } = query
  if (after !== undefined) {
    throw invalid("before", "invalid", "Give either `after` or `before`, not both.")
  }
  const types = askedTypes(query.types ?? "")
  const wanted = { before, limit: limit + 1, types }
  const found = await feed.readBack(store.read, project_id, wanted)
  const rows = found.rows.slice(-limit)
  const has_more = found.rows.length > limit || found.end !== undefined
  const next_before = has_more ? ((found.end ?? rows[0])?.id ?? null) : null
  const meta = { next_after: rows.at(-1)?.id ?? null, next_before, has_more }
  return { top: { has_more }, data: rows.map(feed.envelopeOf), meta }
}

async function read(
  store: Store,
  health: ServerHealth,
  { project_id, query, request, signal }: Call<unknown, FeedQuery>,
) {
  const types = askedTypes(query.types ?? "")
  const wanted = { after: query.after, limit: query.limit + 1, types }
  const draining = new AbortController()
  const off = health.onDrain(() => draining.abort()) // a poll must not hold up the stop
  const stop = AbortSignal.any([signal, request.signal, draining.signal])
  const wait_ms = query.wait * 1000
  const end =
    types.length > 0 ? await feed.passable(store.read, project_id, query.after) : undefined
  const found = await feed.readWaiting(store.read, project_id, wanted, wait_ms, stop).finally(off)
  const rows = found.rows.slice(0, query.limit)
  const is_full = found.rows.length > query.limit
  const has_more = is_full || found.end !== undefined
  const next = is_full ? rows.at(-1) : (found.end ?? feed.later(rows.at(-1), end))
  const meta = { next_after: next?.id ?? query.after ?? null, has_more }
  return { top: { has_more }, data: rows.map(feed.envelopeOf), meta }
}

export interface StreamParts {
  store: Store
  watching: MessageWatchers
}

const LONGEST_EVERY_MS = 60_000

const insteadOf = (header: string) =>
  `In place of the header ${header}, which a page in a browser cannot send.`

const query = t.Object({
  after: optionalText({
    maxLength: 64,
    description:
      "The id of the last event that you have read. An empty value begins with the oldest event (default: only new events).",
  }),
  types,
  account_id: optionalText({ maxLength: 64, description: insteadOf("X-Account-Id") }),
  project_id: optionalText({ maxLength: 64, description: insteadOf("X-Project-Id") }),
  forward: t.Boolean({ default: false, description: "Send signed deliveries instead of events." }),
  newest_every_ms: t.Integer({
    default: 0,
    minimum: 0,
    maximum: LONGEST_EVERY_MS,
    description:
      "Sends only the newest event, at most one in this time, and no changes of messages. For clients that read the rest by other requests (default: every event).",
  }),
})

const SECRET_HEADER = "x-svc-listen-secret"

const headers = t.Object({
  "X-Svc-Listen-Secret": optionalText({
    description:
      "The secret that signs the deliveries of `forward`: `whsec_` and the base64 of 24 to 64 bytes.",
  }),
})

/** Events as they come, over a WebSocket; with `forward` as deliveries of a webhook. */
export const streamRoutes = (parts: StreamParts): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/events/stream", "webhooks:read", 101),
    summary: "Stream events over a WebSocket",
    description:
      "Connect with a WebSocket and the subprotocol `svc.events.v1`. A page in a browser adds its token as a second one: `bearer.<token>`. With `forward=true` the server sends signed deliveries, and the client sends back the answers of its receiver.",
    socket: "svc.events.v1",
    query,
    headers,
    handle: async ({ request, project_id, query }) => {
      const db = parts.store.read
      const types = askedTypes(query.types ?? "")
      const from = await startOf(db, project_id, query.after)
      return new Upgrade(conversationOf(parts, { db, project_id, from, types }, query, request))
    },
  }),
]

/** Throws 422 where the query asks for two kinds of frames, and for a bad secret. */
function conversationOf(
  { watching }: StreamParts,
  following: Following,
  { forward, newest_every_ms }: Static<typeof query>,
  request: Request,
): Conversation {
  if (forward && newest_every_ms > 0) {
    const message = "Give either `forward` or `newest_every_ms`, not both."
    throw invalid("newest_every_ms", "invalid", message)
  }
  if (forward) return new Forwarding(following, listenSecret(request))
  if (newest_every_ms > 0)
    return { begin: (wire) => streamNewest(wire, following, newest_every_ms) }
  return { begin: (wire) => stream(wire, following, watching) }
}

/** Fixed before the connection opens: nothing that happens afterwards is missed. */
async function startOf(db: Reader, project_id: string, after: string | undefined) {
  if (after === "") return undefined
  if (after !== undefined) return await positionOf(db, project_id, after)
  return await lastPosition(db, project_id)
}

/**
 * The client's own secret, so that its receiver needs one secret for a project, and keeps it over
 * reconnects. Without the header a new one, told in the first frame. Throws 422 for a bad one.
 */
function listenSecret({ headers }: Request): string {
  const own = headers.get(SECRET_HEADER)
  if (own === null) return newSecret()
  if (isSecret(own)) return own
  const message = "The value must be `whsec_` and the base64 of 24 to 64 bytes."
  throw invalid(SECRET_HEADER, "invalid", message, { header: "X-Svc-Listen-Secret" })
}
