import { fail } from "../core/errors"
import { type AllowedOrigins, isBrowserCaller } from "../identity/caller"
import { isWithin } from "../lib/ip-ranges"
import type { HeaderFields } from "./envelope"
import type { AnyRoute } from "./route"

export const isForBrowsers = ({ callers }: Pick<AnyRoute, "callers">): boolean =>
  callers.some(isBrowserCaller)

/** Throws 403 `forbidden` for a page of an origin that may not speak for the caller. */
export function requireOrigin({ headers }: Request, allowed: AllowedOrigins | null): void {
  const origin = headers.get("origin")
  if (origin === null || allowed === null || isAllowed(origin, allowed)) return
  const message = `Pages of the origin ${origin} may not use this credential. Add the origin to allowed_origins: of the project for subscribers, of the application for its users.`
  fail("forbidden", message, { reason: "origin_not_allowed" })
}

/**
 * The headers by which a browser lets a page read the answer (Fetch standard, "CORS protocol"). None
 * where the caller is no browser's, where it is not known, and for an origin that is not allowed.
 */
export function corsHeaders(
  { headers }: Request,
  allowed: AllowedOrigins | null | undefined,
  { any_origin }: Pick<AnyRoute, "any_origin">,
): HeaderFields {
  if (any_origin) {
    return { "access-control-allow-origin": "*", "access-control-expose-headers": READABLE }
  }
  const origin = headers.get("origin")
  if (origin === null || !allowed || !isAllowed(origin, allowed)) return { vary: "Origin" }
  return {
    vary: "Origin",
    "access-control-allow-origin": origin,
    "access-control-expose-headers": READABLE,
  }
}

export const isAllowed = (origin: string, allowed: AllowedOrigins) =>
  allowed === "any" || allowed.includes(origin)

/** What a page may read of an answer, beside what any page may. */
const READABLE = [
  "X-Request-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "RateLimit",
  "RateLimit-Policy",
  "Retry-After",
  "Link",
  "Idempotent-Replayed",
].join(", ")

/** What a page may send. An API key and the secret of an application are not among them. */
const SENDABLE = [
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "X-Application-Key",
  "X-Request-Id",
  "X-Strict",
].join(", ")

/** For so long a browser need not ask again. */
const KEPT_SECONDS = 600

/**
 * The answer to a browser that asks before a request. It has no credential, so no project is known,
 * and every origin is told yes: the request itself is refused where its origin is not allowed.
 * Undefined where the request is no such question, or where no page may ask what it wants to.
 */
export function preflight(request: Request, routes: AnyRoute[]): HeaderFields | undefined {
  const origin = request.headers.get("origin")
  const wanted = request.headers.get("access-control-request-method")
  const methods = routes.filter(isForBrowsers).map(({ method }) => method)
  if (origin === null || !methods.some((method) => method === wanted)) return undefined
  const is_open = routes.some(({ method, any_origin }) => any_origin && method === wanted)
  return {
    vary: "Origin, Access-Control-Request-Method",
    "access-control-allow-origin": is_open ? "*" : origin,
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": SENDABLE,
    "access-control-max-age": String(KEPT_SECONDS),
  }
}

/** Only a page of the same origin can send it without asking before (Fetch standard, "CORS protocol"). */
const PAGE_HEADER = "x-belfry-csrf"

/**
 * Throws 403 `forbidden` for a request that no page of this server made. The browser says where it is from
 * in `Sec-Fetch-Site` (Fetch Metadata), an older one in `Origin` (RFC 6454, section 7).
 */
export function requireOwnPage({ headers }: Request, base_url: string): void {
  if (!isOwnOrigin(headers, base_url)) {
    const message =
      "Only pages of this server may call this route, and the request is from elsewhere. Programs call POST /v1/session."
    fail("forbidden", message, { reason: "cross_origin" })
  }
  if (headers.get(PAGE_HEADER) === "1") return
  const message = "The header X-Belfry-CSRF: 1 is missing. Pages of this server send it."
  fail("forbidden", message, { reason: "csrf_header_missing" })
}

/** A proxy may change `Host`, so the public address counts, too. */
function isOwnOrigin(headers: Headers, base_url: string): boolean {
  const site = headers.get("sec-fetch-site")
  if (site !== null) return site === "same-origin"
  const origin = headers.get("origin")
  if (origin === null || !URL.canParse(origin)) return false
  const own = URL.canParse(base_url) && new URL(base_url).origin === origin
  return own || new URL(origin).host === headers.get("host")
}

const LOOPBACK = ["127.0.0.0/8", "::1"]
const OF_PROXIES = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"]

/**
 * Throws 401 for a request that was not made on this machine: from another address, through a proxy or a
 * tunnel, or under a name that only points here. A proxy may put this machine's name in `Host`, and say
 * nothing of itself; but `Origin` stays the page's.
 */
export function requireThisMachine({ headers }: Request, ip: string): void {
  const is_passed_on = OF_PROXIES.some((name) => headers.has(name))
  const origin = headers.get("origin")
  const names = [
    hostOf(`http://${headers.get("host") ?? ""}`),
    ...(origin === null ? [] : [hostOf(origin)]),
  ]
  if (isWithin(ip, LOOPBACK) && !is_passed_on && names.every(isOfLoopback)) return
  const message =
    "This link works only in a browser on the machine of the server. Elsewhere sign in with an API key."
  fail("unauthorized", message, { reason: "not_this_machine" })
}

/** The name without the port; an IPv6 address without its brackets. */
const hostOf = (url: string): string => URL.parse(url)?.hostname.replace(/^\[|\]$/g, "") ?? ""

const isOfLoopback = (name: string): boolean => name === "localhost" || isWithin(name, LOOPBACK)
