import type { Static } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { newId } from "../core/ids"
import { keepAnswer } from "../http/idempotency"
import { type Cursors, datesOf, listPage } from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { phoneFrom } from "../lib/phone"
import { inspectText } from "../lib/sms-segments"
import { accept, entryOf, refuseFrozen, type SendBatcher } from "../messages/accept"
import { prepareBatch, readBatch, resultsOf, type SendBatch, settled } from "../messages/batch"
import type { MessageListFilter } from "../messages/message-list"
import { subscribersOf } from "../messages/send-fields"
import { suppressionsOf } from "../messages/suppressed"
import type { NewMessage } from "../messages/tables"
import type { Store } from "../store/store"
import { Explanation, explain } from "./explain"
import { prepare, type SmsRules, type TextContent } from "./prepare"
import * as schemas from "./schemas"
import * as sms from "./sms"
import { readSendText, type SendText, SmsInput } from "./sms-input"
import { stats, statsQuery, TextStats } from "./stats"

const SEND_LIMIT_BYTES = 262_144
const BATCH_LIMIT_BYTES = 1_048_576

export interface SmsParts {
  store: Store
  intake: SendBatcher
  sms_rules: SmsRules
  cursors: Cursors
}

const ONE = "/v1/sms/{sms_id}"

const EXAMPLE = { to: "+14155550115", body: "Your table is ready. Are you coming?" }

export const smsRoutes = (parts: SmsParts): AnyRoute[] => [
  ...sendRoutes(parts),
  ...readRoutes(parts),
]

function sendRoutes(parts: SmsParts): AnyRoute[] {
  return [
    route({
      ...projectRow("POST", "/v1/sms", "sms:send", 201),
      summary: "Send a text",
      description:
        "201 means that the text is stored on disk and will be sent. Events and `GET /v1/sms/{sms_id}` show its way. With an `Idempotency-Key`, a repeated request sends nothing twice.",
      sends: true,
      body: SmsInput,
      example: EXAMPLE,
      readRaw: readSendText,
      response: schemas.AcceptedText,
      errors: schemas.SEND_ERRORS,
      limit: SEND_LIMIT_BYTES,
      idempotent: true,
      handle: (call) => sendOne(parts, call),
    }),
    route({
      ...projectRow("POST", "/v1/sms/batch", "sms:send"),
      summary: "Send up to 100 texts",
      description: "Belfry accepts the valid texts and lists the others in `results`.",
      sends: true,
      body: schemas.BatchRequest,
      example: { messages: [EXAMPLE, { ...EXAMPLE, to: "+14155550112" }] },
      readRaw: readTexts,
      response: schemas.BatchResult,
      errors: schemas.SEND_ERRORS,
      limit: BATCH_LIMIT_BYTES,
      idempotent: true,
      handle: (call) => sendBatch(parts, call),
    }),
    route({
      ...projectRow("POST", "/v1/sms/segments", "sms:send|sms:read"),
      summary: "Count the segments of a text",
      description: "Nothing is sent or stored. `gsm7_suggestion` says how the text gets shorter.",
      body: schemas.SegmentsRequest,
      example: { body: "It’s “done” – see you…" },
      response: schemas.Segments,
      handle: async ({ body }) => ({ data: inspectText(body.body) }),
    }),
  ]
}

function readRoutes(parts: SmsParts): AnyRoute[] {
  const { store } = parts
  return [
    route({
      ...projectRow("GET", "/v1/sms", "sms:read"),
      summary: "List texts, newest first",
      description: "Texts that were sent and texts that came in. Filters can be combined.",
      query: schemas.smsQuery,
      response: schemas.ListedText,
      handle: (call) => list(parts, call),
    }),
    route({
      ...projectRow("GET", "/v1/sms/stats", "sms:read"),
      summary: "Count the texts of a period",
      description:
        "Texts by status and provider. A text belongs to the day on which it was accepted.",
      query: statsQuery,
      response: TextStats,
      handle: async ({ project_id, query }) => ({
        data: await stats(store.read, project_id, query.period),
      }),
    }),
    route({
      ...projectRow("GET", ONE, "sms:read"),
      summary: "Show one text, with its timeline",
      description: "The whole record. A body that is no longer stored is null.",
      response: schemas.Text,
      handle: async (call) => ({ data: await sms.get(store.read, ...named(call)) }),
    }),
    route({
      ...projectRow("GET", `${ONE}/explain`, "sms:read"),
      summary: "Explain what happened to a text, and why",
      description:
        "The whole way of the text: each stage with what decided, from the caller to the deliveries of its events.",
      response: Explanation,
      handle: async (call) => ({ data: await explain(store.read, ...named(call)) }),
    }),
    route({
      ...projectRow("POST", `${ONE}/cancel`, "sms:send"),
      summary: "Cancel a text that is still queued",
      description: "Only a `queued` text can be cancelled. It becomes `cancelled`.",
      response: schemas.Text,
      errors: ["conflict"],
      handle: async (call) => {
        await sms.cancel(store, ...named(call))
        return { data: await sms.get(store.read, ...named(call)) }
      },
    }),
  ]
}

