import type { Packet } from "dns2"
import { isPublic } from "../core/destination"
import {
  answerOf,
  askServer,
  bareName,
  codeOf,
  type Delegation,
  type DnsType,
  type Resolver,
  type Server,
  serverOf,
} from "../core/dns"
import { monotonic } from "../core/time"
import { isSuffix, organizational, upTo } from "./names"
import type { ServerAnswer } from "./tables"

const TRIES = 2
const MOST_REFERRALS = 3

/** What strangers answer is kept and shown: no more of it than any right record needs. */
const MOST_VALUES = 20
const MOST_CHARACTERS = 2048

/** All servers that speak for a domain. */
export interface Authority {
  /** Why no server could be found; null when there is one. */
  fault: ZoneFault | null
  /** Every server's own words, in the order of their names. Never rejects. */
  ask(name: string, kind: DnsType): Promise<ServerAnswer[]>
  /** The values of the first server that answers; an empty list when no server answers. */
  peek(name: string, kind: DnsType): Promise<string[]>
}

/** Finds the authoritative servers of the domain. No question is sent after `until` (monotonic). */
export async function authorityOf(
  net: NameServers,
  domain: string,
  until: number,
): Promise<Authority> {
  const { servers, fault } = await serversFor(net, domain)
  const reached = new Set<NameServer>()
  const askIt = async (server: NameServer, name: string, kind: DnsType) => {
    const answer = await askOne(net, server, { name, kind, until })
    if (isReached(answer)) reached.add(server)
    return answer
  }
  return {
    fault,
    ask: (name, kind) => Promise.all(servers.map((server) => askIt(server, name, kind))),
    async peek(name, kind) {
      // Those that have spoken already: a dead one would cost the time of all that follows.
      for (const server of reached.size > 0 ? reached : servers) {
        const answer = await askIt(server, name, kind)
        if (isReached(answer)) return answer.values
      }
      return []
    },
  }
}

/** The server spoke about the name; everything else is about the server. */
export const isReached = ({ answer }: ServerAnswer) => answer === "NOERROR" || answer === "NXDOMAIN"

interface Question {
  name: string
  kind: DnsType
  until: number
}

async function askOne(
  net: NameServers,
  named: NameServer,
  question: Question,
): Promise<ServerAnswer> {
  const failed = (answer: string) => ({ server: named.name, answer, values: [], alias: null })
  if (!named.server) return failed(named.fault)
  let reason = "no answer"
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const left = question.until - monotonic()
    if (left <= 0) return failed("no answer in time")
    try {
      const ms = Math.min(net.try_ms, left)
      const packet = await askServer(named.server, question.name, question.kind, ms)
      const answer = codeOf(packet)
      if (answer === "SERVFAIL") reason = answer
      else if (answer !== "NOERROR" && answer !== "NXDOMAIN") return failed(answer)
      else return await read(net, named, question, packet, 0)
    } catch (error) {
      reason = /timed? ?out|no answer over TCP/i.test(messageOf(error))
        ? "no answer"
        : messageOf(error)
    }
  }
  return failed(reason)
}

/** What a server is that was named for a zone it has not. */
export const LAME = "it does not serve this zone"

/** The name may be in a delegated zone below, or be an alias (CNAME) of another name. */
async function read(
  net: NameServers,
  named: NameServer,
  question: Question,
  packet: Packet,
  depth: number,
): Promise<ServerAnswer> {
  const below = referral(packet, question.name)
  if (below.length > 0 && depth < MOST_REFERRALS) {
    return delegated(net, named, question, below, depth)
  }
  if (isElsewhere(packet)) return { server: named.name, answer: LAME, values: [], alias: null }
  const { rows, alias } = answerOf(packet, question.name, question.kind)
  const values = bounded(rows.flatMap((row) => textOf(row, question.kind)))
  const base = { server: named.name, answer: codeOf(packet), values }
  if (question.kind === "CNAME") return { ...base, alias: null } // it is the value itself
  const answer = { ...base, alias }
  if (values.length > 0 || alias === null) return answer
  try {
    return { ...answer, values: bounded(await follow(net.dns, alias, question.kind)) }
  } catch (error) {
    return { ...answer, answer: `the alias ${alias}: ${messageOf(error)}` }
  }
}

async function delegated(
  net: NameServers,
  { name }: NameServer,
  question: Question,
  below: string[],
  depth: number,
): Promise<ServerAnswer> {
  for (const { server } of await located(net.dns, below)) {
    const left = question.until - monotonic()
    if (!server || left <= 0) continue
    try {
      const ms = Math.min(net.try_ms, left)
      const packet = await askServer(server, question.name, question.kind, ms)
      const found = { name, server, fault: "" }
      return await read(net, found, question, packet, depth + 1)
    } catch {
      // The next one may answer.
    }
  }
  const answer = `delegated to ${below.join(", ")}, but no server there answers`
  return { server: name, answer, values: [], alias: null }
}

const bounded = (values: string[]) =>
  values.slice(0, MOST_VALUES).map((value) => value.slice(0, MOST_CHARACTERS))

