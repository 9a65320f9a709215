import ipaddr from "ipaddr.js"
import { isAllowed, isOurs, isPublic } from "./addresses"
import { settings } from "./config"
import { type Resolver, resolver } from "./dns"
import { codeOf } from "./faults"
import { monotonic } from "./time"

export type NetErrorKind =
  | "timeout"
  | "dns"
  | "tls"
  | "connection"
  | "blocked_address"
  | "invalid_url"

/** No answer was received, and why. The message carries no header and no body. */
export class NetError extends Error {
  override readonly name = "NetError"
  readonly kind: NetErrorKind

  constructor(kind: NetErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

export interface NetRequest {
  url: string
  method?: string | undefined
  /** `Host` and the framing headers are ours and are taken out. CR or LF throws TypeError. */
  headers?: Record<string, string> | undefined
  body?: string | Uint8Array<ArrayBuffer> | undefined
  /** For everything together: names, connection, answer and body. */
  timeout_ms: number
  /** So much of the body is kept; the rest is not read. */
  capture_bytes: number
  /** Networks, addresses and host names that may be private. */
  allow_private: readonly string[]
  /** Default: the name servers of the settings. */
  resolver?: Pick<Resolver, "a" | "aaaa"> | undefined
  /** PEM of the authorities to trust instead of the well-known ones. */
  ca?: string | undefined
}

export interface NetAnswer {
  status: number
  headers: Headers
  body: Uint8Array<ArrayBuffer>
  /** The body was longer than `capture_bytes`. */
  truncated: boolean
  duration_ms: number
}

/**
 * The one way out over HTTP: resolves the name, judges every address, connects to the address that
 * was judged. Any status is an answer; redirects are not followed, bodies not decompressed, proxies
 * of the environment not used. Throws NetError.
 */
export async function request(options: NetRequest): Promise<NetAnswer> {
  const started = monotonic()
  const url = checkedUrl(options.url)
  const stop = new AbortController()
  const deadline = AbortSignal.timeout(Math.max(1, options.timeout_ms))
  const signal = AbortSignal.any([stop.signal, deadline])
  try {
    const address = await race(addressFor(url, options), deadline)
    const response = await fetch(pinned(url, address), init(url, options, signal))
    const { status, headers } = response
    const { body, truncated } = await capture(response, options.capture_bytes)
    return { status, headers, body, truncated, duration_ms: Math.round(monotonic() - started) }
  } catch (error) {
    throw explained(error, url, deadline.aborted, options.timeout_ms)
  } finally {
    // Whatever is still coming is nothing that anybody will read.
    stop.abort()
  }
}

function checkedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new NetError("invalid_url", "the URL must begin with http:// or https://")
  }
  if (url.username || url.password) {
    throw new NetError("invalid_url", "the URL must not hold a user name or a password")
  }
  return url
}

/** The host of the URL without the brackets of an IPv6 address and without the root's dot. */
const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")

const addressFor = (url: URL, options: NetRequest): Promise<string> =>
  judgedAddress(hostOf(url), Number(url.port || (url.protocol === "https:" ? 443 : 80)), options)

/**
 * The address of a host that somebody else named, to connect to: every one it has must be public
 * or allowed, and none may be ours. Throws NetError `dns` or `blocked_address`.
 */
export async function judgedAddress(
  host: string,
  port: number,
  options: Pick<NetRequest, "allow_private" | "resolver">,
): Promise<string> {
  const addresses = ipaddr.isValid(host) ? [host] : await resolve(host, options)
  // One bad answer refuses all: a name that points inwards even sometimes is not to be trusted.
  const refused = addresses.some(
    (address) =>
      isOurs(address, port) ||
      !(isPublic(address) || isAllowed(host, address, options.allow_private)),
  )
  const [first] = addresses
  if (first === undefined) throw new NetError("dns", `${host} has no address`)
  if (refused) throw new NetError("blocked_address", `${host} is at an address that is refused`)
  return first
}

/** IPv4 first, because it is the one that always has a route. */
async function resolve(host: string, options: Pick<NetRequest, "resolver">): Promise<string[]> {
  // RFC 6761 6.3: never asked of a name server. It is judged like any other address.
  if (/(^|\.)localhost$/.test(host)) return ["127.0.0.1"]
  const names = options.resolver ?? resolver({ servers: settings()["dns.servers"] })
  const [a, aaaa] = await Promise.allSettled([names.a(host), names.aaaa(host)])
  const found = [a, aaaa].flatMap((result) => (result.status === "fulfilled" ? result.value : []))
  if (found.length > 0) return found
  const failure = [a, aaaa].find((result) => result.status === "rejected")
  if (failure) throw new NetError("dns", `${host} cannot be resolved`, failure.reason)
  return []
}

function pinned(url: URL, address: string): string {
  const host = address.includes(":") ? `[${address}]` : address
  return `${url.protocol}//${host}${url.port && `:${url.port}`}${url.pathname}${url.search}`
}

function init(url: URL, options: NetRequest, signal: AbortSignal): BunFetchRequestInit {
  const { method = "GET", body, ca } = options
  const host = hostOf(url)
  const authorities = ca === undefined ? {} : { ca }
  // Without the server's name the certificate would be checked against the pinned address.
  const tls = ipaddr.isValid(host) ? authorities : { ...authorities, serverName: host }
  return {
    method,
    headers: headersFor(url, options.headers ?? {}),
    redirect: "manual",
    decompress: false,
    // "" and null would still let the environment's proxy resolve the name for us.
    proxy: false,
    signal,
    ...(body !== undefined && { body }),
    ...(url.protocol === "https:" && { tls }),
  }
}

function headersFor(url: URL, given: Record<string, string>): Headers {
  const headers = new Headers(given)
  if (!headers.has("user-agent")) headers.set("user-agent", "Belfry")
  if (!headers.has("accept-encoding")) headers.set("accept-encoding", "identity")
  for (const name of ["connection", "content-length", "transfer-encoding"]) headers.delete(name)
  headers.set("host", url.host)
  return headers
}

async function capture(response: Response, cap: number) {
  const parts: Uint8Array[] = []
  let seen = 0
  // Left by `break`: aborting inside the loop would make the iterator throw.
  for await (const chunk of response.body ?? []) {
    parts.push(chunk.subarray(0, Math.max(0, cap - seen)))
    seen += chunk.length
    if (seen > cap) break
  }
  return { body: new Uint8Array(Buffer.concat(parts)), truncated: seen > cap }
}

/** DNS has deadlines of its own, but they are not ours. */
function race<T>(work: Promise<T>, deadline: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    deadline.addEventListener("abort", () => reject(deadline.reason), { once: true })
    work.then(resolve, reject)
  })
}

const tls_codes = /^(ERR_TLS|ERR_SSL|CERT_|EPROTO|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_)/

function explained(error: unknown, url: URL, late: boolean, timeout_ms: number): Error {
  if (error instanceof NetError) return error
  const { host } = url
  if (late) return new NetError("timeout", `no answer from ${host} in ${timeout_ms} ms`, error)
  const code = codeOf(error)
  // Without a code it is no trouble of the network but a mistake in what we were given.
  if (code === undefined && error instanceof TypeError) return error
  const reason = code ?? (error instanceof Error ? error.message : String(error))
  if (tls_codes.test(reason) || /CERT/.test(reason)) {
    return new NetError("tls", `TLS with ${host} failed: ${reason}`, error)
  }
  return new NetError("connection", `the connection to ${host} failed: ${reason}`, error)
}
