import { isAllowed, isLiteral, isOurs, isPublic } from "./addresses"
import { settings } from "./config"
import { type Resolver, resolver } from "./dns"

/** Throws NetError (`invalid_url`). */
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

/** The host and port that a URL names. */
export interface Destination {
  url: URL
  host: string
  port: number
  /** The host is an address: no name server is asked. */
  is_literal: boolean
}

/** Most requests go to few places, and reading a URL is dear. */
const places = new Map<string, Destination>()
const MOST_PLACES = 1000

/** Throws NetError (`invalid_url`). */
export function destinationOf(text: string): Destination {
  const known = places.get(text)
  if (known) return known
  const url = checkedUrl(text)
  const host = hostOf(url)
  const place = { url, host, port: portOf(url), is_literal: isLiteral(host) }
  if (places.size >= MOST_PLACES) places.clear()
  places.set(text, place)
  return place
}

/** The host of the URL without the brackets of an IPv6 address and without the root's dot. */
const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")

const portOf = (url: URL) => Number(url.port || (url.protocol === "https:" ? 443 : 80))

export interface AddressPolicy {
  /** Networks, addresses and host names that may be private. */
  allow_private: readonly string[]
  /** Default: the name servers of the settings. */
  resolver?: Pick<Resolver, "a" | "aaaa"> | undefined
}

/**
 * The address to connect to, out of one answer of the name servers in which every address is fit.
 * Throws NetError (`dns`, `blocked_address`), or the signal's reason when that comes first.
 */
export async function addressFor(
  { host, port, is_literal }: Pick<Destination, "host" | "port" | "is_literal">,
  options: AddressPolicy,
  signal?: AbortSignal,
): Promise<string> {
  const answer = is_literal ? [host] : resolve(host, options)
  const addresses = await (signal && !is_literal ? unlessAborted(answer, signal) : answer)
  // One bad answer refuses all: a name that points inwards even sometimes is not to be trusted.
  const refused = addresses.some(
    (address) =>
      isOurs(address, port) ||
      !(isPublic(address) || isAllowed(host, address, options.allow_private)),
  )
  const [first] = addresses
  if (first === undefined) throw new NetError("dns", `${host} has no address`)
  if (refused) throw new NetError("blocked_address", `${host} has an address that is not allowed`)
  return first
}

/** As `addressFor`, for a host and a port without a URL. */
export const allowedAddress = (
  host: string,
  port: number,
  options: AddressPolicy,
): Promise<string> => addressFor({ host, port, is_literal: isLiteral(host) }, options)

/** Questions on their way: many deliveries to one host begin at the same moment. */
const asked = new Map<string, Promise<string[]>>()

function resolve(host: string, { resolver: own }: AddressPolicy): Promise<string[]> {
  // RFC 6761 6.3: never asked of a name server. It is judged like any other address.
  if (/(^|\.)localhost$/.test(host)) return Promise.resolve(["127.0.0.1"])
  if (own) return ask(host, own)
  const running = asked.get(host)
  if (running) return running
  const names = resolver({ servers: settings()["dns.servers"] })
  const answer = ask(host, names).finally(() => asked.delete(host))
  asked.set(host, answer)
  return answer
}

/** IPv4 first, because it is the one that always has a route. */
async function ask(host: string, names: Pick<Resolver, "a" | "aaaa">): Promise<string[]> {
  const [a, aaaa] = await Promise.allSettled([names.a(host), names.aaaa(host)])
  const found = [a, aaaa].flatMap((result) => (result.status === "fulfilled" ? result.value : []))
  if (found.length > 0) return found
  const failure = [a, aaaa].find((result) => result.status === "rejected")
  if (failure) throw new NetError("dns", `${host} cannot be resolved`, failure.reason)
  return []
}

/** The resolver has its own deadlines. The caller's signal ends the wait earlier. */
function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener("abort", () => reject(signal.reason), { once: true })
    Promise.resolve(work).then(resolve, reject)
  })
}

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