/** The servers of a zone below, where the one that was asked does not speak for the name. */
function referral(packet: Packet, name: string): string[] {
  if (!isElsewhere(packet)) return []
  const zone = organizational(name)
  return packet.authorities.flatMap((row) => {
    const below = bareName(row.name)
    const is_ours = below === zone || below.endsWith(`.${zone}`)
    const is_above = name === below || name.endsWith(`.${below}`)
    return row.type === NS && is_ours && is_above && row.ns ? [row.ns] : []
  })
}

/** A referral: not authoritative, not recursive, and it only names other servers. */
const isElsewhere = ({ header, answers, authorities }: Packet) =>
  !header.aa && !header.ra && answers.length === 0 && authorities.some(({ type }) => type === NS)

const NS = 2

function textOf(row: Packet["answers"][number], kind: DnsType): string[] {
  if (kind === "MX") return [mxText(row)]
  if (kind === "TXT") return [Array.isArray(row.data) ? row.data.join("") : String(row.data ?? "")]
  const name = row.domain ?? row.ns ?? row.address
  return name === undefined ? [] : [bareName(name)]
}

const mxText = ({ priority = 0, exchange = "" }: { priority?: number; exchange?: string }) =>
  `${priority} ${bareName(exchange) || "."}`

async function follow(dns: Resolver, alias: string, kind: DnsType): Promise<string[]> {
  if (kind === "TXT") return (await dns.txt(alias)).map((parts) => parts.join(""))
  if (kind === "MX") return (await dns.mx(alias)).map(mxText)
  return kind === "A" ? dns.a(alias) : dns.aaaa(alias)
}

const MOST_SERVERS = 13

export interface NameServers {
  dns: Resolver
  /** Of the settings: they stand for the resolver and for the authoritative servers alike. */
  servers: readonly string[]
  /** For one try at one server; each is tried twice. */
  try_ms: number
}

interface NameServer {
  name: string
  /** Undefined where the server has no address that may be asked; `fault` says why. */
  server: Server | undefined
  fault: string
}

/** Why there is no server to ask. `missing` only where the zone above denies the delegation. */
export interface ZoneFault {
  status: "pending" | "missing"
  mistake: string
  hint: string
}

/** The servers of the zone that contains the domain, or why there are none. */
async function serversFor(
  net: NameServers,
  domain: string,
): Promise<{ servers: NameServer[]; fault: ZoneFault | null }> {
  if (net.servers.length > 0) {
    const servers = net.servers.map(
      (name): NameServer => ({ name, server: serverOf(name), fault: "" }),
    )
    return { servers, fault: null }
  }
  const zone = organizational(domain)
  let last: Delegation | undefined
  try {
    for (const name of upTo(domain, zone)) {
      last = await net.dns.delegation(name)
      if (last.servers.length > 0) {
        return { servers: await located(net.dns, last.servers), fault: null }
      }
    }
  } catch (error) {
    return { servers: [], fault: unknown(messageOf(error)) }
  }
  return { servers: [], fault: faultOf(zone, last) }
}

function faultOf(zone: string, last: Delegation | undefined): ZoneFault {
  if (last?.alias) {
    const hint = `${zone} itself is an alias (CNAME) of ${last.alias}, which hides its name servers. A CNAME allows no other record beside it. Use an A record or ALIAS instead.`
    return { status: "pending", mistake: "alias_at_apex", hint }
  }
  if (last && isDenied(zone, last)) {
    const above = last.denied_by === "" ? "the root" : last.denied_by
    const hint = `${zone} is not delegated: ${above} knows no name server for it. Check that the domain is registered and paid.`
    return { status: "missing", mistake: "not_delegated", hint }
  }
  return unknown(
    `No name server is known for ${zone}. Check that the domain is registered and delegated.`,
  )
}

const unknown = (hint: string): ZoneFault => ({ status: "pending", mistake: "unanswered", hint })

/**
 * Whether the zone above says that this zone does not exist. An empty answer alone does not prove
 * that: below a private suffix such as `github.io`, names have records but no zone of their own.
 */
function isDenied(zone: string, { denied_by, is_gone }: Delegation): boolean {
  if (denied_by === null) return false
  const is_above = denied_by === "" || zone.endsWith(`.${denied_by}`)
  return is_above && (is_gone || isSuffix(denied_by))
}

/** At most 13 servers: a zone that lists thousands must not make us ask thousands. */
const located = (dns: Resolver, names: string[]): Promise<NameServer[]> =>
  Promise.all(
    [...new Set(names.map((name) => bareName(name)))]
      .slice(0, MOST_SERVERS)
      .map((name) => locate(dns, name)),
  ).then((all) => all.sort((one, other) => (one.name < other.name ? -1 : 1)))

/** One address of each: IPv4 where there is one, since not every machine has IPv6. */
async function locate(dns: Resolver, name: string): Promise<NameServer> {
  try {
    const v4 = await dns.a(name)
    const addresses = v4.length > 0 ? v4 : await dns.aaaa(name)
    const address = addresses.find(isPublic)
    if (address) return { name, server: { address, port: 53 }, fault: "" }
    const [first] = addresses
    const fault = first ? `its address ${first} is not public` : "it has no address"
    return { name, server: undefined, fault }
  } catch (error) {
    return { name, server: undefined, fault: messageOf(error) }
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
