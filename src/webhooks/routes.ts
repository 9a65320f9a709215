import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type Cursors, listPage } from "../http/page"
import { type AnyRoute, route } from "../http/route"
import type { Store } from "../store/store"
import { checkTransform } from "../templates/transform"
import { by, deliveryRoutes } from "./delivery-routes"
import { assertPublicUrl, type EndpointChanges, readPatch, readWebhook } from "./endpoint-input"
import type { WebhookParts } from "./open-webhooks"
import * as schemas from "./schemas"
import * as status from "./status"
import * as webhooks from "./webhooks"

const ALL = "/v1/webhooks"
const ONE = `${ALL}/{webhook_id}` as const

export interface WebhookRouteParts {
  store: Store
  cursors: Cursors
  secrets: Secrets
  workers: Workers
  webhooks: WebhookParts
}

export const webhookRoutes = (parts: WebhookRouteParts): AnyRoute[] => [
  ...makingRoutes(parts),
  ...readingRoutes(parts),
  ...changingRoutes(parts),
  ...switchRoutes(parts),
  ...deliveryRoutes(parts),
]

const idOf = ({ params }: { params: { webhook_id: string } }) => params.webhook_id

/** Their answers hold a secret, which is sealed where it is stored for a repeated request. */
const makingRoutes = (parts: WebhookRouteParts): AnyRoute[] => [
  route({
    ...by("POST", ALL, 201),
    summary: "Make an endpoint",
    description:
      "The URL must be https and must lead to a public address. Deliveries are signed with `secret`, which cannot be shown again.",
    body: schemas.NewWebhook,
    example: { url: "https://example.com/hooks", events: ["email.*"], description: "Orders" },
    read: readWebhook,
    response: schemas.WithSecret,
    errors: ["invalid_url", "invalid_template", "plan_limit_exceeded"],
    idempotent: true,
    sealed: true,
    handle: async (call) => {
      const context = await assertPublic(parts, call.body)
      const answer = await answerOnce(parts.store, call.claim, (tx) =>
        webhooks.create(tx, context, call.caller, call.body),
      )
      logWarnings(answer.data)
      return answer
    },
  }),
  route({
    ...by("POST", `${ONE}/rotate-secret`),
    summary: "Replace the signing secret",
    description:
      "For 24 hours, deliveries carry the signatures of both secrets, so that receivers can change over. `expire_previous_now` ends the old secret at once.",
    body: schemas.Rotation,
    example: { expire_previous_now: false },
    response: schemas.Rotated,
    errors: ["webhook_not_found"],
    idempotent: true,
    sealed: true,
    handle: (call) => {
      const { expire_previous_now = false } = call.body
      const { secrets } = parts
      return answerOnce(parts.store, call.claim, (tx) =>
        webhooks.rotate(tx, secrets, call.caller, idOf(call), expire_previous_now),
      )
    },
  }),
]

/** The checks that leave the transaction: where the host leads to, and whether the transform compiles. */
async function assertPublic(
  { webhooks, workers, secrets }: WebhookRouteParts,
  { url, transform }: EndpointChanges,
): Promise<webhooks.EndpointContext> {
  const resolved = url === undefined ? undefined : await assertPublicUrl(url, webhooks.address)
  if (transform) await checkTransform(workers, transform)
  return { secrets, resolved }
}

/** For the operator, because the caller may not look at the warnings of the answer. */
function logWarnings({ id, warnings }: { id: string; warnings: webhooks.WebhookWarning[] }) {
  for (const { message } of warnings) log.warn(message, { webhook_id: id })
}

const readingRoutes = ({ store, cursors }: WebhookRouteParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List endpoints, newest first",
    description:
      "The secrets are not shown. `held_count` is the number of events that wait while an endpoint is disabled.",
    query: schemas.webhookQuery,
    response: schemas.Webhook,
    meta: schemas.webhookListMeta,
    handle: async (call) => {
      const { project_id, query } = call
      const { data, ...page } = await listPage(call, cursors, {
        find: (id) => webhooks.find(store.read, project_id, id),
        list: (window) => webhooks.list(store.read, project_id, query.status, window),
      })
      const all = data.flatMap(({ id, warnings }) =>
        warnings.map((warning) => ({ webhook_id: id, ...warning })),
      )
      const rows = data.map(({ warnings: _, ...row }) => row)
      return { ...page, data: rows, meta: { ...page.meta, warnings: all } }
    },
  }),
  route({
    ...by("GET", ONE),
    summary: "Show one endpoint",
    description: "`disabled_reason` says why an endpoint is disabled.",
    response: schemas.Webhook,
    errors: ["webhook_not_found"],
    handle: async (call) => ({
      data: await webhooks.get(store.read, call.project_id, idOf(call)),
    }),
  }),
]

const changingRoutes = (parts: WebhookRouteParts): AnyRoute[] => [
  ...(["PATCH", "PUT"] as const).map((method) =>
    route({
      ...by(method, ONE),
      summary: method === "PUT" ? "Change an endpoint, by PUT" : "Change an endpoint",
      description:
        "Fields that are absent stay as they are. `enabled: false` pauses the endpoint, and `true` makes it active again. " +
        "Change the secret with `rotate-secret`. PATCH and PUT do the same.",
      changes: true,
      body: schemas.WebhookPatch,
      example: { events: ["email.bounced", "email.complained"], enabled: true },
      read: readPatch,
      response: schemas.WithWarnings,
      errors: ["webhook_not_found", "invalid_url", "invalid_template"],
      handle: async (call) => {
        const context = await assertPublic(parts, call.body)
        const { caller, body } = call
        const data = await parts.store.tx((tx) =>
          status.patch(tx, context, caller, idOf(call), body),
        )
        if (context.resolved === false) logWarnings(data)
        return { data }
      },
    }),
  ),
  route({
    ...by("DELETE", ONE),
    summary: "Delete an endpoint",
    description: "Its open deliveries end as `exhausted`.",
    response: Deleted,
    errors: ["webhook_not_found"],
    handle: async (call) => {
      const id = idOf(call)
      await parts.store.tx((tx) => status.remove(tx, call.caller, id))
      return deleted(id)
    },
  }),
]

const switchRoutes = ({ store }: WebhookRouteParts): AnyRoute[] => [
  route({
    ...by("POST", `${ONE}/enable`),
    summary: "Make an endpoint active",
    description:
      'Sets the count of failures to 0. `replay: "held"` sends the held events. Otherwise their deliveries end as `exhausted`.',
    body: schemas.Enabling,
    example: { replay: "held" },
    response: schemas.Webhook,
    errors: ["webhook_not_found"],
    handle: async (call) => {
      const { replay = "none" } = call.body
      const id = idOf(call)
      return { data: await store.tx((tx) => status.enable(tx, call.caller, id, replay)) }
    },
  }),
  ...DISABLING.map(([verb, reason, summary]) =>
    route({
      ...by("POST", `${ONE}/${verb}`),
      summary,
      description:
        "The endpoint gets no more deliveries. Its events are held for 7 days. `enable` makes it active again.",
      response: schemas.Webhook,
      errors: ["webhook_not_found"],
      handle: async (call) => {
        const { caller } = call
        const id = idOf(call)
        return { data: await store.tx((tx) => status.disableByHand(tx, caller, id, reason)) }
      },
    }),
  ),
]

const DISABLING = [
  ["disable", "manual", "Disable an endpoint and hold its events"],
  ["pause", "paused", "Pause an endpoint and hold its events"],
] as const satisfies [string, status.ManualReason, string][]
