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
    "Makes a repetition safe for 24 hours. The same key with the same body gets the first answer again.",
  ),
  RequestId: header(
    "X-Request-Id",
    { type: "string", pattern: "^[A-Za-z0-9_-]{8,64}$" },
    "The id of the request (default: the server makes one).",
  ),
  AccountId: header(
    "X-Account-Id",
    text,
    "The account of the request. Needed in a console session if the person belongs to several accounts.",
  ),
  ProjectId: header(
    "X-Project-Id",
    text,
    "The project of the request. Needed in a console session if the account has several projects.",
  ),
  Strict: header(
    "X-Strict",
    { type: "string", enum: ["1"] },
    "`1` refuses unknown fields (default: they are ignored).",
  ),
}

export const headers = {
  RequestId: { description: "The id of the request, as in `meta.request_id`.", schema: text },
  RateLimit: {
    description: "`r` is the number of requests that are left in the next `t` seconds (IETF form).",
    schema: text,
  },
  RateLimitPolicy: {
    description: "`q` requests are allowed in `w` seconds (IETF form).",
    schema: text,
  },
  XRateLimitLimit: {
    description: "The number of requests that are allowed in a minute.",
    schema: count,
  },
  XRateLimitRemaining: {
    description: "The number of requests that are left in this minute.",
    schema: count,
  },
  XRateLimitReset: { description: "The end of this minute, in Unix seconds.", schema: count },
  IdempotentReplayed: {
    description: "Present if this is the stored answer of an earlier request.",
    schema: { type: "string", enum: ["true"] },
  },
  SendingStatus: {
    description: "The sending status of the account. Absent without a credential.",
    schema: { type: "string", enum: ["active", "throttled", "frozen"] },
  },
  SendingStatusReason: {
    description: "The reason of a status that is not `active`.",
    schema: text,
  },
  Link: {
    description: 'The address of the next page: `<…>; rel="next"`. Absent on the last page.',
    schema: text,
  },
  RetryAfter: {
    description:
      "Seconds to wait before the next attempt. Present with 429, 503 and 409 `in_progress`.",
    schema: count,
  },
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
    name: {
      ...text,
      description:
        "A copy of `error.code`. Only some paths have it, for clients of other services.",
    },
    message: { ...text, description: "A copy of `error.message`, on the same paths." },
    statusCode: { ...count, description: "A copy of the status, on the same paths." },
  },
})

/** What `meta` has: of one record, of a page, and of the feed. */
const request_id = { ...text, examples: ["req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c"] }

export const metas = {
  Meta: object({ request_id }),
  ListMeta: object({
    request_id,
    page: {
      ...nullable("integer"),
      examples: [1],
      description: "Null if the request has a cursor.",
    },
    per_page: { ...count, examples: [25] },
    total: {
      ...nullable("integer"),
      examples: [1],
      description: "Null if the request has a cursor.",
    },
    total_pages: {
      ...nullable("integer"),
      examples: [1],
      description: "Null if the request has a cursor.",
    },
    has_more: { type: "boolean", examples: [false] },
    next_cursor: { ...nullable("string"), examples: [null], description: "Null on the last page." },
  }),
  ErrorMeta: object({
    request_id,
    docs: {
      ...text,
      examples: ["/docs/errors/validation_error"],
      description: "The path of a page about the code.",
    },
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
      message: { ...text, description: "A text for people. It may change at any time." },
      details: {
        type: "object",
        description: "More about the error. The fields depend on the code. `{}` if there are none.",
      },
    }),
    meta: reference("schemas", "ErrorMeta"),
  }),
})
