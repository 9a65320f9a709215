import { type Static, Type as t } from "@sinclair/typebox"
import type { Caller } from "../../accounts/caller"
import type { Secrets } from "../../core/secrets"
import { type AnyRoute, route } from "../../http/route"
import { Upgrade } from "../../http/socket"
import type { Reader, Store } from "../../store/store"
import { lastPlace, placeOf } from "../feed"
import { askedTypes } from "../patterns"
import type { Watching } from "../watching"
import { Forwarding } from "./forwarding"
import { stream } from "./streaming"

export interface StreamParts {
  store: Store
  secrets: Secrets
  watching: Watching
}

const query = t.Object({
  after: t.Optional(
    t.String({
      maxLength: 64,
      description:
        "The id of the last event seen; empty begins with the oldest. Without it only what is new.",
    }),
  ),
  types: t.Optional(
    t.String({ maxLength: 1000, description: "Comma list; `email.*` is allowed." }),
  ),
  forward: t.Boolean({ default: false, description: "Signed deliveries instead of events." }),
})

/** Events as they come, over a WebSocket; with `forward` as deliveries of a webhook. */
export const streamRoutes = (parts: StreamParts): AnyRoute[] => [
  route<unknown, Static<typeof query>>({
    method: "GET",
    path: "/v1/events/stream",
    callers: ["key", "console"],
    scope: "webhooks:read",
    status: [101],
    summary: "Events as they come, over a WebSocket of the subprotocol svc.events.v1",
    socket: "svc.events.v1",
    query,
    handle: async ({ caller, project_id, query }) => {
      const db = parts.store.read
      const types = askedTypes(query.types ?? "")
      const from = await startOf(db, project_id, query.after)
      const following = { db, project_id, from, types }
      if (query.forward) return new Upgrade(new Forwarding(following, secretOf(parts, caller)))
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
 * Made of who listens, not of chance: after a reconnect, or a restart of the server, the receiver
 * at the other end still holds the right one.
 */
function secretOf({ secrets }: StreamParts, { project_id, key_id, user_id }: Caller): string {
  const bytes = secrets.mac("forward", `${project_id}:${key_id ?? user_id}`)
  return `whsec_${bytes.toString("base64")}`
}
