import type { Static } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import type { Workers } from "../core/workers"
import { matchesType } from "../events/emit"
import { eventTypes, isPattern, noSuchType, lookup as typeOf } from "../events/registry"
import { answerOnce, keepAnswer, refuseAnswered } from "../http/idempotency"
import { type Cursors, listPage, readTime } from "../http/page"
import { RateLimits } from "../http/rate-limits"
import {
  type AnyRoute,
  type Call,
  type Enveloped,
  type Method,
  projectRow,
  route,
} from "../http/route"
import { pathOf, queryOf } from "../http/target"
import { Job } from "../jobs/schemas"
import type { Reader, Store } from "../store/store"
import * as deliveries from "./deliveries"
import * as counts from "./endpoint-counts"
import { ownTypeOf } from "./endpoint-input"
import type { WebhookParts } from "./open-webhooks"
import * as resend from "./resend"
import * as schemas from "./schemas"
import { attemptNow, planTest } from "./send-test"
import * as webhooks from "./webhooks"

const HOOK = "/v1/webhooks/{webhook_id}"
const ALL = `${HOOK}/deliveries` as const
const ONE = `${ALL}/{delivery_id}` as const

/** Tests of one endpoint in a minute (contract 00, section 7). */
const TESTS_A_MINUTE = 10

/** Shorter than the limit of an API request, so that a receiver that hangs is reported as a timeout. */
const LONGEST_TEST_MILLISECONDS = 25_000

interface DeliveryRouteParts {
  store: Store
  cursors: Cursors
  workers: Workers
  webhooks: WebhookParts
}

export const deliveryRoutes = (parts: DeliveryRouteParts): AnyRoute[] => [
  testRoute(parts),
  ...readingRoutes(parts),
  ...resendRoutes(parts),
]

export const by = <const Path extends string>(method: Method, path: Path, status = 200) =>
  projectRow(method, path, method === "GET" ? "webhooks:read" : "webhooks:write", status)

interface CallOfEndpoint {
  project_id: string
  params: { webhook_id: string }
}

/** The endpoint of the path. Throws 404 where the project has no such endpoint. */
async function endpointOf(db: Reader, { project_id, params: { webhook_id } }: CallOfEndpoint) {
  await webhooks.find(db, project_id, webhook_id)
  return { project_id, webhook_id }
}

function testRoute({ store, workers, webhooks: parts }: DeliveryRouteParts): AnyRoute {
  let limits: RateLimits | undefined
  return route({
    ...by("POST", `${HOOK}/test`),
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
      await refuseAnswered(store.read, claim)
      limits ??= new RateLimits(store.isAlone ? undefined : store)
      await limits.take(`webhook_test:${id}`, TESTS_A_MINUTE, "webhook_test")
      const planned = await store.tx((tx) => planTest(tx, caller, id, body.event_type))
      const timeout_ms = Math.min(parts.requests.timeout_ms, LONGEST_TEST_MILLISECONDS)
      const requests = { ...parts.requests, timeout_ms }
      const data = await attemptNow({ ...parts, store, workers, requests }, project_id, planned)
      await store.tx((tx) => keepAnswer(tx, claim, { data }))
      return { data }
    },
  })
}

function readTest(
  { event_type = "webhook.test" }: Static<typeof schemas.Test>,
  problems: Problems,
) {
  if (!typeOf(event_type)) problems.add("event_type", "unknown_type", noSuchType(event_type))
  return { event_type }
}

type DeliveryQuery = Static<typeof schemas.deliveryQuery>

const readingRoutes = ({ store, cursors }: DeliveryRouteParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List the deliveries of an endpoint, newest first",
    description:
      "One delivery is one event for one endpoint, with all its attempts. Filter the list with `status`, `event_type`, `event_id` and `since`.",
    query: schemas.deliveryQuery,
    response: schemas.Delivery,
    errors: ["webhook_not_found"],
    meta: schemas.deliveryMeta,
    handle: (call) => list(store, cursors, call),
  }),
  route({
    ...by("GET", ONE),
    summary: "Show one delivery with its request and answer",
    description:
      "Shows the body that was sent, the headers of both sides, and every attempt. Credentials are masked.",
    response: schemas.DeliveryDetail,
    errors: ["webhook_not_found"],
    handle: async (call) => {
      const of = await endpointOf(store.read, call)
      return { data: await deliveries.detail(store.read, of, call.params.delivery_id) }
    },
  }),
  route({
    ...by("GET", `${HOOK}/stats`),
    summary: "Show the results of the deliveries of the last day or week",
    description:
      "Counts the attempts that ended within the `window`: `24h` (default) or `7d`, in whole hours. `held` is the number of deliveries that are held now.",
    query: schemas.statsQuery,
    response: schemas.Stats,
    errors: ["webhook_not_found"],
    handle: async (call) => {
      const of = await endpointOf(store.read, call)
      return { data: await counts.stats(store.read, of.webhook_id, call.query.window ?? "24h") }
    },
  }),
]

