import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, route } from "../http/route"
import { oneOf, orNull } from "../http/texts"
import type { Store } from "../store/store"
import { openWork } from "./queue"

const Queue = t.Object({
  by_state: t.Array(
    t.Object({
      queue: t.String(),
      state: oneOf("waiting", "retrying", "running", "held"),
      reason: orNull(t.String()),
      count: t.Integer(),
      oldest_seconds: t.Integer(),
      next_attempt_at: orNull(t.String()),
      lease_until: orNull(t.String({ description: "Of what runs: the first lease to run out." })),
    }),
  ),
  by_domain: t.Array(
    t.Object({
      domain: t.String(),
      waiting: t.Integer(),
      running: t.Integer(),
      paused_until: orNull(t.String()),
      reason: orNull(t.String()),
    }),
  ),
})

export const queueRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    method: "GET",
    path: "/v1/queue",
    callers: ["key", "console"],
    scope: "webhooks:read",
    status: [200],
    summary: "The project's open work: by state, and mail by the recipient's domain",
    response: Queue,
    handle: async ({ project_id }) => ({ data: await openWork(store.read, project_id) }),
  }),
]
