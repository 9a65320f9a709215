import { readFileSync } from "node:fs"
import { connect } from "node:net"
import DNS, { Packet } from "dns2"
import ipaddr from "ipaddr.js"
import { monotonic } from "./time"

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

interface ResolverOptions {
  /** `address` or `address:port`; without any, the servers of /etc/resolv.conf. */
  servers?: readonly string[] | undefined
  /** For one try at one server. Default 3 s; every server is tried twice. */
  try_ms?: number | undefined
}

type Ask = (name: string, kind: DnsType) => Promise<DnsRow[]>

export type Resolver = ReturnType<typeof resolver>

/**
 * Every call asks the servers: nothing is cached. A missing name and a missing record both give
 * `[]`. Only records of the name, or of its aliases, are used. Throws DnsError; it is transient
 * when no server gave a definite answer.
 */
export function resolver(options: ResolverOptions = {}) {
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
    /** One list of strings a record, because a long record comes in several (RFC 7208 3.3). */
    txt: async (name: string) => (await ask(name, "TXT")).map(strings),
    a: async (name: string) => (await ask(name, "A")).flatMap((row) => row.address ?? []),
    aaaa: async (name: string) => (await ask(name, "AAAA")).flatMap((row) => row.address ?? []),
    cname: async (name: string) => (await ask(name, "CNAME")).flatMap((row) => row.domain ?? []),
    /** The names of an address, given as its name below `in-addr.arpa` or `ip6.arpa`. */
    ptr: async (name: string) => (await ask(name, "PTR")).flatMap((row) => row.domain ?? []),
    delegation: async (zone: string) => delegationOf(await askOne(questionName(zone), "NS"), zone),
    /** Best first. */
    mx: async (name: string): Promise<Mx[]> => {
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

const MAX_NAME = 253

export type DnsType = "TXT" | "A" | "AAAA" | "MX" | "CNAME" | "NS" | "PTR"

export interface Server {
  address: string
  port: number
}

/** RFC 1035 2.3.4. Refused here, so that a bad name is no fault of the servers. */
function questionName(name: string): string {
  const bare = name.replace(/\.$/, "")
  const fits =
    bare.length <= MAX_NAME && bare.split(".").every((label) => /^[!-~]{1,63}$/.test(label))
  if (!fits) throw new DnsError(`"${name.slice(0, MAX_NAME)}" is not a valid DNS name`, false)
  return bare
}

/** The name of a response code, as `NXDOMAIN`. */
export function codeOf({ header: { rcode } }: Packet): string {
  const names = Object.entries(Packet.RCODE)
  return names.find(([, code]) => code === rcode)?.[0] ?? `response code ${rcode}`
}

/**
 * Asks one server one question, over TCP where the answer does not fit into a datagram. Rejects
 * when no answer comes within `ms` milliseconds for each transport. Any response code is an answer.
 */
export async function askServer(
  server: Server,
  name: string,
  kind: DnsType,
  ms: number,
): Promise<Packet> {
  const { address, port } = server
  const socketType = address.includes(":") ? "udp6" : "udp4"
  const options = { dns: address, port, socketType, timeout: ms, retryOverTCP: false } as const
  const packet = checked(await DNS.UDPClient(options)(name, kind), name, kind)
  return packet.header.tc ? askOverTcp(server, name, kind, ms) : packet
}

/** Our own socket, because that of dns2 has no deadline and no IPv6 (RFC 7766 for the framing). */
function askOverTcp(server: Server, name: string, kind: DnsType, ms: number): Promise<Packet> {
  const query = new Packet()
  query.header.id = Packet.uuid()
  query.header.rd = 1
  query.questions.push(new Packet.Question(name, Packet.TYPE[kind], Packet.CLASS.IN))
  const bytes = query.toBuffer()
  const frame = Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])

  const socket = connect({ host: server.address, port: server.port })
  const answer = Promise.withResolvers<Packet>()
  const timer = setTimeout(() => answer.reject(new Error(`no answer over TCP in ${ms} ms`)), ms)
  let received = Buffer.alloc(0)
  socket.on("connect", () => socket.write(frame))
  socket.on("error", (error) => answer.reject(error))
  socket.on("close", () => answer.reject(new Error("the TCP connection was closed")))
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    const length = received.length < 2 ? Number.POSITIVE_INFINITY : received.readUInt16BE(0)
    if (received.length < 2 + length) return
    try {
      const packet = checked(Packet.parse(received.subarray(2, 2 + length)), name, kind)
      if (packet.header.id !== query.header.id) throw new Error("the answer is to another question")
      answer.resolve(packet)
    } catch (error) {
      answer.reject(error)
    }
  })
  return answer.promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

/** A forged answer has to guess the question, too. */
function checked(packet: Packet, name: string, kind: DnsType): Packet {
  const [question] = packet.questions
  const same =
    question?.name.toLowerCase() === name.toLowerCase() && question.type === Packet.TYPE[kind]
  // Some servers send errors without the question; there is nothing in them to forge.
  if (!same && (question || packet.answers.length > 0))
    throw new Error("the answer is to another question")
  return packet
}

/** `address`, `address:port`, `[address]:port`. Throws for anything else. */
export function serverOf(text: string): Server {
  const found = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text)
  const address = found?.[1] ?? found?.[2] ?? text
  if (!ipaddr.isValid(address)) throw new Error(`"${text}" is not the address of a name server`)
  return { address, port: Number(found?.[3] ?? 53) }
}

/** The question stays open (`transient`), or the name cannot be asked for at all. */
export class DnsError extends Error {
  override readonly name = "DnsError"
  readonly transient: boolean

  constructor(message: string, transient: boolean) {
    super(message)
    this.transient = transient
  }
}

type DnsRow = Packet["answers"][number]

interface DnsAnswer {
  rows: DnsRow[]
  /** The end of the aliases that the answer contains; null where the name is no alias. */
  alias: string | null
}

/** A name as it is compared: lower case, without a dot at the end. */
export const bareName = (name: string): string => name.toLowerCase().replace(/\.$/, "")

/**
 * The name's own records, or those at the end of its aliases. Other records of the answer are
 * ignored (RFC 2181 5.4.1). The servers of an alias are not those of the name (RFC 1034 3.6.2), so
 * NS and CNAME follow no alias.
 */
export function answerOf({ answers }: Packet, name: string, kind: DnsType): DnsAnswer {
  const stays = kind === "NS" || kind === "CNAME"
  const seen = new Set<string>()
  let at = bareName(name)
  for (;;) {
    const rows = answers.filter((row) => isOf(row, at, kind))
    const next = answers.find((row) => isOf(row, at, "CNAME"))?.domain
    seen.add(at)
    const is_end = rows.length > 0 || next === undefined || seen.has(bareName(next))
    if (stays) return { rows, alias: next === undefined ? null : bareName(next) }
    if (is_end) return { rows, alias: seen.size > 1 ? at : null }
    at = bareName(next)
  }
}

const isOf = (row: DnsRow, name: string, kind: DnsType) =>
  row.type === Packet.TYPE[kind] && bareName(row.name) === name

/**
 * The zone that denies the name: the owner of the SOA record in a negative answer (RFC 2308 2.1 and
 * 2.2), `""` for the root. Null where there is no denial.
 */
function deniedBy({ answers, authorities }: Packet): string | null {
  if (answers.length > 0) return null
  const soa = authorities.find(({ type }) => type === Packet.TYPE.SOA)
  return soa ? bareName(soa.name) : null
}