type OfText = Pick<Call<unknown, unknown, { sms_id: string }>, "project_id" | "params">

const named = ({ project_id, params }: OfText): [string, string] => [project_id, params.sms_id]

/** The answer to a send, and what a repetition of the request is answered. */
const replyTo =
  ({ sender, units, envelope, content, address }: NewMessage, is_test: boolean) =>
  ({ id, scheduled_at, created_at }: Pick<NewMessage, "id" | "scheduled_at" | "created_at">) => ({
    data: {
      id,
      to: address,
      from: sender,
      body: (content as TextContent).body,
      encoding: envelope?.sms?.encoding ?? "ucs2",
      segments: units ?? 1,
      status: "queued" as const,
      is_test,
      scheduled_at: scheduled_at ?? null,
      created_at,
    },
  })

async function sendOne({ store, intake, sms_rules }: SmsParts, call: Call<SendText>) {
  const { caller, claim, body } = call
  await refuseFrozen(store.read, caller, "sms", 1)
  const origin = { source: "api", batch_id: null, idempotency_key: claim?.key ?? null } as const
  const { message, is_test } = await prepare(body, { caller, ...origin }, sms_rules)
  const answer = replyTo(message, is_test)
  return answer(await intake.submit(entryOf(message, caller), call, answer))
}

/** The form with `messages` alone: a bare list is what another service takes. */
const readTexts = (body: unknown, problems: Problems) =>
  readBatch(Array.isArray(body) ? {} : body, problems, readSendText)

async function sendBatch(parts: SmsParts, call: Call<SendBatch<SendText>>) {
  const { store, sms_rules } = parts
  const { caller, claim, body, signal, project_id } = call
  await refuseFrozen(store.read, caller, "sms", body.items.length)
  const texts = body.items.map(({ input }) => input)
  const batch_id = newId()
  const sender = {
    ...{ caller, batch_id, source: "api" as const, idempotency_key: claim?.key ?? null },
    suppressions: await suppressionsOf(store.read, { project_id, channel: "sms" }, () =>
      texts.map(({ to }) => ({ email: to })),
    ),
    subscribers: await subscribersOf(store.read, project_id, texts),
  }
  const prepared = await prepareBatch(body, {
    ...{ batch_id, project_id, mode: "permissive" },
    prepare: async (text) => ({ ...(await prepare(text, sender, sms_rules)), warnings: [] }),
  })
  const entries = prepared.accepted.map(({ message }) => entryOf(message, caller))
  signal.throwIfAborted() // told 504 already: nothing may be sent any more
  return store.tx(async (tx) => {
    const answers = await accept(tx, entries, "permissive")
    const { total, accepted, refused } = settled(prepared, answers, "permissive")
    const sent = accepted.map(({ index, message: { id, units } }) => ({
      ...{ index, id, status: "queued" as const, segments: units ?? 1 },
    }))
    const counts = { total, succeeded: sent.length, failed: refused.length }
    const answer = { data: { ...counts, results: resultsOf(refused, sent) } }
    await keepAnswer(tx, claim, answer)
    return answer
  }, project_id)
}

async function list(
  { store, cursors }: SmsParts,
  call: Call<unknown, Static<typeof schemas.smsQuery>>,
) {
  const { project_id, query } = call
  const { status, direction, tag } = query
  // A plus that the query does not escape is a space.
  const to = query.to && (phoneFrom(query.to) ?? query.to)
  const is_inbound = direction === "inbound" || (!direction && status === "received")
  const is_none = is_inbound && status !== undefined && status !== "received"
  const wanted: MessageListFilter = {
    ...{ status: is_inbound ? "received" : status, tag, ...datesOf(query) },
    ...(is_inbound ? { from: to } : { to }),
    ...((is_none || direction === "outbound" || (to !== undefined && !is_inbound)) && {
      is_sent: true,
    }),
  }
  return listPage(call, cursors, {
    find: (id) => sms.find(store.read, project_id, id),
    list: (window) => sms.list(store.read, project_id, wanted, window),
  })
}
