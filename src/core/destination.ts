import { networkInterfaces } from "node:os"
import ipaddr from "ipaddr.js"
import { settings } from "./config"
import { type Resolver, resolver } from "./dns"
import { unlessAborted } from "./time"

/** The host and port that a URL names. */
export interface Destination {
  url: URL
  /** Of the URL, read once: each look into a URL object costs as much as the rest of a request's start. */
  protocol: string
  /** As the field Host says it. */
  authority: string
  /** What follows the host in the URL. */
  tail: string
  host: string
  port: number
  /** The host is an address: no name server is asked. */
  is_literal: boolean
}

/** Throws NetError (`invalid_url`). */
export function destinationOf(text: string): Destination {
  const known = places.get(text)
  if (known) return known
  const url = checkedUrl(text)
  const host = hostOf(url)
  const { protocol, host: authority, port: written, pathname, search } = url
  const port = Number(written || (protocol === "https:" ? 443 : 80))
  const tail = `${written && `:${written}`}${pathname}${search}`
  const is_literal = isLiteral(host)
  const place = { url, protocol, authority, tail, host, port, is_literal }
  if (places.size >= MOST_PLACES) places.clear()
  places.set(text, place)
  return place
}

/** Most requests go to few places, and reading a URL is dear. */
const places = new Map<string, Destination>()
const MOST_PLACES = 1000

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

/** The host of the URL without the brackets of an IPv6 address and without the root's dot. */
const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")

export interface AddressPolicy {
  /** Networks, addresses and host names that may be private. */
  allow_private: readonly string[]
  /** Without TLS nothing is asked but what `allow_private` names. */
  tls_outside?: boolean | undefined
  /** Default: the name servers of the settings. */
  resolver?: Pick<Resolver, "a" | "aaaa"> | undefined
}

/**
 * The address to connect to, out of one answer of the name servers in which every address is fit.
 * Throws NetError (`dns`, `blocked_address`, `invalid_url`), or the signal's reason when that comes first.
 */
export async function addressFor(
  { host, port, is_literal, protocol }: Place,
  options: AddressPolicy,
  signal?: AbortSignal,
): Promise<string> {
  const addresses = is_literal ? [host] : await resolved(host, options, signal)
  const isOpened = (address: string) => isAllowed(host, address, options.allow_private)
  const isFit = (address: string) => isPublic(address) || isOpened(address)
  // One bad answer refuses all: a name that points inwards even sometimes is not to be trusted.
  const refused = addresses.some((address) => isOurs(address, port) || !isFit(address))
  const [first] = addresses
  if (first === undefined) throw new NetError("dns", `${host} has no address`)
  if (options.tls_outside && protocol === "http:" && !addresses.every(isOpened))
    throw new NetError("invalid_url", "the URL must begin with https://")
  if (!refused) return first
  const is_here = addresses.every((address) => isOurs(address, port) && isFit(address))
  const reason = `${host} has an address that is not allowed`
  throw new NetError("blocked_address", reason, is_here ? THIS_SERVER : undefined)
}

type Place = Pick<Destination, "host" | "port" | "is_literal"> & { protocol?: string }

/** The cause of a `blocked_address` where the URL is fit otherwise, and leads to a port of this process. */
export const THIS_SERVER = Symbol("this server")

