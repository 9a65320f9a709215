import type { Packet } from "dns2"
import type { Resolver } from "../core/dns"
import { answered, bareName } from "../core/dns-answer"
import { askServer, codeOf, type Kind } from "../core/dns-wire"
import { monotonic } from "../core/time"
import {
  located,
  messageOf,
  type Named,
  type NameServers,
  serversFor,
  type Trouble,
} from "./delegation"
import { organizational } from "./names"
import type { ServerAnswer } from "./tables"

const TRIES = 2
const MOST_REFERRALS = 3

/** What strangers answer is kept and shown: no more of it than any right record needs. */
const MOST_VALUES = 20
const MOST_CHARACTERS = 2048

/** All servers that speak for a domain. */
export interface Authority {
  /** Why nobody could be found to ask; null when somebody was. */
  trouble: Trouble | null
  /** Every server's own words, in the order of their names. Never rejects. */
  ask(name: string, kind: Kind): Promise<ServerAnswer[]>
  /** The values that the first server which answers has; none when nobody does. */
  peek(name: string, kind: Kind): Promise<string[]>
}

/** Finds who speaks for the domain. After `until` (monotonic) nobody is asked any more. */
export async function authorityOf(
  net: NameServers,
  domain: string,
  until: number,
): Promise<Authority> {
  const { servers, trouble } = await serversFor(net, domain)
  const reached = new Set<Named>()
  const askIt = async (server: Named, name: string, kind: Kind) => {
    const said = await askOne(net, server, { name, kind, until })
    if (isReached(said)) reached.add(server)
    return said
  }
  return {
    trouble,
    ask: (name, kind) => Promise.all(servers.map((server) => askIt(server, name, kind))),
    async peek(name, kind) {
      // Those that have spoken already: a dead one would cost the time of all that follows.
      for (const server of reached.size > 0 ? reached : servers) {
        const said = await askIt(server, name, kind)
        if (isReached(said)) return said.values
      }
      return []
    },
  }
}

/** The server spoke about the name; everything else is about the server. */
export const isReached = ({ answer }: ServerAnswer) => answer === "NOERROR" || answer === "NXDOMAIN"

interface Question {
  name: string
  kind: Kind
  until: number
}

async function askOne(net: NameServers, named: Named, question: Question): Promise<ServerAnswer> {
  const failed = (answer: string) => ({ server: named.name, answer, values: [], alias: null })
  if (!named.server) return failed(named.trouble)
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

/** A name may live in a zone of its own, or be an alias that leads elsewhere. */
async function read(
  net: NameServers,
  named: Named,
  question: Question,
  packet: Packet,
  depth: number,
): Promise<ServerAnswer> {
  const below = referral(packet, question.name)
  if (below.length > 0 && depth < MOST_REFERRALS) {
    return delegated(net, named, question, below, depth)
  }
  if (isElsewhere(packet)) return { server: named.name, answer: LAME, values: [], alias: null }
  const { rows, alias } = answered(packet, question.name, question.kind)
  const values = bounded(rows.flatMap((row) => textOf(row, question.kind)))
  const base = { server: named.name, answer: codeOf(packet), values }
  if (question.kind === "CNAME") return { ...base, alias: null } // it is the value itself
  const said = { ...base, alias }
  if (values.length > 0 || alias === null) return said
  try {
    return { ...said, values: bounded(await follow(net.dns, alias, question.kind)) }
  } catch (error) {
    return { ...said, answer: `the alias ${alias}: ${messageOf(error)}` }
  }
}

async function delegated(
  net: NameServers,
  { name }: Named,
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
      const found = { name, server, trouble: "" }
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

/** It neither speaks for the name nor asks for others, and only says who may know. */
const isElsewhere = ({ header, answers, authorities }: Packet) =>
  !header.aa && !header.ra && answers.length === 0 && authorities.some(({ type }) => type === NS)

const NS = 2

function textOf(row: Packet["answers"][number], kind: Kind): string[] {
  if (kind === "MX") return [mxText(row)]
  if (kind === "TXT") return [Array.isArray(row.data) ? row.data.join("") : String(row.data ?? "")]
  const name = row.domain ?? row.ns ?? row.address
  return name === undefined ? [] : [bareName(name)]
}

const mxText = ({ priority = 0, exchange = "" }: { priority?: number; exchange?: string }) =>
  `${priority} ${bareName(exchange) || "."}`

async function follow(dns: Resolver, alias: string, kind: Kind): Promise<string[]> {
  if (kind === "TXT") return (await dns.txt(alias)).map((parts) => parts.join(""))
  if (kind === "MX") return (await dns.mx(alias)).map(mxText)
  return kind === "A" ? dns.a(alias) : dns.aaaa(alias)
}
