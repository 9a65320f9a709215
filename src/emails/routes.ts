import type { Static } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { newId } from "../core/ids"
import { download, rawMessage } from "../http/download"
import { keepAnswer } from "../http/idempotency"
import {
  type Cursors,
  comparableFilters,
  datesOf,
  listPage,
  type PageQuery,
  pageQuery,
} from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import type { Mailbox } from "../lib/address"
import { accept, entryOf, refuseFrozen, type SendBatcher } from "../messages/accept"
import {
  batchReply,
  modeOf,
  prepareBatch,
  readBatch,
  type SendBatch,
  settled,
} from "../messages/batch"
import { attemptOf, attemptsOf, type MessageListFilter } from "../messages/message-list"
import { reschedule } from "../messages/scheduled"
import { RescheduleRequest } from "../messages/schemas"
import { isBlocked, subscriberIdsOf, subscriberOf, subscribersOf } from "../messages/send-fields"
import { suppressionsOf, withoutSuppressed } from "../messages/suppressed"
import type { ListWindow } from "../store/rows"
import type { Store } from "../store/store"
import { templateIdOf } from "../templates/templates"
import { EmailTracking } from "../tracking/schemas"
import { statistics } from "../tracking/tracking"
import * as batchSchemas from "./batch-schemas"
import { reply, resentReply } from "./channel"
import * as emails from "./emails"
import {
  readReschedule,
  readResend,
  readSendEmail,
  SEND_LIMIT_BYTES,
  type SendEmail,
} from "./fields"
import { prepare, requireSendable, type SendRules } from "./prepare"
import { linkWarnings, warned } from "./render-email"
import { resend } from "./resend-email"
import * as schemas from "./schemas"

const BATCH_LIMIT_BYTES = 33_554_432

export interface EmailParts extends emails.EmailReading {
  store: Store
  intake: SendBatcher
  rules: SendRules
  cursors: Cursors
}

export const emailRoutes = (parts: EmailParts): AnyRoute[] => [
  ...sendRoutes(parts),
  ...readRoutes(parts),
  ...partRoutes(parts),
  ...repeatRoutes(parts),
]

const ONE = "/v1/emails/{email_id}"

const SEND_EXAMPLE = {
  from: "Acme <hello@mailbox.test>",
  to: "ann@mailbox.test",
  subject: "Your receipt",
  html: "<p>Thank you for your order.</p>",
  text: "Thank you for your order.",
  tags: ["receipt"],
  metadata: { order: "1042" },
}

function sendRoutes(parts: EmailParts): AnyRoute[] {
  return [
    route({
      ...projectRow("POST", "/v1/emails", "email:send", 201),
      summary: "Send an email",
      description:
        "201 means that the email is stored on disk and will be delivered. Events and `GET /v1/emails/{email_id}` show its delivery. With an `Idempotency-Key`, a repeated request sends nothing twice.",
      sends: true,
      body: schemas.SendEmail,
      example: SEND_EXAMPLE,
      readRaw: readSendEmail,
      response: schemas.Accepted,
      top: schemas.acceptedTop,
      meta: schemas.sendMeta,
      errors: schemas.SEND_ERRORS,
      limit: SEND_LIMIT_BYTES,
      takes_files: true,
      idempotent: true,
      handle: (call) => sendOne(parts, call),
    }),
    route({
      ...projectRow("POST", "/v1/emails/batch", "email:send"),
      summary: "Send up to 100 emails",
      description:
        "`{messages: […]}` accepts the valid messages and lists the others in `results`. A bare list is accepted as a whole or refused as a whole. `X-Batch-Validation` chooses the other way.",
      sends: true,
      body: batchSchemas.BatchRequest,
      example: { messages: [SEND_EXAMPLE, { ...SEND_EXAMPLE, to: "ben@mailbox.test" }] },
      headers: batchSchemas.batchHeaders,
      readRaw: readEmails,
      envelope: batchSchemas.BatchAnswer,
      errors: schemas.SEND_ERRORS,
      limit: BATCH_LIMIT_BYTES,
      takes_files: true,
      idempotent: true,
      handle: (call) => sendBatch(parts, call),
    }),
  ]
}