async function list(
  store: Store,
  cursors: Cursors,
  call: Call<unknown, DeliveryQuery, CallOfEndpoint["params"]>,
) {
  const { query, request } = call
  const problems = new Problems()
  const since = query.since === undefined ? undefined : readTime("since", query.since, problems)
  const event_type = query.event_type === undefined ? undefined : ownTypeOf(query.event_type)
  if (event_type !== undefined && !typeOf(event_type)) {
    problems.add("event_type", "unknown_type", noSuchType(event_type))
  }
  problems.throwIfAny()
  const of = await endpointOf(store.read, call)
  const filter = { status: query.status, event_type, event_id: query.event_id, since }
  const counted = byOffset(query, request)
  const paged = { ...call, query: counted.query }
  const answer = await listPage(paged, cursors, {
    find: (id) => deliveries.find(store.read, of, id),
    list: (window) => deliveries.list(store.read, of, filter, { ...window, ...counted.window }),
  })
  return counted.meta ? withMeta(answer, counted.meta, request) : answer
}

/** `limit` and `offset` say the same as `per_page` and `page`, where the offset is a whole page. */
function byOffset(query: DeliveryQuery, request: Request) {
  const given = queryOf(request)
  const is_asked = given.has("limit") || given.has("offset")
  // A row or a cursor defines where the page begins.
  if (!is_asked || (query.cursor ?? query.after ?? query.before) !== undefined) return { query }
  const { per_page: limit, offset = (query.page - 1) * limit } = query
  const page = Math.floor(offset / limit) + 1
  return { query: { ...query, page }, window: { offset }, meta: { limit, offset } }
}

function withMeta<Data>(
  answer: Enveloped<Data>,
  more: { limit: number; offset: number },
  request: Request,
) {
  const { link, ...headers } = answer.headers ?? {}
  // A page number cannot express an offset that is not a whole page.
  const by_number = link !== undefined && !/[?&]cursor=/.test(link)
  const next = link && { link: by_number ? `<${linkAfter(request, more)}>; rel="next"` : link }
  return { ...answer, headers: { ...headers, ...next }, meta: { ...answer.meta, ...more } }
}

function linkAfter(request: Request, { limit, offset }: { limit: number; offset: number }): string {
  const search = queryOf(request)
  search.delete("page")
  search.set("offset", String(offset + limit))
  return `${pathOf(request)}?${search}`
}

const resendRoutes = ({ store }: DeliveryRouteParts): AnyRoute[] => [
  route({
    ...by("POST", `${ONE}/retry`),
    summary: "Attempt a delivery again at once",
    description:
      "Adds one attempt, also to a delivery that has ended. The delivery shows the result.",
    response: schemas.Delivery,
    errors: ["webhook_not_found", "conflict"],
    idempotent: true,
    handle: (call) =>
      answerOnce(store, call.claim, async (tx) =>
        deliveries.retry(tx, await endpointOf(tx, call), call.params.delivery_id),
      ),
  }),
  route({
    ...by("POST", `${ALL}/bulk-retry`, 201),
    summary: "Attempt all failed deliveries of a time span again",
    description: "Begins a job. An empty body selects every delivery that failed or is exhausted.",
    body: schemas.BulkRetry,
    example: { status: ["exhausted"], since: "2026-11-20T00:00:00.000Z" },
    read: readBulkRetry,
    response: Job,
    errors: ["webhook_not_found"],
    idempotent: true,
    handle: (call) =>
      answerOnce(store, call.claim, (tx) =>
        resend.bulkRetry(tx, call.caller, call.params.webhook_id, call.body),
      ),
  }),
  route({
    ...by("POST", `${HOOK}/replay`, 201),
    summary: "Send held events, failed events or all events again",
    description:
      "Begins a job that sends stored events since a time again. The endpoint must be active.",
    body: schemas.Replay,
    example: { since: "2026-11-20T00:00:00.000Z", event_types: ["email.*"] },
    read: readReplay,
    response: Job,
    errors: ["webhook_not_found", "conflict"],
    idempotent: true,
    handle: (call) =>
      answerOnce(store, call.claim, (tx) =>
        resend.replay(tx, call.caller, call.params.webhook_id, call.body),
      ),
  }),
]

const readBulkRetry = (
  { status = ["failed", "exhausted"], ...span }: Static<typeof schemas.BulkRetry>,
  problems: Problems,
) => ({ status, ...readRange(span, problems) })

const readReplay = (
  { status = "held", ...span }: Static<typeof schemas.Replay>,
  problems: Problems,
) => ({ status, ...readRange(span, problems) })

/** Patterns become exact types. No type means all of them. */
function readRange(
  { event_types = [], since, until }: Omit<Static<typeof schemas.BulkRetry>, "status">,
  problems: Problems,
): resend.ResendRange {
  for (const [at, pattern] of event_types.entries()) {
    if (!isPattern(pattern)) problems.add(`event_types.${at}`, "unknown_type", noSuchType(pattern))
  }
  const moment = (name: string, text: string | undefined) =>
    text === undefined ? null : (readTime(name, text, problems) ?? null)
  const bounds = { since: moment("since", since), until: moment("until", until) }
  if (bounds.since !== null && bounds.until !== null && bounds.until <= bounds.since) {
    problems.add("until", "invalid", "`until` must be later than `since`.")
  }
  if (event_types.includes("*")) return { event_types: [], ...bounds }
  const types = eventTypes.filter(({ type }) => matchesType(event_types, type))
  return { event_types: types.map(({ type }) => type), ...bounds }
}
