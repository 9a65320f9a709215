import { Type as t } from "@sinclair/typebox"
import { codes, type ErrorCode, statusOf } from "../core/errors"
import { count, EXAMPLE_ID, flag, maybe, text } from "../lib/record-fields"
import { needOf } from "./authorize"
import { pageOf } from "./envelope"
import { FieldWarning } from "./field-schemas"
import type { AnyRoute } from "./route"

export const reference = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

export const securitySchemes = {
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "An API key: `svc_live_…`.",
  },
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "An API key, or the access token of a console session.",
  },
  applicationKey: {
    type: "apiKey",
    in: "header",
    name: "X-Application-Key",
    description:
      "A public key of an application: `svca_live_pub_…` or `svca_test_pub_…`. It names the application that a program belongs to. Beside another credential it names the application and the environment.",
  },
  applicationSecret: {
    type: "apiKey",
    in: "header",
    name: "X-Application-Secret",
    description:
      "The secret of an application: `svca_sec_…`. An API key with `auth:read` and `auth:write` for that application alone.",
  },
  userToken: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "The access token of an end user, from a sign-in.",
  },
  inboxToken: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "The token of a subscriber, from `POST /v1/subscriber-inbox/token`.",
  },
}

const string = { type: "string" }
const integer = { type: "integer" }

export const header = (
  name: string,
  schema: Record<string, unknown>,
  description: string,
  required = false,
) => ({ name, in: "header" as const, required, description, schema })

export const parameters = {
  IdempotencyKey: header(
    "Idempotency-Key",
    { ...string, pattern: "^[\\x21-\\x7e]{1,255}$" },
    "Makes a repetition safe for 24 hours. The same key with the same body gets the first answer again.",
  ),
  RequestId: header(
    "X-Request-Id",
    { ...string, pattern: "^[A-Za-z0-9_-]{8,64}$" },
    "The id of the request (default: the server makes one).",
  ),
  AccountId: header(
    "X-Account-Id",
    string,
    "The account of the request. Needed in a console session if the person belongs to several accounts.",
  ),
  ProjectId: header(
    "X-Project-Id",
    string,
    "The project of the request. Needed in a console session if the account has several projects.",
  ),
  Environment: header(
    "X-Environment",
    { ...string, enum: ["live", "test"] },
    "The environment of the application, if neither a public key nor the field `environment` says it (default: `live`).",
  ),
  Strict: header(
    "X-Strict",
    { ...string, enum: ["1"] },
    "`1` refuses unknown fields (default: they are ignored).",
  ),
}

const answered = (schema: object, description: string) => ({ description, schema })

export const headers = {
  RequestId: answered(string, "The id of the request, as in `meta.request_id`."),
  RateLimit: answered(
    string,
    "`r` is the number of requests that are left in the next `t` seconds (IETF form).",
  ),
  RateLimitPolicy: answered(string, "`q` requests are allowed in `w` seconds (IETF form)."),
  XRateLimitLimit: answered(integer, "The number of requests that are allowed in a minute."),
  XRateLimitRemaining: answered(integer, "The number of requests that are left in this minute."),
  XRateLimitReset: answered(integer, "The end of this minute, in Unix seconds."),
  IdempotentReplayed: answered(
    { ...string, enum: ["true"] },
    "Present if this is the stored answer of an earlier request.",
  ),
  SendingStatus: answered(
    { ...string, enum: ["active", "throttled", "frozen"] },
    "The sending status of the account. Absent without a credential.",
  ),
  SendingStatusReason: answered(string, "The reason of a status that is not `active`."),
  Link: answered(
    string,
    'The address of the next page: `<…>; rel="next"`. Absent on the last page.',
  ),
  RetryAfter: answered(
    integer,
    "Seconds to wait before the next attempt. Present with 429, 503 and 409 `in_progress`.",
  ),
}

