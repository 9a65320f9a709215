import { readFileSync } from "node:fs"
import { Packet } from "dns2"
import ipaddr from "ipaddr.js"
import {
  answerOf,
  askServer,
  bareName,
  codeOf,
  DnsError,
  type DnsRow,
  type DnsType,
  deniedBy,
  questionName,
  type Server,
  serverOf,
} from "./dns-wire"
import { monotonic } from "./time"

export { DnsError } from "./dns-wire"

const TRY_MS = 3000
const TRIES = 2
const RESOLV_CONF_MS = 10_000

/** A hostile server could invent a new alias for each answer, without end. */
const MOST_ALIASES = 10

export interface Mx {
  exchange: string
  priority: number
}

/** The name servers of a zone. */
export interface Delegation {
  /** The servers of this very name. The servers of its alias do not count. */
  servers: string[]
  /** What the name is an alias of, where it is one. */
  alias: string | null
  /**
   * For an empty answer: the zone that denies the name (RFC 2308), `""` for the root. Null where
   * the answer has no SOA record; some resolvers leave it out.
   */
  denied_by: string | null
  /** The name is not there, nor anything below it (RFC 8020). */
  is_gone: boolean
}

/**
 * Every call asks the servers: nothing is cached. A missing name and a missing record both give
 * `[]`. Only records of the name, or of its aliases, are used. Throws DnsError; it is transient
 * when no server gave a definite answer.
 */
export interface Resolver {
  /** One list of strings a record, because a long record comes in several (RFC 7208 3.3). */
  txt(name: string): Promise<string[][]>
  a(name: string): Promise<string[]>
  aaaa(name: string): Promise<string[]>
  /** Best first. */
  mx(name: string): Promise<Mx[]>
  cname(name: string): Promise<string[]>
  /** The names of an address, given as its name below `in-addr.arpa` or `ip6.arpa`. */
  ptr(name: string): Promise<string[]>
  delegation(zone: string): Promise<Delegation>
}

interface ResolverOptions {
  /** `address` or `address:port`; without any, the servers of /etc/resolv.conf. */
  servers?: readonly string[] | undefined
  /** For one try at one server. Default 3 s; every server is tried twice. */
  try_ms?: number | undefined
}

type Ask = (name: string, kind: DnsType) => Promise<DnsRow[]>

export function resolver(options: ResolverOptions = {}): Resolver {
  const given = options.servers?.length ? options.servers.map(serverOf) : undefined
  const try_ms = options.try_ms ?? TRY_MS
  const askOne = (name: string, kind: DnsType) =>
    askAll(given ?? systemServers(), name, kind, try_ms)
  const ask: Ask = async (name, kind) => {
    let at = questionName(name)
    for (let hops = 0; hops <= MOST_ALIASES; hops++) {
      const packet = await askOne(at, kind)
      const { rows, alias } = answerOf(packet, at, kind)
      if (rows.length > 0 || alias === null || isWhole(packet)) return rows
      at = questionName(alias)
    }
    throw new DnsError(
      `the ${kind} records of ${name} cannot be found: its aliases have no end`,
      true,
    )
  }
  return {
    txt: async (name) => (await ask(name, "TXT")).map(strings),
    a: async (name) => (await ask(name, "A")).flatMap((row) => row.address ?? []),
    aaaa: async (name) => (await ask(name, "AAAA")).flatMap((row) => row.address ?? []),
    cname: async (name) => (await ask(name, "CNAME")).flatMap((row) => row.domain ?? []),
    ptr: async (name) => (await ask(name, "PTR")).flatMap((row) => row.domain ?? []),
    delegation: async (zone) => delegationOf(await askOne(questionName(zone), "NS"), zone),
    mx: async (name) => {
      const rows = await ask(name, "MX")
      const all = rows.map(({ exchange = "", priority = 0 }) => ({ exchange, priority }))
      return all.sort((one, other) => one.priority - other.priority)
    },
  }
}

/**
 * A recursive server has followed the aliases. Other servers know only the aliases of their own
 * zones.
 */
const isWhole = ({ header: { ra, rcode } }: Packet) =>
  Boolean(ra) || rcode === Packet.RCODE.NXDOMAIN

function delegationOf(packet: Packet, zone: string): Delegation {
  const { rows, alias } = answerOf(packet, zone, "NS")
  const servers = rows.flatMap((row) => row.ns ?? row.domain ?? []).map(bareName)
  const is_gone = packet.header.rcode === Packet.RCODE.NXDOMAIN
  return { servers, alias, denied_by: deniedBy(packet), is_gone }
}

function strings({ data }: DnsRow): string[] {
  if (Array.isArray(data)) return data
  return data === undefined ? [] : [data.toString()]
}

async function askAll(servers: Server[], name: string, kind: DnsType, ms: number): Promise<Packet> {
  const reasons = new Set<string>()
  for (let attempt = 0; attempt < TRIES; attempt++) {
    for (const server of servers) {
      try {
        return settled(await askServer(server, name, kind, ms))
      } catch (error) {
        reasons.add(`${server.address}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  throw new DnsError(
    `the ${kind} records of ${name} cannot be found: ${[...reasons].join("; ")}`,
    true,
  )
}

/** Only NOERROR and NXDOMAIN say something about the name; everything else is about the server. */
function settled(packet: Packet): Packet {
  const { rcode } = packet.header
  if (rcode === Packet.RCODE.NXDOMAIN || rcode === Packet.RCODE.NOERROR) return packet
  throw new Error(codeOf(packet))
}

let system: { servers: Server[]; until: number } | undefined

/**
 * Read again every ten seconds, because laptops change networks. An empty file means localhost
 * (resolv.conf(5)).
 */
function systemServers(): Server[] {
  if (system && monotonic() < system.until) return system.servers
  const found = [...resolvConf().matchAll(/^\s*nameserver\s+(\S+)/gm)].flatMap(([, address]) =>
    address && ipaddr.isValid(address) ? [{ address, port: 53 }] : [],
  )
  const servers = found.length > 0 ? found : [{ address: "127.0.0.1", port: 53 }]
  system = { servers, until: monotonic() + RESOLV_CONF_MS }
  return servers
}

function resolvConf(): string {
  try {
    return readFileSync("/etc/resolv.conf", "utf8")
  } catch {
    return ""
  }
}
