import { fail } from "../core/errors"
import type { AllowedOrigins } from "../identity/caller"
import type { HeaderFields } from "./envelope"
import type { AnyRoute, CallerKind } from "./route"

/** Callers that are programs in a browser. Pages of other origins are answered for them alone. */
const BROWSER_CALLERS: readonly CallerKind[] = ["app", "user", "subscriber"]

export const isForBrowsers = ({ callers }: Pick<AnyRoute, "callers">): boolean =>
  callers.some((kind) => BROWSER_CALLERS.includes(kind))

/** Throws 403 `forbidden` for a page of an origin that may not speak for the caller. */
export function requireOrigin({ headers }: Request, allowed: AllowedOrigins | null): void {
  const origin = headers.get("origin")
  if (origin === null || allowed === null || isAllowed(origin, allowed)) return
  const message = `Pages of the origin ${origin} may not use this token. Add the origin to the setting allowed_origins.`
  fail("forbidden", message, { reason: "origin_not_allowed" })
}

/**
 * The headers by which a browser lets a page read the answer (Fetch standard, "CORS protocol"). None
 * where the caller is no browser's, where it is not known, and for an origin that is not allowed.
 */
export function corsHeaders(
  { headers }: Request,
  allowed: AllowedOrigins | null | undefined,
): HeaderFields {
  const origin = headers.get("origin")
  if (origin === null || !allowed || !isAllowed(origin, allowed)) return { vary: "Origin" }
  return {
    vary: "Origin",
    "access-control-allow-origin": origin,
    "access-control-expose-headers": READABLE,
  }
}

const isAllowed = (origin: string, allowed: AllowedOrigins) =>
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
  return {
    vary: "Origin, Access-Control-Request-Method",
    "access-control-allow-origin": origin,
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": SENDABLE,
    "access-control-max-age": String(KEPT_SECONDS),
  }
}
