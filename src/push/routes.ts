import type { Static } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { readItems } from "../http/bulk-items"
import { type Cursors, datesOf, listPage } from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import * as pushes from "./push"
import { Explanation, explain } from "./push-explanation"
import { PushInput, readSendPush } from "./push-input"
import { PushStats, stats, statsQuery } from "./push-stats"
import * as schemas from "./schemas"
import { type PushSendParts, sendPush, sendPushes } from "./send-push"

const SEND_LIMIT_BYTES = 262_144
const BATCH_LIMIT_BYTES = 1_048_576

export interface PushParts extends PushSendParts {
  cursors: Cursors
}

const ONE = "/v1/push/{push_id}"

const EXAMPLE = { user_id: "user-42", title: "Your table is ready", url: "/tables/7" }

export const pushRoutes = (parts: PushParts): AnyRoute[] => [
  ...sendRoutes(parts),
  ...readRoutes(parts),
]

function sendRoutes(parts: PushParts): AnyRoute[] {
  return [
    route({
      ...projectRow("POST", "/v1/push", "push:send", 201),
      summary: "Send a push message",
      description:
        "One message for each device that the target has. 201 means that they are stored on disk and will be sent. With an `Idempotency-Key`, a repeated request sends nothing twice.",
      sends: true,
      body: PushInput,
      example: EXAMPLE,
      read: readSendPush,
      response: schemas.PushSend,
      errors: schemas.SEND_ERRORS,
      limit: SEND_LIMIT_BYTES,
      idempotent: true,
      handle: (call) => sendPush(parts, call),
    }),
    route({
      ...projectRow("POST", "/v1/push/batch", "push:send"),
      summary: "Send up to 100 push messages",
      description: "Belfry accepts the valid messages and lists the others in `results`.",
      sends: true,
      body: schemas.BatchRequest,
      example: { messages: [EXAMPLE, { ...EXAMPLE, user_id: "user-43" }] },
      readRaw: readPushes,
      response: schemas.BatchResult,
      errors: schemas.SEND_ERRORS,
      limit: BATCH_LIMIT_BYTES,
      idempotent: true,
      handle: (call) => sendPushes(parts, call),
    }),
  ]
}

const LIST = { name: "messages", least: 1, most: 100, schema: PushInput, read: readSendPush }

const readPushes = (body: unknown, problems: Problems) => readItems(body, LIST, problems)

function readRoutes({ store, cursors }: PushParts): AnyRoute[] {
  return [
    route({
      ...projectRow("GET", "/v1/push", "push:read"),
      summary: "List push messages, newest first",
      description: "Filters can be combined.",
      query: schemas.pushQuery,
      response: schemas.ListedPush,
      handle: (call) => list({ store, cursors }, call),
    }),
    route({
      ...projectRow("GET", "/v1/push/stats", "push:read"),
      summary: "Count the push messages of a period",
      description:
        "Push messages by status, platform and provider. One belongs to the day on which it was accepted.",
      query: statsQuery,
      response: PushStats,
      handle: async ({ project_id, query }) => ({
        data: await stats(store.read, project_id, query.period),
      }),
    }),
    route({
      ...projectRow("GET", ONE, "push:read"),
      summary: "Show one push message, with its timeline",
      description: "The whole record. Content that is no longer stored is null.",
      response: schemas.PushMessage,
      handle: async (call) => ({ data: await pushes.get(store.read, ...named(call)) }),
    }),
    route({
      ...projectRow("GET", `${ONE}/explain`, "push:read"),
      summary: "Explain what happened to a push message, and why",
      description:
        "The whole way of the push message: each stage with what decided, from the caller to the deliveries of its events.",
      response: Explanation,
      handle: async (call) => ({ data: await explain(store.read, ...named(call)) }),
    }),
    route({
      ...projectRow("POST", `${ONE}/cancel`, "push:send"),
      summary: "Cancel a push message that is still queued",
      description: "Only a `queued` push message can be cancelled. It becomes `cancelled`.",
      response: schemas.PushMessage,
      errors: ["conflict"],
      handle: async (call) => {
        await pushes.cancel(store, ...named(call))
        return { data: await pushes.get(store.read, ...named(call)) }
      },
    }),
  ]
}

type OfPush = Pick<Call<unknown, unknown, { push_id: string }>, "project_id" | "params">

const named = ({ project_id, params }: OfPush): [string, string] => [project_id, params.push_id]

async function list(
  { store, cursors }: Pick<PushParts, "store" | "cursors">,
  call: Call<unknown, Static<typeof schemas.pushQuery>>,
) {
  const { project_id, query } = call
  const { status, user_id, platform, tag, batch_id } = query
  const to = await pushes.nameOfDevice(store.read, project_id, query.device_id)
  const wanted = { status, user_id, to, from: platform, tag, batch_id, ...datesOf(query) }
  return listPage(call, cursors, {
    find: (id) => pushes.find(store.read, project_id, id),
    list: (window) => pushes.list(store.read, project_id, wanted, window),
  })
}
