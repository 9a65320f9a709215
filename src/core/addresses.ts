import { networkInterfaces } from "node:os"
import ipaddr from "ipaddr.js"

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Networks that are not the public internet and that the library has no class for. */
const refused = [
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

/**
 * Whether the address belongs to the public internet, judged by its bytes. An IPv4 address inside
 * an IPv6 one is judged as what it is (mapped, RFC 4291; NAT64, RFC 6052); tunnels (6to4, Teredo)
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

const bare = (name: string) => name.toLowerCase().replace(/\.$/, "")

/** By port, because nearly every question ends there. */
const own = new Map<number, string[]>()

/**
 * Registers an address where this process listens, so that no request from outside can make the
 * process call itself. Every address of the machine is meant by `0.0.0.0`, `::` and "". Returns the
 * function that unregisters it.
 */
export function listening(address: string, port: number): () => void {
  own.set(port, [...(own.get(port) ?? []), address])
  let listens = true
  return () => {
    if (!listens) return
    listens = false
    const left = own.get(port) ?? []
    left.splice(left.indexOf(address), 1)
    if (left.length === 0) own.delete(port)
  }
}

/** Whether a connection there would end at one of our own listeners. */
export function isOurs(text: string, port: number): boolean {
  const hosts = own.get(port)
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

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && !refused.some((network) => address.match(network))
}

function lastFour(address: ipaddr.IPv6): ipaddr.IPv4 {
  return new ipaddr.IPv4(address.toByteArray().slice(12))
}

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

/** Whether a text is an address, so that no name server need be asked for it. */
export const isLiteral = (text: string) => parse(text) !== undefined

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

/** Whether the text is an IP address of either family. */
export const isAddress = (text: string): boolean => ipaddr.isValid(text)
