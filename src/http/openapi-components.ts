import { codes } from "../core/errors"
import { EXAMPLE_ID } from "../lib/record-fields"

const text = { type: "string" } as const
const count = { type: "integer" } as const
const object = (properties: Record<string, object>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
})
const nullable = (type: string) => ({ type: [type, "null"] })

export const securitySchemes = {
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "`svc_live_…`" },
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "An API key, or the access token of a console session.",
  },
}

const header = (name: string, schema: object, description: string) => ({
  name,
  in: "header" as const,
  required: false,
  description,
  schema: schema as Record<string, unknown>,
})

export const parameters = {
  IdempotencyKey: header(
    "Idempotency-Key",
    { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
    "Makes a repetition safe for 24 hours: the same key and body get the first answer again.",
  ),
  RequestId: header(
    "X-Request-Id",
    { type: "string", pattern: "^[A-Za-z0-9_-]{8,64}$" },
    "Taken over as the request's id; otherwise the server makes one.",
  ),
  AccountId: header(
    "X-Account-Id",
    text,
    "The account that a console session speaks of; needed where its user belongs to several.",
  ),
  ProjectId: header(
    "X-Project-Id",
    text,
    "The project that a console session speaks of; needed where the account has several.",
  ),
  Strict: header(
    "X-Strict",
    { type: "string", enum: ["1"] },
    "Unknown fields are refused instead of ignored.",
  ),
}

export const headers = {
  RequestId: { description: "The request's id, as in meta.request_id.", schema: text },
  RateLimit: { description: "`r` requests are left, for `t` seconds (IETF form).", schema: text },
  RateLimitPolicy: { description: "`q` requests in `w` seconds.", schema: text },
  XRateLimitLimit: { description: "Requests a minute.", schema: count },
  XRateLimitRemaining: { description: "Requests left in this minute.", schema: count },
  XRateLimitReset: { description: "Epoch seconds at which the minute ends.", schema: count },
  IdempotentReplayed: {
    description: "Present when this is the stored answer of an earlier request.",
    schema: { type: "string", enum: ["true"] },
  },
  SendingStatus: {
    description: "Whether the account may send. With a credential only.",
    schema: { type: "string", enum: ["active", "throttled", "frozen"] },
  },
  SendingStatusReason: { description: "Why, where it is not `active`.", schema: text },
  Link: { description: '`<…>; rel="next"`, while there is more.', schema: text },
  RetryAfter: { description: "Seconds to wait; with 429, 503 and 409 in progress.", schema: count },
}

export const reference = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

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

/** Some paths tell the error at the top as well, where clients of other services look for it. */
const withFlatError = (properties: Record<string, object>) => ({
  ...object(properties),
  properties: {
    ...properties,
    name: { ...text, description: "`error.code` again, on paths that some clients expect it on." },
    message: { ...text, description: "`error.message` again, on the same paths." },
    statusCode: { ...count, description: "The status again, on the same paths." },
  },
})

/** What `meta` has: of one record, of a page, and of the feed. */
const request_id = { ...text, examples: ["req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c"] }

export const metas = {
  Meta: object({ request_id }),
  ListMeta: object({
    request_id,
    page: { ...nullable("integer"), examples: [1], description: "Null while a cursor is used." },
    per_page: { ...count, examples: [25] },
    total: { ...nullable("integer"), examples: [1], description: "Null while a cursor is used." },
    total_pages: {
      ...nullable("integer"),
      examples: [1],
      description: "Null while a cursor is used.",
    },
    has_more: { type: "boolean", examples: [false] },
    next_cursor: { ...nullable("string"), examples: [null], description: "Null on the last page." },
  }),
  FeedMeta: object({
    request_id,
    next_after: {
      ...nullable("string"),
      examples: [`evt_${EXAMPLE_ID}`],
      description: "The `after` of the next request.",
    },
    has_more: { type: "boolean" },
  }),
}

export const schemas = (): Record<string, Record<string, unknown>> => ({
  ...metas,
  Error: withFlatError({
    error: object({
      code: { type: "string", enum: Object.keys(codes) },
      message: { ...text, description: "For people. It may change at any time." },
      details: { type: "object", description: "Depends on the code; `{}` where it has none." },
    }),
    meta: reference("schemas", "Meta"),
  }),
})