/** What every answer carries, and what those under `/v1` carry besides. */
export const commonHeaders = { "X-Request-Id": reference("headers", "RequestId") }
export const rateHeaders = {
  "X-RateLimit-Limit": reference("headers", "XRateLimitLimit"),
  "X-RateLimit-Remaining": reference("headers", "XRateLimitRemaining"),
  "X-RateLimit-Reset": reference("headers", "XRateLimitReset"),
  RateLimit: reference("headers", "RateLimit"),
  "RateLimit-Policy": reference("headers", "RateLimitPolicy"),
  "X-Account-Sending-Status": reference("headers", "SendingStatus"),
  "X-Account-Sending-Status-Reason": reference("headers", "SendingStatusReason"),
}

const request_id = text("req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c")
const numbered = () =>
  t.Union([t.Integer(), t.Null()], { examples: [1], description: WITHOUT_CURSOR })
const WITHOUT_CURSOR = "Null if the request has a cursor."
const INCOMPLETE =
  "Present if the filter stopped before the end of the list, because it looks at a limited number of records in one request. The page may be empty. Continue with `next_cursor`. The totals are null."

const warnings = t.Optional(t.Array(FieldWarning, { description: "Absent if there are none." }))

/** What `meta` has: of one record, of a page, and of the feed. */
export const metas = {
  one: t.Object({ request_id, warnings }, { title: "Meta" }),
  page: t.Object(
    {
      request_id,
      warnings,
      page: numbered(),
      per_page: count(25),
      total: numbered(),
      total_pages: numbered(),
      has_more: flag(false),
      next_cursor: t.Union([t.String(), t.Null()], {
        examples: [null],
        description: "Null on the last page.",
      }),
      incomplete: t.Optional(t.Literal(true, { description: INCOMPLETE })),
    },
    { title: "ListMeta" },
  ),
  feed: t.Object(
    {
      request_id,
      warnings,
      next_after: maybe(text(`evt_${EXAMPLE_ID}`, "The `after` of the next request.")),
      next_before: t.Optional(
        maybe(text(`evt_${EXAMPLE_ID}`, "With `before`: the `before` of the next request.")),
      ),
      has_more: t.Boolean(),
    },
    { title: "FeedMeta" },
  ),
}

/** Some paths tell the error at the top as well, where clients of other services look for it. */
export const Failure = t.Object(
  {
    error: t.Object({
      code: t.String({ enum: Object.keys(codes) }),
      message: t.String({ description: "A text for people. It may change at any time." }),
      details: t.Unsafe({
        type: "object",
        description: "More about the error. The fields depend on the code. `{}` if there are none.",
      }),
    }),
    meta: t.Object(
      {
        request_id,
        warnings,
        docs: text("/docs/errors/validation_error", "The path of a page about the code."),
      },
      { title: "ErrorMeta" },
    ),
    name: t.Optional(
      t.String({
        description:
          "A copy of `error.code`. Only some paths have it, for clients of other services.",
      }),
    ),
    message: t.Optional(t.String({ description: "A copy of `error.message`, on the same paths." })),
    statusCode: t.Optional(t.Integer({ description: "A copy of the status, on the same paths." })),
  },
  { title: "Error" },
)

