import { monotonic } from "../../core/time"
import { ProviderBusyError } from "../../providers/provider"
import { type SmtpServer, SmtpSession } from "./session"
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
  /** Each with the moment when it has waited long enough, the longest first. */
  #idle = new Map<SmtpSession, number>()
  #sweep: Timer | undefined
  #busy = new Set<SmtpSession>()
  #waiters = new Set<PromiseWithResolvers<void>>()
  #closed = false

  constructor(server: SmtpServer, limits: PoolLimits) {
    this.#server = server
    this.#limits = limits
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
    clearTimeout(this.#sweep)
    for (const session of this.#idle.keys()) session.quit()
    this.#idle.clear()
    for (const session of this.#busy) session.abort()
  }

  #reuseIdle(): SmtpSession | undefined {
    for (const session of [...this.#idle.keys()].reverse()) {
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
      await session.open()
      if (this.#closed) throw closed() // there was nothing to cut while it connected
      return session
    } catch (error) {
      this.release(session)
      throw error
    }
  }

  #keep(session: SmtpSession) {
    this.#idle.set(session, monotonic() + this.#limits.idle)
    this.#sweep ??= this.#sweepIn(this.#limits.idle)
  }

  /** One timer for all of them: a busy pool would set and clear one for each message. */
  #sweepIn(ms: number): Timer {
    return setTimeout(() => {
      const now = monotonic()
      for (const [session, until] of this.#idle) {
        if (until > now) {
          this.#sweep = this.#sweepIn(until - now)
          return
        }
        this.#idle.delete(session)
        session.quit()
      }
      this.#sweep = undefined
    }, ms).unref()
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

/** No connection any more. */
export const closed = () => new SmtpConnectionError("connection", "the provider was closed")
