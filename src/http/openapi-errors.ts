import { codes, type ErrorCode } from "../core/errors"
import { pageOf } from "./envelope"
import { commonHeaders, rateHeaders, reference } from "./openapi-components"
import { needOf } from "./permit"
import type { AnyRoute } from "./route"

interface Common {
  name: string
  about: string
  /** What any route of this status may answer. */
  list: readonly ErrorCode[]
}

const COMMON: Record<number, Common> = {
  400: { name: "BadRequest", about: "The body is not JSON.", list: ["invalid_json"] },
  401: { name: "Unauthorized", about: "The credential is not valid.", list: ["unauthorized"] },
  402: { name: "PaymentRequired", about: "The quota of the month is used up.", list: [] },
  403: {
    name: "Forbidden",
    about: "The credential is valid, but it may not do this.",
    list: ["forbidden", "ip_not_allowed", "account_locked", "account_suspended", "mfa_required"],
  },
  404: {
    name: "NotFound",
    about: "The record does not exist, or it belongs to another project.",
    list: ["not_found"],
  },
  409: {
    name: "Conflict",
    about: "The current state does not allow this, or the same request is still running.",
    list: ["conflict"],
  },
  413: { name: "TooLarge", about: "The body is too large.", list: ["payload_too_large"] },
  422: {
    name: "Unprocessable",
    about: "A field of the body, the query or a header is not valid.",
    list: ["validation_error", "missing_required_field"],
  },
  429: {
    name: "TooManyRequests",
    about: "There were too many requests. Wait for `Retry-After` seconds.",
    list: ["rate_limit_exceeded"],
  },
  500: { name: "InternalError", about: "The server failed.", list: ["internal_error"] },
  502: { name: "BadGateway", about: "A provider answered with an error.", list: [] },
  503: {
    name: "Unavailable",
    about: "The server cannot do this now. Try again after `Retry-After` seconds.",
    list: ["service_unavailable"],
  },
  504: { name: "Timeout", about: "The request took too long.", list: ["timeout"] },
}

const ANYWHERE = [413, 422, 429, 500, 503, 504]
const WAITING = [409, 429, 503]

/** Failures by status: a shared answer where the route has no codes of its own, else one with them. */
export function failuresOf(route: AnyRoute): Record<string, object> {
  const byStatus = new Map<number, ErrorCode[]>(commonStatuses(route).map((status) => [status, []]))
  for (const own of route.errors ?? []) {
    const [code, status] = typeof own === "string" ? [own, codes[own].status] : own
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const entries = [...byStatus].map(([status, own]) => [String(status), failureOf(status, own)])
  return Object.fromEntries(entries)
}

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
    ...(chosen || path.includes("{") ? [404] : []),
    ...(idempotent ? [409] : []),
  ]
}

function failureOf(status: number, own: ErrorCode[]): object {
  const common = COMMON[status]
  const special = own.filter((code) => !common?.list.includes(code))
  if (common && special.length === 0) return reference("responses", common.name)
  return failure(status, [...(common?.list ?? []), ...special])
}

function failure(status: number, list: readonly ErrorCode[]) {
  const words = list.map((code) => `\`${code}\``).join(", ")
  return {
    description: `${COMMON[status]?.about ?? "A failure."} \`error.code\`: ${words}.`,
    "x-error-codes": list,
    headers: {
      ...commonHeaders,
      ...rateHeaders,
      ...(WAITING.includes(status) && { "Retry-After": reference("headers", "RetryAfter") }),
    },
    content: {
      "application/json": { schema: reference("schemas", "Error"), example: exampleOf(list[0]) },
    },
  }
}

const exampleOf = (code = "internal_error") => ({
  error: { code, message: "A sentence for people. It may change.", details: {} },
  meta: { request_id: "req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c", docs: pageOf(code) },
})

/** The failures that routes share, by name. */
export const failures = (): Record<string, object> =>
  Object.fromEntries(
    Object.entries(COMMON)
      .filter(([, { list }]) => list.length > 0)
      .map(([status, { name, list }]) => [name, failure(Number(status), list)]),
  )
