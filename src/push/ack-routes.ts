import { Type as t } from "@sinclair/typebox"
import type { Secrets } from "../core/secrets"
import { requireOrigin } from "../http/cors"
import { optionalText } from "../http/field-schemas"
import { type AnyRoute, route, SHORT_BYTES } from "../http/route"
import { flag, word } from "../lib/record-fields"
import type { Store } from "../store/store"
import { noteAck } from "./acks"
import { ACKS } from "./tables"

/** Longer than any of ours. */
const MOST_TOKEN = 64

const AckBody = t.Object({
  event: word(ACKS, "What became of the message on the device."),
  ack_token: optionalText({
    maxLength: MOST_TOKEN,
    description: "From the `data` of the message.",
  }),
})

const Acknowledged = t.Object(
  { recorded: flag(true, "False where the device told so before.") },
  { title: "PushAcknowledged" },
)

/** How devices tell what became of a push message. The token in the message proves it, in a page of any origin. */
export const ackRoutes = (parts: { store: Store; secrets: Secrets }): AnyRoute[] => [
  route({
    ...{ method: "POST", path: "/v1/push/{push_id}/ack", scope: "-", status: [200] },
    callers: ["app", "user", "subscriber", "none"],
    any_origin: true,
    any_environment: true,
    summary: "Acknowledge a push message",
    description:
      "A device tells that it shows the message, or that a person opened or dismissed it. `/sw.js` does so by itself. Without a credential, `ack_token` from the `data` of the message is needed.",
    body: AckBody,
    example: { event: "opened", ack_token: "q83vEjRWeJCrze8SNFZ4kA" },
    response: Acknowledged,
    errors: ["unauthorized", "forbidden"],
    limit: SHORT_BYTES,
    handle: async ({ caller, request, params, body }) => {
      if (body.ack_token === undefined) requireOrigin(request, caller.allowed_origins)
      return { data: { recorded: await noteAck(parts, caller, params.push_id, body) } }
    },
  }),
]
