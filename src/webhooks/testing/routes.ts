import type { Static } from "@sinclair/typebox"
import type { Workers } from "../../core/workers"
import { noSuchType } from "../../events/patterns"
import { lookup as typeOf } from "../../events/registry"
import { AlreadyAnswered, lookup, takeOrUndo } from "../../http/idempotency"
import type { Problems } from "../../http/problems"
import { RateLimits } from "../../http/rate-limit"
import { type AnyRoute, route } from "../../http/route"
import { SharedWindows } from "../../http/shared-windows"
import { check } from "../../http/validate"
import { engine } from "../../store/columns"
import type { Store } from "../../store/store"
import { attemptNow } from "../now"
import type { WebhookParts } from "../open"
import * as records from "../record-schemas"
import * as schemas from "../schemas"
import * as webhooks from "../webhooks"
import { planTest } from "./plan"

/** Of one endpoint (contract 00, section 7). */
const A_MINUTE = 10

/** Less than a request may take, so that a receiver that hangs is told as what it is. */
const LONGEST_MILLISECONDS = 25_000

interface Parts {
  store: Store
  workers: Workers
  webhooks: WebhookParts
}

export function testRoutes({ store, workers, webhooks: parts }: Parts): AnyRoute[] {
  const limits = new RateLimits(engine === "postgres" ? new SharedWindows(store) : undefined)
  return [
    route({
      method: "POST",
      path: "/v1/webhooks/{webhook_id}/test",
      callers: ["key", "console"],
      scope: "webhooks:write",
      status: [200],
      summary: "Send an example event to an endpoint now",
      description:
        "Sends one example event, also to a disabled endpoint, and shows the answer of the receiver. At most 10 tests a minute for each endpoint.",
      body: schemas.Test,
      example: { event_type: "email.delivered" },
      read: readTest,
      response: records.Tested,
      errors: ["webhook_not_found"],
      idempotent: true,
      handle: async ({ caller, project_id, params, body, claim }) => {
        const { id } = await webhooks.find(store.read, project_id, params.webhook_id)
        // What goes out cannot be undone, so it is asked for before, not behind it.
        if (claim && (await lookup(store.read, claim))) throw new AlreadyAnswered(claim)
        await limits.take(`webhook_test:${id}`, A_MINUTE, "webhook_test")
        const planned = await store.tx((tx) => planTest(tx, caller, id, body.event_type))
        const timeout_ms = Math.min(parts.way.timeout_ms, LONGEST_MILLISECONDS)
        const { way, failures } = parts
        const now = { store, workers, way: { ...way, timeout_ms }, failures }
        const data = await attemptNow(now, project_id, planned)
        const stored = () => ({ status: 200, answer: JSON.stringify({ data }) })
        await store.tx((tx) => takeOrUndo(tx, claim, stored))
        return { data }
      },
    }),
  ]
}

function readTest(body: unknown, problems: Problems): { event_type: string } {
  check(schemas.Test, body, problems)
  const { event_type = "webhook.test" } = (problems.any ? {} : body) as Static<typeof schemas.Test>
  if (!typeOf(event_type)) problems.add("event_type", "unknown_type", noSuchType(event_type))
  return { event_type }
}
