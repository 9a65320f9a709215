import type { Static } from "@sinclair/typebox"
import type { Workers } from "../core/workers"
import { noSuchType } from "../events/patterns"
import { lookup as typeOf } from "../events/registry"
import { AlreadyAnswered, lookup, takeOrUndo } from "../http/idempotency"
import type { Problems } from "../http/problems"
import { RateLimits } from "../http/rate-limit"
import { type AnyRoute, route } from "../http/route"
import { SharedWindows } from "../http/shared-windows"
import { check } from "../http/validate"
import { engine } from "../store/columns"
import type { Store } from "../store/store"
import type { WebhookParts } from "./open-webhooks"
import * as schemas from "./schemas"
import { attemptNow, planTest } from "./send-test"
import * as webhooks from "./webhooks"

/** Of one endpoint (contract 00, section 7). */
const A_MINUTE = 10

/** Shorter than the limit of an API request, so that a receiver that hangs is reported as a timeout. */
const LONGEST_MILLISECONDS = 25_000

interface TestRouteParts {
  store: Store
  workers: Workers
  webhooks: WebhookParts
}

export function testRoutes({ store, workers, webhooks: parts }: TestRouteParts): AnyRoute[] {
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
      response: schemas.Tested,
      errors: ["webhook_not_found"],
      idempotent: true,
      handle: async ({ caller, project_id, params, body, claim }) => {
        const { id } = await webhooks.find(store.read, project_id, params.webhook_id)
        // What goes out cannot be undone, so it is asked for before, not behind it.
        if (claim && (await lookup(store.read, claim))) throw new AlreadyAnswered(claim)
        await limits.take(`webhook_test:${id}`, A_MINUTE, "webhook_test")
        const planned = await store.tx((tx) => planTest(tx, caller, id, body.event_type))
        const timeout_ms = Math.min(parts.requests.timeout_ms, LONGEST_MILLISECONDS)
        const requests = { ...parts.requests, timeout_ms }
        const { failures } = parts
        const data = await attemptNow({ store, workers, requests, failures }, project_id, planned)
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
