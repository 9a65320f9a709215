import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import type { Call } from "../http/call"
import { takeOrUndo } from "../http/idempotency"
import { asPage, type Cursors, keyById, windowOf } from "../http/page"
import { type AnyRoute, type Enveloped, route } from "../http/route"
import { Deleted, deleted } from "../http/texts"
import type { Store, Tx } from "../store/store"
import { vetUrl } from "./address"
import { deliveryRoutes } from "./delivered/routes"
import { type Changes, readPatch, readWebhook } from "./input"
import type { WebhookParts } from "./open"
import * as records from "./record-schemas"
import * as schemas from "./schemas"
import * as switching from "./switching"
import { testRoutes } from "./testing/routes"
import { checkTransform } from "./transform"
import { logWarnings, type WebhookWarning } from "./warnings"
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
  ...testRoutes(parts),
  ...deliveryRoutes(parts),
]

const by = <const Path extends string>(
  method: AnyRoute["method"],
  path: Path,
  status: 200 | 201 = 200,
) => ({
  method,
  path,
  callers: ["key", "console"] as AnyRoute["callers"],
  scope: method === "GET" ? "webhooks:read" : "webhooks:write",
  status: [status] as [number],
})

const idOf = ({ params }: { params: { webhook_id: string } }) => params.webhook_id

/** What answers with a secret; it is sealed where a repetition may ask for it. */
const makingRoutes = (parts: WebhookRouteParts): AnyRoute[] => [
  route({
    ...by("POST", ALL, 201),
    summary: "Make an endpoint",
    description:
      "The URL must be https and must lead to a public address. Deliveries are signed with `secret`, which cannot be shown again.",
    body: schemas.NewWebhook,
    example: { url: "https://example.com/hooks", events: ["email.*"], description: "Orders" },
    read: readWebhook,
    response: records.WithSecret,
    errors: ["invalid_url", "invalid_template", "plan_limit_exceeded"],
    idempotent: true,
    sealed: true,
    handle: async (call) => {
      const writing = await vet(parts, call.body)
      const answer = await tellOnce(parts, call, 201, (tx) =>
        webhooks.create(tx, writing, call.caller, call.body),
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
    response: records.Rotated,
    errors: ["webhook_not_found"],
    idempotent: true,
    sealed: true,
    handle: (call) => {
      const { expire_previous_now = false } = call.body
      const { secrets } = parts
      return tellOnce(parts, call, 200, (tx) =>
        webhooks.rotate(tx, secrets, call.caller, idOf(call), expire_previous_now),
      )
    },
  }),
]

/** What asks others: where the name leads to, and whether the transform is a template. */
async function vet(
  { webhooks, workers, secrets }: WebhookRouteParts,
  { url, transform }: Changes,
): Promise<webhooks.EndpointWriting> {
  const resolved = url === undefined ? undefined : await vetUrl(url, webhooks.address)
  if (transform) await checkTransform(workers, transform)
  return { secrets, resolved }
}

async function tellOnce<Made extends object>(
  { store, secrets }: WebhookRouteParts,
  { claim }: Pick<Call, "claim">,
  status: number,
  make: (tx: Tx) => Promise<Made>,
) {
  const data = await store.tx(async (tx) => {
    const made = await make(tx)
    await takeOrUndo(tx, claim, () => ({
      status,
      answer: secrets.seal(JSON.stringify({ data: made }), claim?.request ?? ""),
    }))
    return made
  })
  return { data }
}

const readingRoutes = ({ store, cursors }: WebhookRouteParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List endpoints, newest first",
    description:
      "The secrets are not shown. `held_count` is the number of events that wait while an endpoint is disabled.",
    query: schemas.webhookQuery,
    response: records.Webhook,
    meta: records.webhookListMeta,
    handle: async (call) => {
      const { project_id } = call
      const byId = keyById((id) => webhooks.find(store.read, project_id, id))
      const window = await windowOf(call, cursors, byId)
      const page = await webhooks.list(store.read, project_id, call.query.status, window)
      return withWarnings(await asPage(call, cursors, page), page.warnings)
    },
  }),
  route({
    ...by("GET", ONE),
    summary: "Show one endpoint",
    description: "`disabled_reason` says why an endpoint is disabled.",
    response: records.Webhook,
    errors: ["webhook_not_found"],
    handle: async (call) => ({
      data: await webhooks.get(store.read, call.project_id, idOf(call)),
    }),
  }),
]

/** A list of records has no room for what is odd about one of them, so it stands beside. */
function withWarnings<Row extends { id: string }>(
  page: Enveloped<Row[]>,
  all: Map<string, WebhookWarning[]>,
) {
  const warnings = page.data.flatMap(({ id }) =>
    (all.get(id) ?? []).map((warning) => ({ webhook_id: id, ...warning })),
  )
  return { ...page, meta: { ...page.meta, warnings } }
}

const changingRoutes = (parts: WebhookRouteParts): AnyRoute[] => [
  ...(["PATCH", "PUT"] as const).map((method) =>
    route({
      ...by(method, ONE),
      summary: "Change an endpoint",
      description:
        "Fields that are absent stay as they are. `enabled: false` pauses the endpoint, and `true` makes it active again. " +
        "Change the secret with `rotate-secret`. PATCH and PUT do the same.",
      changes: true,
      body: schemas.WebhookPatch,
      example: { events: ["email.bounced", "email.complained"], enabled: true },
      read: readPatch,
      response: records.WithWarnings,
      errors: ["webhook_not_found", "invalid_url", "invalid_template"],
      handle: async (call) => {
        const writing = await vet(parts, call.body)
        const { caller, body } = call
        const data = await parts.store.tx((tx) =>
          switching.patch(tx, writing, caller, idOf(call), body),
        )
        if (writing.resolved === false) logWarnings(data)
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
      await parts.store.tx((tx) => switching.remove(tx, call.caller, id))
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
    response: records.Webhook,
    errors: ["webhook_not_found"],
    handle: async (call) => {
      const { replay = "none" } = call.body
      const id = idOf(call)
      return { data: await store.tx((tx) => switching.enable(tx, call.caller, id, replay)) }
    },
  }),
  ...DISABLING.map(([verb, reason, summary]) =>
    route({
      ...by("POST", `${ONE}/${verb}`),
      summary,
      description:
        "The endpoint gets no more deliveries. Its events are held for 7 days. `enable` makes it active again.",
      response: records.Webhook,
      errors: ["webhook_not_found"],
      handle: async (call) => {
        const { caller } = call
        const id = idOf(call)
        return { data: await store.tx((tx) => switching.disableByHand(tx, caller, id, reason)) }
      },
    }),
  ),
]

const DISABLING = [
  ["disable", "manual", "Disable an endpoint and hold its events"],
  ["pause", "paused", "Pause an endpoint and hold its events"],
] as const satisfies [string, switching.ByHand, string][]
