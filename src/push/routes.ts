import type { Problems } from "../core/errors"
import { readItems } from "../http/bulk-items"
import { type AnyRoute, projectRow, route } from "../http/route"
import { PushInput, readSendPush } from "./push-input"
import * as schemas from "./schemas"
import { type PushSendParts, sendPush, sendPushes } from "./send-push"

const SEND_LIMIT_BYTES = 262_144
const BATCH_LIMIT_BYTES = 1_048_576

export interface PushParts extends PushSendParts {}

const EXAMPLE = { user_id: "user-42", title: "Your table is ready", url: "/tables/7" }

export const pushRoutes = (parts: PushParts): AnyRoute[] => [...sendRoutes(parts)]

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
