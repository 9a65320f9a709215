import { Type as t } from "@sinclair/typebox"
import { fail } from "../../core/errors"
import { type AnyRoute, route } from "../../http/route"
import { Upgrade } from "../../http/sockets"
import { isSecret, newSecret } from "../../lib/signature"
import type { Reader, Store } from "../../store/store"
import { lastPlace, placeOf } from "../feed"
import { askedTypes } from "../patterns"
import type { Watching } from "../watching"
import { Forwarding } from "./forwarding"
import { stream } from "./streaming"

export interface StreamParts {
  store: Store
  watching: Watching
}

const query = t.Object({
  after: t.Optional(
    t.String({
      maxLength: 64,
      description:
        "The id of the last event that you have read. An empty value begins with the oldest event (default: only new events).",
    }),
  ),
  types: t.Optional(
    t.String({
      maxLength: 1000,
      description: "Event types, separated by commas. `email.*` is allowed.",
    }),
  ),
  forward: t.Boolean({ default: false, description: "Send signed deliveries instead of events." }),
})

const SECRET_HEADER = "x-svc-listen-secret"

const headers = t.Object({
  "X-Svc-Listen-Secret": t.Optional(
    t.String({
      description:
        "The secret that signs the deliveries of `forward`: `whsec_` and the base64 of 24 to 64 bytes.",
    }),
  ),
})

/** Events as they come, over a WebSocket; with `forward` as deliveries of a webhook. */
export const streamRoutes = (parts: StreamParts): AnyRoute[] => [
  route({
    method: "GET",
    path: "/v1/events/stream",
    callers: ["key", "console"],
    scope: "webhooks:read",
    status: [101],
    summary: "Stream events over a WebSocket",
    description:
      "Connect with a WebSocket and the subprotocol `svc.events.v1`. With `forward=true` the server sends signed deliveries, and the client sends back the answers of its receiver.",
    socket: "svc.events.v1",
    query,
    headers,
    handle: async ({ request, project_id, query }) => {
      const secret = query.forward ? listenSecret(request) : undefined
      const db = parts.store.read
      const types = askedTypes(query.types ?? "")
      const from = await startOf(db, project_id, query.after)
      const following = { db, project_id, from, types }
      if (secret !== undefined) return new Upgrade(new Forwarding(following, secret))
      return new Upgrade({ begin: (wire) => stream(wire, following, parts.watching) })
    },
  }),
]

/** Fixed before the connection opens: nothing that happens afterwards is missed. */
async function startOf(db: Reader, project_id: string, after: string | undefined) {
  if (after === "") return undefined
  if (after !== undefined) return await placeOf(db, project_id, after)
  return await lastPlace(db, project_id)
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
  const fields = [{ path: SECRET_HEADER, code: "invalid", message }]
  return fail("validation_error", `X-Svc-Listen-Secret: ${message}`, {
    header: "X-Svc-Listen-Secret",
    fields,
  })
}