/** Shared answers: their name, what they mean, and the codes that any route may answer with. */
const COMMON: Record<number, readonly [name: string, about: string, ...list: ErrorCode[]]> = {
  400: ["BadRequest", "The body is not JSON.", "invalid_json"],
  401: ["Unauthorized", "The credential is not valid.", "unauthorized"],
  402: ["PaymentRequired", "The quota of the month is used up."],
  403: [
    "Forbidden",
    "The credential is valid, but it may not do this.",
    "forbidden",
    "ip_not_allowed",
    "account_locked",
    "account_suspended",
    "mfa_required",
  ],
  404: ["NotFound", "The record does not exist, or it belongs to another project.", "not_found"],
  409: [
    "Conflict",
    "The current state does not allow this, or the same request is still running.",
    "conflict",
  ],
  413: ["TooLarge", "The body is too large.", "payload_too_large"],
  422: [
    "Unprocessable",
    "A field of the body, the query or a header is not valid.",
    "validation_error",
    "missing_required_field",
  ],
  429: [
    "TooManyRequests",
    "There were too many requests. Wait for `Retry-After` seconds.",
    "rate_limit_exceeded",
  ],
  500: ["InternalError", "The server failed.", "internal_error"],
  502: ["BadGateway", "A provider answered with an error."],
  503: [
    "Unavailable",
    "The server cannot do this now. Try again after `Retry-After` seconds.",
    "service_unavailable",
  ],
  504: ["Timeout", "The request took too long.", "timeout"],
}

/** What any route may answer. */
export const commonCodes: string[] = Object.values(COMMON).flatMap(([, , ...list]) => list)

const ANYWHERE = [413, 422, 429, 500, 503, 504]
const WITH_RETRY_AFTER = [409, 429, 503]

/** Failures by status: a shared answer where the route has no codes of its own, else one with them. */
export function failuresOf(route: AnyRoute): Record<string, object> {
  const byStatus = new Map<number, ErrorCode[]>(commonStatuses(route).map((status) => [status, []]))
  for (const own of [...(route.errors ?? []), ...legacyRefused(route)]) {
    const [code, status] = typeof own === "string" ? [own, statusOf(own)] : own
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const entries = [...byStatus].map(([status, own]) => {
    const [name, , ...list] = COMMON[status] ?? ["", ""]
    const special = own.filter((code) => !list.includes(code))
    const is_shared = name !== undefined && special.length === 0
    const answer = is_shared ? reference("responses", name) : failure(status, [...list, ...special])
    return [String(status), answer]
  })
  return Object.fromEntries(entries)
}

/** Whether the request says which environment of which application it is for. */
export function namesEnvironment({ body, query }: AnyRoute): boolean {
  const fields = { ...body?.properties, ...query?.properties }
  return "application_id" in fields && "environment" in fields
}

const legacyRefused = ({ callers, any_environment }: AnyRoute): ErrorCode[] =>
  callers.includes("app") && !any_environment ? ["environment_required"] : []

function commonStatuses(route: AnyRoute): number[] {
  const { callers, method, path, idempotent } = route
  const is_open = callers.includes("none")
  const for_people = callers.includes("console")
  const chosen = for_people && !is_open && needOf(route) !== "user" // an account, or a project
  return [
    ...ANYWHERE,
    ...(method === "GET" ? [] : [400]),
    ...(is_open && !for_people ? [] : [401]),
    ...(is_open ? [] : [403]),
    ...(chosen || path.includes("{") || namesEnvironment(route) ? [404] : []),
    ...(idempotent ? [409] : []),
  ]
}

function failure(status: number, list: ErrorCode[]) {
  const [, about = "A failure."] = COMMON[status] ?? []
  const [code = "internal_error"] = list
  const example = {
    error: { code, message: "A sentence for people. It may change.", details: {} },
    meta: { request_id: "req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c", docs: pageOf(code) },
  }
  return {
    description: `${about} \`error.code\`: ${list.map((one) => `\`${one}\``).join(", ")}.`,
    "x-error-codes": list,
    headers: {
      ...commonHeaders,
      ...rateHeaders,
      ...(WITH_RETRY_AFTER.includes(status) && {
        "Retry-After": reference("headers", "RetryAfter"),
      }),
    },
    content: { "application/json": { schema: reference("schemas", "Error"), example } },
  }
}

/** The failures that routes share, by name. */
export const failures = (): Record<string, object> =>
  Object.fromEntries(
    Object.entries(COMMON).flatMap(([status, [name, , ...list]]) =>
      list.length > 0 ? [[name, failure(Number(status), list)]] : [],
    ),
  )
