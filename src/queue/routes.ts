import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, projectRow, route } from "../http/route"
import { count, maybe, rarely, text, time, word } from "../lib/record-fields"
import type { Store } from "../store/store"
import { openWork } from "./queue"

const OpenWork = t.Object(
  {
    by_state: t.Array(
      t.Object({
        queue: text("email"),
        state: word(["retrying", "waiting", "running", "held"]),
        reason: maybe(text("451 4.7.1 Try again later")),
        count: count(12),
        oldest_seconds: count(340),
        next_attempt_at: maybe(time()),
        lease_until: rarely(time("Time at which the first lease of running work ends.")),
      }),
    ),
    by_domain: t.Array(
      t.Object({
        domain: text("example.com"),
        waiting: count(12),
        running: count(1),
        paused_until: rarely(time()),
        reason: rarely(text("421 4.7.0 Too many connections")),
      }),
    ),
  },
  { title: "OpenWork" },
)

const meta = t.Object({ incomplete: t.Optional(t.Boolean()) })

export const queueRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/queue", "webhooks:read"),
    summary: "Show the open work of a project, by state and by recipient domain",
    description:
      "Waiting, running and retried work, with the reason and the time of the next attempt. Belfry counts all open messages. If there are many, reasons and domains are those of the oldest 500, and `meta.incomplete` is true.",
    response: OpenWork,
    meta,
    handle: async ({ project_id }) => {
      const { work, incomplete } = await openWork(store.read, project_id)
      return { data: work, meta: incomplete ? { incomplete } : {} }
    },
  }),
]
