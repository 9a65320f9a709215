import { log } from "../core/log"
import { monotonic } from "../core/time"
import { addressOf, isWithin } from "../lib/ip-ranges"
import type { OpenConnection, OpenConnections } from "./open-connections"

export interface ConnectionLimits {
  most: number
  /** From one IPv4 address, or one /64 of IPv6; what a trusted proxy opens does not count here. */
  per_address: number
  /** How many may wait to be accepted; null leaves that to the runtime. */
  backlog: number | null
}

interface ConnectionNeeds {
  /** Files and sockets that this process may have open. */
  descriptors: number
  /** What everything but the listener needs: database, files, worker threads, deliveries. */
  reserve: number
  most: number | null
  per_address: number | null
}

const MOST_CONNECTIONS = 10_000
const FEWEST_CONNECTIONS = 16
const MOST_MARGIN = 1024
const SHORTEST_BACKLOG = 32
const RUNTIMES_BACKLOG = 512

/**
 * Below the limit of descriptors, less the reserve and a margin. The runtime accepts every
 * connection that waits before it tells us of one, so a low limit also gets a short queue.
 */
export function connectionLimits(needs: ConnectionNeeds): ConnectionLimits {
  const { descriptors } = needs
  const margin = Math.min(Math.floor(descriptors / 8), MOST_MARGIN)
  const reserve = Math.min(needs.reserve, Math.floor(descriptors / 2))
  const room = Math.max(FEWEST_CONNECTIONS, descriptors - reserve - margin)
  const most = Math.min(needs.most ?? MOST_CONNECTIONS, room)
  const per_address = Math.min(needs.per_address ?? Math.ceil(most / 4), most)
  const backlog = Math.max(SHORTEST_BACKLOG, Math.floor(descriptors / 4))
  return { most, per_address, backlog: backlog < RUNTIMES_BACKLOG ? backlog : null }
}

interface ConnectionOptions {
  open: Pick<OpenConnections, "list" | "end" | "isInUse" | "setBacklog" | "watch">
  limits: ConnectionLimits
  /** Read at every look. */
  trustedProxies: () => string[]
  /** Connections whose request is being answered, and connections that still send a body. */
  busy: () => Busy
}

export interface Busy {
  working: ReadonlySet<string>
  reading: ReadonlySet<string>
}

const LOOK_MILLISECONDS = 250
/** So often a look covers all connections: every four seconds. */
const SWEEP_LOOKS = 16
const TELL_MILLISECONDS = 60_000
/** So young a connection may be about to send its request. */
const FRESH_MILLISECONDS = 500
/** The part of all connections that may be new before we look again. */
const STEP = 1 / 16

/** Keeps the connections of a listener below its limits. Returns how to stop that. */
export function limitConnections({ open, limits, trustedProxies, busy }: ConnectionOptions) {
  if (limits.backlog !== null) open.setBacklog(limits.backlog)
  const tell = teller(limits)
  let sentinel = 0
  let is_settled = false
  let looks = 0

  const sweep = () => {
    const { open: all, free } = open.list()
    const leave = excess(all, limits, { ...busy(), isProxy: memberOf(trustedProxies()) })
    for (const { descriptor } of leave) open.end(descriptor)
    if (leave.length > 0) tell(all.length, leave.length)
    sentinel = free[Math.min(room(all, limits), free.length - 1)] ?? 0
    is_settled = leave.length === 0
  }
  /**
   * The kernel gives the lowest descriptor away first. So while this free one stays free, too few
   * connections came to matter, and this look costs one call of the system.
   */
  const look = () => {
    if (open.isInUse(sentinel)) sweep()
  }
  /** Descriptors below it that were given back since then let more in, without a sign. */
  const lookRegularly = () => {
    looks += 1
    if (!is_settled || looks % SWEEP_LOOKS === 0) sweep()
    else look()
  }
  sweep()
  const unwatch = open.watch(look)
  const timer = setInterval(lookRegularly, LOOK_MILLISECONDS)
  timer.unref()
  return () => {
    clearInterval(timer)
    unwatch()
  }
}

interface Ranking extends Busy {
  isProxy: (address: string) => boolean
}

/** Those that have to leave: first what is too much from one address, then what is too much in all. */
export function excess(all: OpenConnection[], limits: ConnectionLimits, ranking: Ranking) {
  const leaving = new Set<OpenConnection>()
  for (const [address, own] of byAddress(all)) {
    const count = own.length - limits.per_address
    if (count <= 0 || ranking.isProxy(address)) continue
    for (const one of dispensable(own, ranking).slice(0, count)) leaving.add(one)
  }
  const rest = all.filter((one) => !leaving.has(one))
  const count = rest.length - limits.most
  if (count > 0) for (const one of dispensable(rest, ranking).slice(0, count)) leaving.add(one)
  return [...leaving]
}

/** The first to be closed stands first: of the same rank, the one that said nothing for longest. */
function dispensable(all: OpenConnection[], ranking: Ranking): OpenConnection[] {
  const ranked = all.map((one) => ({ one, rank: rankOf(one, ranking) }))
  ranked.sort((a, b) => a.rank - b.rank || b.one.idle_ms - a.one.idle_ms)
  return ranked.map(({ one }) => one)
}

/** 0: half a request that stopped. 1: idle after an answer. 2: may be sending. 3: we work for it. */
function rankOf({ peer, idle_ms, is_answered }: OpenConnection, { working, reading }: Busy) {
  if (working.has(peer)) return 3
  const is_half = !is_answered || reading.has(peer)
  if (is_half) return idle_ms < FRESH_MILLISECONDS ? 2 : 0
  return 1
}

function byAddress(all: OpenConnection[]): Map<string, OpenConnection[]> {
  return Map.groupBy(all, ({ address }) => networkOf(address))
}

/** The owner of an IPv6 address has a whole /64. */
const networkOf = (address: string) => (address.length === 4 ? address : address.slice(0, 8))

const memberOf = (ranges: string[]) => (network: string) => {
  if (ranges.length === 0) return false
  const whole = network.length === 4 ? network : network.padEnd(16, "\0")
  return isWithin(addressOf(whole), ranges)
}

/** How many may come before a limit can be passed, or a little more where it has been reached. */
function room(all: OpenConnection[], limits: ConnectionLimits): number {
  const most_of_one = Math.max(0, ...[...byAddress(all).values()].map(({ length }) => length))
  const left = Math.min(limits.most - all.length, limits.per_address - most_of_one)
  return Math.max(left, Math.ceil(limits.most * STEP))
}

/** At most one line a minute, with all that were closed since the last one. */
function teller({ most, per_address }: ConnectionLimits) {
  let told_at = Number.NEGATIVE_INFINITY
  let closed = 0
  return (connections: number, count: number) => {
    closed += count
    if (monotonic() - told_at < TELL_MILLISECONDS) return
    log.warn(TOO_MANY, { connections, most, per_address, closed })
    told_at = monotonic()
    closed = 0
  }
}

const TOO_MANY =
  "too many HTTP connections were open; the server closed those that were idle for the longest time"