function readRoutes(parts: EmailParts): AnyRoute[] {
  const { store } = parts
  return [
    route({
      ...projectRow("GET", "/v1/emails", "email:read"),
      summary: "List emails, newest first",
      description: "The list has no bodies, headers and timelines. Filters can be combined.",
      query: schemas.emailQuery,
      response: schemas.ListedEmail,
      errors: ["invalid_email"],
      handle: (call) => list(parts, call),
    }),
    route({
      ...projectRow("GET", ONE, "email:read"),
      summary: "Show one email, with bodies and timeline",
      description: "The whole record. Bodies that are no longer stored are null.",
      response: schemas.Email,
      handle: async (call) => ({ data: await emails.get(parts, ...named(call)) }),
    }),
    ...(["GET", "POST"] as const).map((method) =>
      route({
        ...projectRow(method, `${ONE}/events`, "email:read"),
        summary: `List the events of an email, oldest first${method === "POST" ? ", by POST" : ""}`,
        description:
          "The first 1,000 events. Each has the answer of the other side. `type` is the type of the webhook event. " +
          "GET and POST give the same answer.",
        response: schemas.EmailEvents,
        handle: async (call) => ({ data: await emails.events(store.read, ...named(call)) }),
      }),
    ),
    ...(["GET", "POST"] as const).map((method) =>
      route({
        ...projectRow(method, `${ONE}/tracking`, "email:read"),
        summary: `Show the openings and clicks of an email${method === "POST" ? ", by POST" : ""}`,
        description:
          "Counts what mail programs, scanners and people loaded. `human` and `unique` are about people only. " +
          "Hits appear after a few seconds. GET and POST give the same answer.",
        response: EmailTracking,
        handle: async (call) => {
          const message = await emails.find(store.read, ...named(call))
          return { data: await statistics(store.read, message) }
        },
      }),
    ),
    route({
      ...projectRow("GET", `${ONE}/attempts`, "email:read"),
      summary: "List the delivery attempts of an email, oldest first",
      description:
        "Each attempt names the provider, the server, its answer and the SMTP transcript.",
      query: pageQuery({}),
      response: schemas.EmailAttempt,
      handle: (call) => listAttempts(parts, call),
    }),
  ]
}

function partRoutes(parts: EmailParts): AnyRoute[] {
  return [
    route({
      ...projectRow("GET", `${ONE}/content`, "email:read"),
      summary: "Show the subject, bodies and headers of an email",
      description: "The content as it was accepted. 404 means that it is no longer stored.",
      response: schemas.EmailContent,
      handle: async (call) => ({ data: await emails.content(parts, ...named(call)) }),
    }),
    route({
      ...projectRow("GET", `${ONE}/raw`, "email:read"),
      summary: "Show the message as it was sent",
      description:
        "The exact bytes, with headers and signature. They exist after the first attempt. A message that was not sent has none.",
      produces: "message/rfc822",
      handle: async (call) => rawMessage(await emails.raw(parts, ...named(call))),
    }),
    route({
      ...projectRow("GET", `${ONE}/attachments/{attachment_id}`, "email:read"),
      summary: "Download one attachment",
      description: "The file as a download, with the content type of the send request.",
      produces: "*/*",
      handle: async ({ project_id, params }) =>
        download(await emails.attachment(parts, project_id, params)),
    }),
  ]
}

function repeatRoutes(parts: EmailParts): AnyRoute[] {
  return [
    route({
      ...projectRow("POST", `${ONE}/cancel`, "email:send"),
      summary: "Cancel an email that is still queued",
      description:
        "Only a `queued` email can be cancelled. It becomes `failed` with the reason `cancelled`.",
      response: schemas.Email,
      errors: ["conflict"],
      handle: async (call) => {
        await emails.cancel(parts.store, ...named(call))
        return { data: await emails.get(parts, ...named(call)) }
      },
    }),
    route({
      ...projectRow("PATCH", ONE, "email:send"),
      summary: "Give a scheduled email another time",
      description:
        "Only an email that waits for its scheduled time can be changed. One that was released answers 409.",
      body: RescheduleRequest,
      example: { scheduled_at: "2026-12-01T08:00:00+01:00" },
      readRaw: readReschedule,
      response: schemas.Email,
      errors: ["conflict"],
      handle: async (call) => {
        const { project_id, params, body } = call
        const ours = { project_id, channel: "email" } as const
        await reschedule(parts.store, ours, params.email_id, body.at)
        return { data: await emails.get(parts, ...named(call)) }
      },
    }),
    route({
      ...projectRow("POST", `${ONE}/resend`, "email:send", 201),
      summary: "Send the content of an email again, to all its recipients or to one address",
      description:
        "Makes a new email with the same content and attachments. Without `to`, all recipients get it again. With `to`, only that address gets it.",
      sends: true,
      body: schemas.ResendRequest,
      example: { to: "ann@example.com" },
      readRaw: readResend,
      response: schemas.Resent,
      top: schemas.acceptedTop,
      errors: schemas.SEND_ERRORS,
      idempotent: true,
      handle: (call) => resendOne(parts, call),
    }),
  ]
}