function resolved(host: string, options: AddressPolicy, signal: AbortSignal | undefined) {
  const answer = resolve(host, options)
  return signal ? unlessAborted(answer, signal) : answer
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
  // RFC 6761 6.3: never asked of a name server. It is checked like any other address.
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

/**
 * Whether the address belongs to the public internet, by its bytes. An IPv4 address inside
 * an IPv6 one counts as what it is (mapped, RFC 4291; NAT64, RFC 6052); tunnels (6to4, Teredo)
 * and what cannot be read are refused. RFC 6890 for the classes.
 */
export function isPublic(text: string): boolean {
  const address = parse(text)
  if (!address) return false
  if (address instanceof ipaddr.IPv4) return isPublicV4(address)
  if (address.match(nat64)) return isPublicV4(lastFour(address))
  return address.match(global_unicast) && address.range() === "unicast"
}

/**
 * Whether the operator allows this destination: a network or an address, or the host's own name.
 */
export function isAllowed(host: string, text: string, allow_private: readonly string[]): boolean {
  const address = parse(text)
  const name = bare(host)
  return readList(allow_private).some((entry) => {
    if (entry.name === name) return true
    return entry.network && address ? isInside(address, entry.network) : false
  })
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && !not_public.some((network) => address.match(network))
}

function lastFour(address: ipaddr.IPv6): ipaddr.IPv4 {
  return new ipaddr.IPv4(address.toByteArray().slice(12))
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Networks that are not the public internet and that the library has no class for. */
const not_public = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/3",
].map((network) => ipaddr.IPv4.parseCIDR(network))

/** The only block of IPv6 that is given out for the public internet. */
const global_unicast = ipaddr.IPv6.parseCIDR("2000::/3")
const nat64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96")

interface Allowed {
  name: string
  network: [Address, number] | undefined
}

/** The list is the same one at every request, so it is read once. */
const lists = new WeakMap<readonly string[], Allowed[]>()

function readList(list: readonly string[]): Allowed[] {
  const known = lists.get(list)
  if (known?.length === list.length) return known
  const read = list.map((entry) => ({ name: bare(entry), network: networkOf(entry) }))
  lists.set(list, read)
  return read
}

/** An address of IPv6 may have its brackets, as URLs write it. */
const bare = (name: string) => name.toLowerCase().replace(/^\[|[\].]$/g, "")

function networkOf(entry: string): [Address, number] | undefined {
  if (ipaddr.isValidCIDR(entry)) return ipaddr.parseCIDR(entry)
  const address = parse(entry)
  return address && [address, address.kind() === "ipv4" ? 32 : 128]
}

function isInside(address: Address, [network, bits]: [Address, number]): boolean {
  if (address instanceof ipaddr.IPv4) {
    return network instanceof ipaddr.IPv4 && address.match(network, bits)
  }
  return network instanceof ipaddr.IPv6 && address.match(network, bits)
}

/** By port, because nearly every question ends there. */
const own_ports = new Map<number, string[]>()

/**
 * Registers an address where this process listens, so that no request from outside can make the
 * process call itself. Every address of the machine is meant by `0.0.0.0`, `::` and "". Returns the
 * function that unregisters it.
 */
export function listening(address: string, port: number): () => void {
  own_ports.set(port, [...(own_ports.get(port) ?? []), address])
  let listens = true
  return () => {
    if (!listens) return
    listens = false
    const left = own_ports.get(port) ?? []
    left.splice(left.indexOf(address), 1)
    if (left.length === 0) own_ports.delete(port)
  }
}

/** Whether a connection there would end at one of our own listeners. */
export function isOurs(text: string, port: number): boolean {
  const hosts = own_ports.get(port)
  if (!hosts) return false
  const address = parse(text)?.toNormalizedString()
  return hosts.some((host) => {
    const bound = parse(host)
    if (bound && bound.range() !== "unspecified") return bound.toNormalizedString() === address
    return isOfThisMachine(address)
  })
}

function isOfThisMachine(address: string | undefined): boolean {
  if (!address) return false
  if (["loopback", "unspecified"].includes(ipaddr.process(address).range())) return true
  const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return interfaces.some((entry) => parse(entry.address)?.toNormalizedString() === address)
}

/** Whether a text is an address, so that no name server need be asked for it. */
export const isLiteral = (text: string) => parse(text) !== undefined

/** Most requests go to few places, and reading an address is dear. */
const parsed = new Map<string, Address | undefined>()
const MOST_PARSED = 1000

/** IPv4-mapped IPv6 becomes the IPv4 address it is; a zone (`%eth0`) makes no difference. */
function parse(text: string): Address | undefined {
  if (parsed.has(text)) return parsed.get(text)
  const bare = text.replace(/%.*$/, "")
  const address = ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
  if (parsed.size >= MOST_PARSED) parsed.clear()
  parsed.set(text, address)
  return address
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
  /** There was no connection yet: nothing of the request can have left. */
  readonly unsent?: boolean

  constructor(kind: NetErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}
