import { type Libc, libc } from "../core/libc"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { addressBytes, addressOf, isWithin } from "../lib/ip-ranges"

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
  const warn = warner(limits)
  let sentinel = 0
  let is_settled = false
  let looks = 0

  const sweep = () => {
    const { open: all, free } = open.list()
    const leave = excess(all, limits, { ...busy(), isProxy: memberOf(trustedProxies()) })
    for (const { descriptor } of leave) open.end(descriptor)
    if (leave.length > 0) warn(all.length, leave.length)
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
function warner({ most, per_address }: ConnectionLimits) {
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

/** Of Linux, the same on every processor that we build for. */
const F_GETFD = 1
const F_GETFL = 3
const F_SETFL = 4
const F_SETOWN = 8
const O_ASYNC = 0o20000
const SOL_SOCKET = 1
const SO_ACCEPTCONN = 30
const IPPROTO_TCP = 6
const TCP_INFO = 11
const SHUT_RDWR = 2
const AF_INET = 2
const ESTABLISHED = 1
const CLOSE_WAIT = 8

/** Descriptors above this are not looked at: the limits of the server keep far below it. */
const MOST_DESCRIPTORS = 16_384

/** One TCP connection of a listener, as the kernel sees it. */
export interface OpenConnection {
  descriptor: number
  /** The other side's address as bytes; IPv4 has four of them, mapped or not. */
  address: string
  /** Address and port as bytes. */
  peer: string
  /** Milliseconds since its last byte came. */
  idle_ms: number
  /** Whether the other side has received anything of us. */
  is_answered: boolean
}

/**
 * The connections of the listener on a port. The runtime shows them only from their first whole
 * request on, and half a request never becomes one; so the kernel is asked.
 */
export class OpenConnections {
  readonly #libc: Libc
  readonly #port: number
  readonly #highest: number
  readonly #listener: number
  readonly #name = Buffer.alloc(128)
  readonly #info = Buffer.alloc(256)
  readonly #length = new Int32Array(1)
  readonly #flag = new Int32Array(1)

  private constructor(library: Libc, port: number, limit: number) {
    this.#libc = library
    this.#port = port
    this.#highest = Math.min(limit, MOST_DESCRIPTORS)
    this.#listener = this.#findListener()
  }

  /** Undefined where the system is not Linux, or nothing listens on that port. */
  static of(port: number, limit: number): OpenConnections | undefined {
    const library = libc()
    const found = library && new OpenConnections(library, port, limit)
    return found && found.#listener >= 0 ? found : undefined
  }

  isInUse(descriptor: number): boolean {
    return this.#libc.fcntl(descriptor, F_GETFD, 0) !== -1
  }

  /** How many connections may wait to be accepted. */
  setBacklog(most: number): void {
    this.#libc.listen(this.#listener, most)
  }

  /**
   * All open ones, and every descriptor that is free, the lowest first: in this order the kernel
   * gives them away. Opens nothing itself, so it works when no descriptor is left.
   */
  list(): { open: OpenConnection[]; free: number[] } {
    const open: OpenConnection[] = []
    const free: number[] = []
    for (let descriptor = 0; descriptor < this.#highest; descriptor++) {
      if (!this.isInUse(descriptor)) free.push(descriptor)
      else {
        const connection = this.#describe(descriptor)
        if (connection) open.push(connection)
      }
    }
    return { open, free }
  }

  /** Ends both directions. The runtime then finds the connection closed, and lets it go. */
  end(descriptor: number): void {
    this.#libc.shutdown(descriptor, SHUT_RDWR)
  }

  /** Calls back soon after connections came, once for many. Returns how to stop that. */
  watch(onArrival: () => void): () => void {
    listenForArrivals()
    arrivals.add(onArrival)
    this.#setAsync(true)
    return () => {
      this.#setAsync(false)
      arrivals.delete(onArrival)
    }
  }

  #setAsync(wanted: boolean) {
    const { fcntl } = this.#libc
    // Later the same number may belong to another file.
    if (!this.#isListener(this.#listener)) return
    if (wanted) fcntl(this.#listener, F_SETOWN, process.pid)
    const flags = fcntl(this.#listener, F_GETFL, 0)
    fcntl(this.#listener, F_SETFL, wanted ? flags | O_ASYNC : flags & ~O_ASYNC)
  }

  #describe(descriptor: number): OpenConnection | undefined {
    if (this.#nameOf(this.#libc.getsockname, descriptor) !== this.#port) return undefined
    if (this.#nameOf(this.#libc.getpeername, descriptor) < 0) return undefined
    const address = this.#address()
    const peer = address + this.#name.toString("latin1", 2, 4)
    this.#info.fill(0)
    this.#length[0] = this.#info.length
    const { getsockopt } = this.#libc
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, this.#info, this.#length) !== 0) {
      return undefined
    }
    const state = this.#info[0]
    if (state !== ESTABLISHED && state !== CLOSE_WAIT) return undefined // it is ending already
    const idle_ms = this.#info.readUInt32LE(LAST_DATA_RECEIVED)
    const is_answered = this.#info.readBigUInt64LE(BYTES_ACKNOWLEDGED) > 0n
    return { descriptor, address, peer, idle_ms, is_answered }
  }

  /** The port of a socket, with the rest of its name in `#name`; -1 for anything else. */
  #nameOf(call: Libc["getsockname"], descriptor: number): number {
    this.#length[0] = this.#name.length
    return call(descriptor, this.#name, this.#length) === 0 ? this.#name.readUInt16BE(2) : -1
  }

  #address(): string {
    if (this.#name.readUInt16LE(0) === AF_INET) return this.#name.toString("latin1", 4, 8)
    const bytes = this.#name.toString("latin1", 8, 24)
    return bytes.startsWith(MAPPED) ? bytes.slice(MAPPED.length) : bytes
  }

  #findListener(): number {
    for (let descriptor = 0; descriptor < this.#highest; descriptor++) {
      if (this.isInUse(descriptor) && this.#isListener(descriptor)) return descriptor
    }
    return -1
  }

  #isListener(descriptor: number): boolean {
    this.#length[0] = 4
    this.#flag[0] = 0
    const { getsockopt } = this.#libc
    const asked = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, this.#flag, this.#length)
    if (asked !== 0 || this.#flag[0] !== 1) return false
    return this.#nameOf(this.#libc.getsockname, descriptor) === this.#port
  }
}

/** Where `struct tcp_info` has them. */
const LAST_DATA_RECEIVED = 52
const BYTES_ACKNOWLEDGED = 120

/** How an IPv4 address begins that is written as IPv6 (`::ffff:192.0.2.7`). */
const MAPPED = `${"\0".repeat(10)}\xff\xff`

const arrivals = new Set<() => void>()
let is_listening = false

/** Once for the process, and for good: without a listener this signal would end it. */
function listenForArrivals() {
  if (is_listening) return
  is_listening = true
  process.on("SIGIO", () => {
    for (const onArrival of arrivals) onArrival()
  })
}

/** The server, as far as it knows where a request came from. */
export interface PeerLookup {
  requestIP(request: Request): { address: string; port: number } | null
}

/** Address and port as bytes, like `OpenConnection.peer`; undefined for one that is closed. */
export function peerOf(request: Request, server: PeerLookup): string | undefined {
  const found = server.requestIP(request)
  if (!found) return undefined
  const port = String.fromCharCode(found.port >> 8, found.port & 0xff)
  return addressBytes(found.address) + port
}