async function listAttempts({ store, cursors }: EmailParts, call: OfEmail<unknown, PageQuery>) {
  const { email_id } = call.params
  await emails.find(store.read, ...named(call))
  const rows = {
    find: (number: string) => attemptOf(store.read, email_id, number),
    list: (window: ListWindow) => attemptsOf(store.read, email_id, window),
  }
  return listPage(call, cursors, rows, ({ id: _, ...attempt }) => attempt)
}

type EmailQuery = Static<typeof schemas.emailQuery>
type OfEmail<Body = unknown, Query = unknown> = Call<Body, Query, { email_id: string }>

const named = ({ project_id, params }: OfEmail): [string, string] => [project_id, params.email_id]

async function sendOne({ store, intake, rules, blobs }: EmailParts, call: Call<SendEmail>) {
  const { caller, claim, body, signal } = call
  await refuseFrozen(store.read, caller, "email", 1)
  const origin = { source: "api", batch_id: null, idempotency_key: claim?.key ?? null } as const
  const email = await prepare(body, { caller, signal, ...origin }, rules, blobs)
  const warnings = await linkWarnings(rules, caller, body, email)
  const answer = (message: Parameters<typeof reply>[0]) => warned(reply(message), warnings)
  return answer(await intake.submit(entryOf(email, caller), call, answer))
}

const readEmails = (body: unknown, problems: Problems) => readBatch(body, problems, readSendEmail)

async function sendBatch(parts: EmailParts, call: Call<SendBatch<SendEmail>>) {
  const { store } = parts
  const { caller, claim, body, request, signal } = call
  const mode = modeOf(request, body)
  await refuseFrozen(store.read, caller, "email", body.items.length)
  const batch_id = newId()
  const prepare = await preparing(parts, call, batch_id)
  const { project_id } = caller
  const prepared = await prepareBatch(body, { batch_id, project_id, mode, prepare })
  const entries = prepared.accepted.map(({ message }) => entryOf(message, caller))
  signal.throwIfAborted() // told 504 already: nothing may be sent any more
  return store.tx(async (tx) => {
    const answers = await accept(tx, entries, mode)
    const answer = batchReply(settled(prepared, answers, mode), body.bare)
    await keepAnswer(tx, claim, answer)
    return answer
  }, project_id)
}

/** How each email of a batch is prepared, with what is looked up for all of them at once. */
async function preparing(
  { rules, blobs }: EmailParts,
  { caller, claim, body, signal }: Call<SendBatch<SendEmail>>,
  batch_id: string,
) {
  const emails = body.items.map(({ input }) => input)
  const of = { project_id: caller.project_id, channel: "email" } as const
  const suppressions = await suppressionsOf(rules.read, of, () =>
    emails.flatMap(({ to, cc, bcc }) => [to, ...cc, ...bcc]),
  )
  const subscribers = await subscribersOf(rules.read, caller.project_id, emails)
  const idempotency_key = claim?.key ?? null
  const origin = { caller, signal, source: "api" as const, batch_id, idempotency_key }
  const sender = { ...origin, suppressions, subscribers }
  return async (email: SendEmail) => {
    const message = await prepare(email, sender, rules, blobs)
    return { message, warnings: await linkWarnings(rules, caller, email, message) }
  }
}

async function resendOne(parts: EmailParts, call: OfEmail<{ to: Mailbox | undefined }>) {
  const { intake, rules } = parts
  const { caller, claim, body, params } = call
  const key = claim?.key ?? null
  const email = await resend(parts, caller, params.email_id, body.to, key)
  const count = email.recipients.length
  await refuseFrozen(parts.store.read, caller, "email", count)
  await requireSendable(rules, caller, email.sender_domain ?? "", email.recipients)
  const subscriber = await subscriberOf(rules.read, email)
  const left = isBlocked({ subscriber }) ? email : await withoutSuppressed(rules.read, email)
  return resentReply(await intake.submit(entryOf(left, caller), call, resentReply))
}

async function list({ store, cursors }: EmailParts, call: Call<unknown, EmailQuery>) {
  const { project_id, query } = call
  const { status, tag, domain, subject, stream, batch_id, category } = query
  const template_id = await templateIdOf(store.read, project_id, query.template_id)
  const subscriber_ids = await subscriberIdsOf(store.read, project_id, query.subscriber_id)
  const of = { template_id, subscriber_ids, category }
  const plain = { status, tag, domain, subject, stream, batch_id, ...of }
  const wanted = { ...plain, ...comparableFilters(query), ...datesOf(query) } as MessageListFilter
  return listPage(call, cursors, {
    find: (id) => emails.find(store.read, project_id, id),
    list: (window) => emails.list(store.read, project_id, wanted, window),
  })
}
