import { type Static, Type as t } from "@sinclair/typebox"
import type { Blobs } from "../core/blobs"
import { Problems } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { MEDIA_TYPE } from "../emails/attachments"
import { reply } from "../emails/channel"
import type { SendEmail } from "../emails/fields"
import { prepare, type SendRules } from "../emails/prepare"
import { Accepted, acceptedTop, SEND_ERRORS } from "../emails/schemas"
import { download, rawMessage } from "../http/download"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { nounRows } from "../http/noun-rows"
import {
  type Cursors,
  comparableFilters,
  datesOf,
  type ListParts,
  listPage,
  pageQuery,
  readTime,
} from "../http/page"
import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import type { ServerHealth } from "../http/server-health"
import type { Mailbox } from "../lib/address"
import { safeFilename } from "../lib/file-names"
import { entryOf, refuseFrozen, type SendBatcher } from "../messages/accept"
import type { Store } from "../store/store"
import { Delivery } from "../webhooks/schemas"
import { fileUrl, readFileToken } from "./file-tokens"
import { forwardOf, readForward } from "./forward"
import * as inbound from "./inbound-emails"
import { listed } from "./inbound-record"
import { ownAddress, readReply, replyTo } from "./inbound-reply"
import * as routes from "./inbound-route"
import { refuseReturn } from "./inbound-route"
import { mailContent } from "./raw-mail"
import * as schemas from "./schemas"

const REPLY_LIMIT_BYTES = 15_728_640

export interface InboundParts {
  store: Store
  secrets: Secrets
  cursors: Cursors
  health: ServerHealth
  blobs: Blobs
  /** Of received mail. */
  inbound_blobs: Blobs
  intake: SendBatcher
  rules: SendRules
  link_base: () => string
}

export const inboundEmailRoutes = (parts: InboundParts): AnyRoute[] => [
  ...readRoutes(parts),
  ...fileRoutes(parts),
  ...answerRoutes(parts),
  ...changeRoutes(parts),
  ...inboundRouteRoutes(parts),
]

const ALL = "/v1/inbound-emails"
const ONE = `${ALL}/{inbound_id}` as const

const reads = <const Path extends string>(path: Path) =>
  projectRow("GET", path, "inbound:read|email:read")

type OfMail<Body = unknown, Query = unknown> = Call<Body, Query, { inbound_id: string }>

const named = ({ project_id, params }: OfMail): [string, string] => [project_id, params.inbound_id]

const readRoutes = (parts: InboundParts): AnyRoute[] => [
  route({
    ...reads(ALL),
    summary: "List received mail, newest first",
    description:
      "The list has no bodies. Filters can be combined. `kind` selects replies, bounces, reports and so on.",
    query: schemas.inboundQuery,
    response: schemas.InboundSummary,
    errors: ["invalid_email"],
    handle: (call) => {
      const { kind, thread_id } = call.query
      const filter = { kind, thread_id, ...comparableFilters(call.query), ...datesOf(call.query) }
      const found = inbound.list(parts.store.read, call.project_id, filter)
      return listPage(call, parts.cursors, found, listed)
    },
  }),
  route({
    ...reads(`${ALL}/wait`),
    summary: "Wait for a mail to an address",
    description:
      "Answers with the newest mail to the address as soon as there is one, or with `data: null` at the end of `timeout`. Give `since` to skip older mail. With `extract` it waits for a mail with a one-time code or a link, and `extracted` has it.",
    query: schemas.waitQuery,
    response: t.Union([schemas.AwaitedEmail, t.Null()]),
    errors: ["invalid_email"],
    handle: (call) => wait(parts, call),
  }),
  route({
    ...reads(ONE),
    summary: "Show one received mail, with its bodies",
    description: "The whole record. Bodies that are no longer stored are null.",
    response: schemas.InboundEmail,
    handle: async (call) => ({
      data: await inbound.get(parts.store.read, parts.inbound_blobs, ...named(call)),
    }),
  }),
]

