import { fail } from "../core/errors"
import { isWithin } from "../lib/ip-ranges"

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
