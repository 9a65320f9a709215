import { ProviderBusyError } from "../../providers/provider"
import { Remembered } from "../providers/remembered"
import { type SmtpServer, SmtpSession, type Timeouts } from "./session"
import { SmtpConnectionError } from "./wire"

export interface PoolLimits {
  max_connections: number
  /** Milliseconds a connection may wait for its next message. */
  idle: number
  /** Milliseconds a message may wait for a connection. */
  queue: number
}

/** All connections were in use for too long. That is our own queue, and says nothing of the mail. */
export class PoolBusy extends ProviderBusyError {
  override readonly name = "PoolBusy"
}

/** Warm connections to one server, handed out one at a time, the last used first. */
export class ConnectionPool {
  #server: SmtpServer
  #limits: PoolLimits
  #idle = new Map<SmtpSession, ReturnType<typeof setTimeout>>()
  #busy = new Set<SmtpSession>()
  #waiters = new Set<PromiseWithResolvers<void>>()
  #closed = false

  constructor(server: SmtpServer, limits: PoolLimits) {
    this.#server = server
    this.#limits = limits
  }

  get isBusy(): boolean {
    return this.#busy.size > 0 || this.#waiters.size > 0
  }

  /** Rejects with SmtpConnectionError, SmtpRefusal or PoolBusy. The session must be given back to `release`. */
  async acquire(transcript: string[], { fresh }: { fresh: boolean }): Promise<SmtpSession> {
    while (!this.#closed) {
      const warm = fresh ? undefined : this.#reuseIdle()
      if (warm) {
        transcript.push("* using an open connection")
        warm.transcript = transcript
        return warm
      }
      if (this.#busy.size < this.#limits.max_connections) return this.#open(transcript)
      await this.#wait()
    }
    throw closed()
  }

  release(session: SmtpSession): void {
    this.#busy.delete(session)
    if (!session.alive || this.#closed) session.quit()
    else this.#keep(session)
    const [waiter] = this.#waiters
    if (!waiter) return
    this.#waiters.delete(waiter) // at once, or a second release would wake the same one again
    waiter.resolve()
  }

  /** Idle connections end at once, busy ones are cut: their messages come out as `retry`. */
  async close(): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#waiters) reject(closed())
    for (const [session, timer] of this.#idle) {
      clearTimeout(timer)
      session.quit()
    }
    this.#idle.clear()
    for (const session of this.#busy) session.abort()
  }

  #reuseIdle(): SmtpSession | undefined {
    for (const session of [...this.#idle.keys()].reverse()) {
      clearTimeout(this.#idle.get(session))
      this.#idle.delete(session)
      if (session.alive) {
        this.#busy.add(session)
        return session
      }
      session.quit()
    }
    return undefined
  }

  /** Counted as busy from here on, so that a slow greeting cannot let too many begin. */
  async #open(transcript: string[]): Promise<SmtpSession> {
    const session = new SmtpSession(this.#server, transcript)
    this.#busy.add(session)
    try {
      return await session.open()
    } catch (error) {
      this.release(session)
      throw error
    }
  }

  #keep(session: SmtpSession) {
    const timer = setTimeout(() => {
      this.#idle.delete(session)
      session.quit()
    }, this.#limits.idle)
    timer.unref()
    this.#idle.set(session, timer)
  }

  #wait(): Promise<void> {
    const waiter = Promise.withResolvers<void>()
    const late = () => waiter.reject(new PoolBusy("all connections to the server are in use"))
    const timer = setTimeout(late, this.#limits.queue)
    this.#waiters.add(waiter)
    return waiter.promise.finally(() => {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
    })
  }
}

const closed = () => new SmtpConnectionError("connection", "the provider was closed")

/** Shorter than RFC 5321, 4.5.3.2 asks for, which would let a host hold a permit for an hour. */
const HOST_TIMEOUTS: Timeouts = {
  connect: 15_000,
  greeting: 30_000,
  reply: 30_000,
  accepted: 120_000,
}

/** Many domains are seen once an hour: their connections must not pile up. */
const IDLE_MS = 10_000
const WAIT_MS = 60_000

/** Pools beyond this are closed, the one used longest ago first, where nothing runs in them. */
const MOST_POOLS = 2_000

/** For how long a host whose TLS does not work gets mail without TLS at once. */
const TLS_FAILED_MS = 600_000

export interface HostPoolOptions {
  port: number
  ehlo_name?: string | undefined
  /** PEM of the authority to trust instead of the system's, where certificates count. */
  ca?: string | undefined
  timeouts?: Partial<Timeouts> | undefined
  max_connections: number
}

/** Of one host: `proven` demands a certificate that is good for its name (MTA-STS). */
type TlsDemand = "proven" | "opportunistic" | "none"

/** Warm connections to many mail hosts, kept apart by address, name and what TLS has to be. */
export class HostPools {
  readonly #options: HostPoolOptions
  readonly #pools = new Map<string, ConnectionPool>()
  #closed = false
  readonly #tls_failed = new Remembered<true>(TLS_FAILED_MS, MOST_POOLS)

  constructor(options: HostPoolOptions) {
    this.#options = options
  }

  pool(name: string, address: string, tls: TlsDemand): ConnectionPool {
    const key = `${tls} ${address} ${name}`
    const pool = this.#pools.get(key) ?? this.#open(name, address, tls)
    this.#pools.delete(key)
    this.#pools.set(key, pool) // the last used is the last to go
    if (this.#pools.size > MOST_POOLS) this.#closeOldest()
    return pool
  }

  /** For some time the host gets mail without TLS, unless its policy demands TLS. */
  rememberTlsFailure(address: string): void {
    void this.#tls_failed.get(address, async () => true)
  }

  hasTlsFailed(address: string): boolean {
    return this.#tls_failed.has(address)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }

  #open(name: string, address: string, tls: TlsDemand): ConnectionPool {
    const { port, ehlo_name, ca, timeouts, max_connections } = this.#options
    const server: SmtpServer = {
      host: address,
      servername: name,
      port,
      ehlo_name,
      tls: tls === "proven" ? "starttls" : tls,
      timeouts: { ...HOST_TIMEOUTS, ...timeouts },
      ...(tls === "proven" && { ca }),
    }
    const pool = new ConnectionPool(server, { max_connections, idle: IDLE_MS, queue: WAIT_MS })
    if (this.#closed) void pool.close()
    return pool
  }

  #closeOldest() {
    for (const [key, pool] of this.#pools) {
      if (pool.isBusy) continue
      this.#pools.delete(key)
      return void pool.close()
    }
  }
}