async function wait(
  { store, health, inbound_blobs }: InboundParts,
  call: Call<unknown, Static<typeof schemas.waitQuery>>,
) {
  const { project_id, query, request, signal } = call
  const problems = new Problems()
  const since = query.since === undefined ? undefined : readTime("since", query.since, problems)
  problems.throwIfAny()
  const { to = "" } = comparableFilters({ to: query.to })
  const draining = new AbortController()
  const off = health.onDrain(() => draining.abort()) // a wait must not hold up the stop
  const stop = AbortSignal.any([signal, request.signal, draining.signal])
  const wanted = { to, since, extract: query.extract }
  const limits = { wait_ms: query.timeout * 1000, signal: stop }
  const found = await inbound
    .wait(store.read, inbound_blobs, project_id, wanted, limits)
    .finally(off)
  return { data: found ?? null }
}

const fileRoutes = ({ store, secrets, inbound_blobs, link_base }: InboundParts): AnyRoute[] => [
  route({
    ...reads(`${ONE}/raw`),
    summary: "Show a received mail as it came in",
    description: "The exact bytes. 404 means that they are no longer stored.",
    produces: "message/rfc822",
    handle: async (call) =>
      rawMessage(await inbound.raw(store.read, inbound_blobs, ...named(call))),
  }),
  route({
    ...reads(`${ONE}/attachments/{attachment_id}`),
    summary: "Show one attachment of a received mail, with an address to fetch it from",
    description: "The `url` needs no key, and it is valid for one hour.",
    response: schemas.FileLink,
    handle: async ({ project_id, params }) => {
      const { inbound_id, attachment_id: file } = params
      const found = await inbound.attachment(store.read, project_id, inbound_id, file)
      const { id, filename, content_type, size } = found
      const link = fileUrl(secrets, link_base(), { inbound_id, file })
      return { data: { id, filename, content_type, size, ...link } }
    },
  }),
  route({
    method: "GET",
    path: "/v1/files/{token}",
    scope: "-",
    callers: ["none"],
    status: [200],
    credentials: ["token"],
    summary: "Fetch a file of a received mail by its signed address",
    description:
      "`email.received` and the record of an attachment have the addresses. The file is always a download. A wrong or expired token is a 404.",
    produces: "*/*",
    errors: ["not_found"],
    handle: async ({ params }) => {
      const wanted = readFileToken(secrets, params.token)
      const { filename, content_type, bytes } = await inbound.fileNamed(
        store.read,
        inbound_blobs,
        wanted,
      )
      const type = MEDIA_TYPE.test(content_type) ? content_type : "application/octet-stream"
      return download({ filename: safeFilename(filename), content_type: type, bytes })
    },
  }),
]

const sends = <const Path extends string>(path: Path) => ({
  ...projectRow("POST" as Method, path, "inbound:write|email:send", 201),
  sends: true as const,
  response: Accepted,
  top: acceptedTop,
  errors: [...SEND_ERRORS, "conflict"] as const,
  idempotent: true,
})

const answerRoutes = (parts: InboundParts): AnyRoute[] => [
  route({
    ...sends(`${ONE}/reply`),
    summary: "Reply to a received mail",
    description:
      "Sends an email to the author, in the same thread. The sender is the address that received the mail. 409 means that the mail must not be answered: a program sent it, or it has the null sender.",
    body: schemas.Reply,
    example: { text: "Thank you for your question. Your order left this morning." },
    readRaw: readReply,
    limit: REPLY_LIMIT_BYTES,
    handle: async (call) => {
      const row = await inbound.find(parts.store.read, ...named(call))
      const from = call.body.from ?? (await ownAddress(parts.store.read, row))
      return send(parts, call, replyTo(row, call.body, from), row.thread_id ?? row.id)
    },
  }),
  route({
    ...sends(`${ONE}/forward`),
    summary: "Forward a received mail to another address",
    description:
      "Sends the text of the mail with its attachments to `to`. The author of the mail gets the answers. 422 also means that the mail would come back.",
    body: schemas.Forward,
    example: { to: "kim@example.com" },
    readRaw: readForward,
    handle: async (call) => {
      const { store, inbound_blobs } = parts
      const row = await inbound.find(store.read, ...named(call))
      await refuseReturn(store.read, row, call.body.to.email)
      const content = await mailContent(store.read, inbound_blobs, row.id)
      const from = call.body.from ?? (await ownAddress(store.read, row))
      const stored = { read: store.read, inbound_blobs }
      const email = await forwardOf(row, content, stored, { to: call.body.to, from })
      return send(parts, call, email, null)
    },
  }),
]

