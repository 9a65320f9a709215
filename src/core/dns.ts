import { readFileSync } from "node:fs"
import { connect } from "node:net"
import DNS, { Packet } from "dns2"
import ipaddr from "ipaddr.js"
import { monotonic } from "./time"

const TRY_MS = 3000
const TRIES = 2
const RESOLV_CONF_MS = 10_000
const MAX_NAME = 253

export interface Mx {
  exchange: string
  priority: number
}

/**
 * Every call asks the servers: nothing is cached. No such name and no such record are both `[]`.
 * Throws DnsError: transient when no server gave an answer that says yes or no.
 */
export interface Resolver {
  /** One list of strings a record, because a long record comes in several (RFC 7208 3.3). */
  txt(name: string): Promise<string[][]>
  a(name: string): Promise<string[]>
  aaaa(name: string): Promise<string[]>
  /** Best first. */
  mx(name: string): Promise<Mx[]>
  cname(name: string): Promise<string[]>
  ns(name: string): Promise<string[]>
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

export interface ResolverOptions {
  /** `address` or `address:port`; none: those of /etc/resolv.conf. */
  servers?: readonly string[] | undefined
  /** For one try at one server. Default 3 s; every server is tried twice. */
  try_ms?: number | undefined
}

type Kind = "TXT" | "A" | "AAAA" | "MX" | "CNAME" | "NS"
type Row = Packet["answers"][number]
type Ask = (name: string, kind: Kind) => Promise<Row[]>

interface Server {
  address: string
  port: number
}

export function resolver(options: ResolverOptions = {}): Resolver {
  const given = options.servers?.length ? options.servers.map(serverOf) : undefined
  const try_ms = options.try_ms ?? TRY_MS
  const ask: Ask = async (name, kind) => {
    const packet = await askAll(given ?? systemServers(), questionName(name), kind, try_ms)
    return packet.answers.filter((row) => row.type === Packet.TYPE[kind])
  }
  return {
    txt: async (name) => (await ask(name, "TXT")).map(strings),
    a: async (name) => (await ask(name, "A")).flatMap((row) => row.address ?? []),
    aaaa: async (name) => (await ask(name, "AAAA")).flatMap((row) => row.address ?? []),
    cname: async (name) => (await ask(name, "CNAME")).flatMap((row) => row.domain ?? []),
    ns: async (name) => (await ask(name, "NS")).flatMap((row) => row.ns ?? row.domain ?? []),
    mx: async (name) => {
      const rows = await ask(name, "MX")
      const all = rows.map(({ exchange = "", priority = 0 }) => ({ exchange, priority }))
      return all.sort((one, other) => one.priority - other.priority)
    },
  }
}

function strings({ data }: Row): string[] {
  if (Array.isArray(data)) return data
  return data === undefined ? [] : [data.toString()]
}

/** RFC 1035 2.3.4. Refused here, so that a bad name is no fault of the servers. */
function questionName(name: string): string {
  const bare = name.replace(/\.$/, "")
  const fits =
    bare.length <= MAX_NAME && bare.split(".").every((label) => /^[!-~]{1,63}$/.test(label))
  if (!fits) throw new DnsError(`"${name.slice(0, MAX_NAME)}" is not a name that DNS knows`, false)
  return bare
}

async function askAll(servers: Server[], name: string, kind: Kind, ms: number): Promise<Packet> {
  const reasons = new Set<string>()
  for (let attempt = 0; attempt < TRIES; attempt++) {
    for (const server of servers) {
      try {
        return settled(await askOne(server, name, kind, ms))
      } catch (error) {
        reasons.add(`${server.address}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  throw new DnsError(`${kind} of ${name} is not known: ${[...reasons].join("; ")}`, true)
}

/** Only NOERROR and NXDOMAIN say something about the name; everything else is about the server. */
function settled(packet: Packet): Packet {
  const { rcode } = packet.header
  if (rcode === Packet.RCODE.NXDOMAIN || rcode === Packet.RCODE.NOERROR) return packet
  const names = Object.entries(Packet.RCODE)
  throw new Error(names.find(([, code]) => code === rcode)?.[0] ?? `response code ${rcode}`)
}

async function askOne(server: Server, name: string, kind: Kind, ms: number): Promise<Packet> {
  const { address, port } = server
  const socketType = address.includes(":") ? "udp6" : "udp4"
  const options = { dns: address, port, socketType, timeout: ms, retryOverTCP: false } as const
  const packet = checked(await DNS.UDPClient(options)(name, kind), name, kind)
  return packet.header.tc ? askOverTcp(server, name, kind, ms) : packet
}

/** Our own socket, because that of dns2 has no deadline and no IPv6 (RFC 7766 for the framing). */
function askOverTcp(server: Server, name: string, kind: Kind, ms: number): Promise<Packet> {
  const query = new Packet()
  query.header.id = Packet.uuid()
  query.header.rd = 1
  query.questions.push(new Packet.Question(name, Packet.TYPE[kind], Packet.CLASS.IN))
  const bytes = query.toBuffer()
  const frame = Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])

  const socket = connect({ host: server.address, port: server.port })
  const answer = Promise.withResolvers<Packet>()
  const timer = setTimeout(() => answer.reject(new Error(`no TCP answer in ${ms} ms`)), ms)
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
      if (packet.header.id !== query.header.id) throw new Error("an answer to something else")
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
function checked(packet: Packet, name: string, kind: Kind): Packet {
  const [question] = packet.questions
  const same =
    question?.name.toLowerCase() === name.toLowerCase() && question.type === Packet.TYPE[kind]
  // Some servers send errors without the question; there is nothing in them to forge.
  if (!same && (question || packet.answers.length > 0))
    throw new Error("an answer to something else")
  return packet
}

function serverOf(text: string): Server {
  const found = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text)
  const address = found?.[1] ?? found?.[2] ?? text
  if (!ipaddr.isValid(address)) throw new Error(`"${text}" is not the address of a name server`)
  return { address, port: Number(found?.[3] ?? 53) }
}

let system: { servers: Server[]; until: number } | undefined

/** Read again now and then, because laptops change networks. resolv.conf(5): none is localhost. */
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
