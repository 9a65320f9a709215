import { type Libc, libc } from "../core/libc"
import { addressBytes } from "../lib/ip-ranges"

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