/** Through the door of every email: quotas, rules and the idempotency key apply. */
async function send(
  { store, intake, rules, blobs }: InboundParts,
  call: OfMail<{ from: Mailbox | undefined }>,
  email: SendEmail,
  thread_id: string | null,
) {
  const { caller, claim, signal } = call
  await refuseFrozen(store.read, caller, "email", 1)
  const origin = { source: "inbound_reply", batch_id: null } as const
  const sender = { caller, signal, thread_id, idempotency_key: claim?.key ?? null, ...origin }
  const message = await prepare(email, sender, rules, blobs)
  await intake.submit(entryOf(message, caller), call, reply)
  return reply(message)
}

const changeRoutes = ({ store, secrets, link_base }: InboundParts): AnyRoute[] => [
  route({
    ...projectRow("POST", `${ONE}/redeliver`, "inbound:write|webhooks:write"),
    summary: "Send the event of a received mail to the webhook endpoints again",
    description:
      "The event keeps its id, and its attachments get fresh addresses. 409 means that there is no event: the mail is not processed yet, a route dropped it, or the event has expired.",
    response: t.Object({ deliveries: t.Array(Delivery) }, { title: "Redelivered" }),
    errors: ["conflict"],
    idempotent: true,
    handle: (call) => {
      const { inbound_id } = call.params
      const urlOf = (file: string) => fileUrl(secrets, link_base(), { inbound_id, file })
      return answerOnce(store, call.claim, (tx) => inbound.redeliver(tx, ...named(call), urlOf))
    },
  }),
  route({
    ...projectRow("DELETE", ONE, "inbound:write"),
    summary: "Delete a received mail",
    description: "Removes the record, its bodies and its files. Events that name it stay.",
    response: Deleted,
    handle: async (call) => {
      await store.tx((tx) => inbound.remove(tx, call.caller, call.params.inbound_id))
      return deleted(call.params.inbound_id)
    },
  }),
]

const ROUTES = "/v1/inbound-routes"
const ROUTE = `${ROUTES}/{route_id}`

/** What a project does with mail to some of its addresses. */
const inboundRouteRoutes = (parts: ListParts): AnyRoute[] => {
  const scopes = ["inbound:read", "inbound:write"] as const
  const rows = nounRows(routes.inboundRoute, schemas.InboundRoute, scopes, parts)
  return [
    rows.list(ROUTES, {
      summary: "List the routes of received mail, newest first",
      description:
        "If several routes match an address, the one with the lowest `priority` decides.",
      query: pageQuery({}),
    }),
    rows.create(ROUTES, {
      summary: "Make a route for received mail",
      description:
        "`webhook` sends the event to one endpoint or to all, `forward` sends the mail to another address, and `drop` keeps the mail without an event. 422 also means that forwarded mail would come back to this route.",
      body: schemas.NewInboundRoute,
      example: { match: { to: "support+*@in.example.com" }, action: "webhook" },
      read: routes.readNewRoute,
      errors: ["conflict", "webhook_not_found", "invalid_email"],
      create: routes.create,
    }),
    rows.get(ROUTE, {
      summary: "Show one route",
      description: "The addresses, the action and the priority.",
    }),
    rows.change(ROUTE, {
      summary: "Change a route",
      description: "Fields that are absent stay as they are. A new action needs its own target.",
      body: schemas.InboundRouteChange,
      example: { priority: 10 },
      read: routes.readRouteChange,
      errors: ["conflict", "webhook_not_found", "invalid_email"],
      change: routes.update,
    }),
    rows.remove(ROUTE, {
      summary: "Delete a route",
      description:
        "The other routes, or else the default, then decide about mail to its addresses.",
    }),
  ]
}
