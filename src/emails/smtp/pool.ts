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
export class PoolBusy extends Error {
  override readonly name = "PoolBusy"
}

interface Turn {
  resolve(): void
  reject(error: Error): void
}

/** Warm connections to one server, handed out one at a time, the last used first. */
export class ConnectionPool {
  #server: SmtpServer
  #limits: PoolLimits
  #idle = new Map<SmtpSession, ReturnType<typeof setTimeout>>()
  #busy = new Set<SmtpSession>()
  #turns = new Set<Turn>()
  #closed = false

  constructor(server: SmtpServer, limits: PoolLimits) {
    this.#server = server
    this.#limits = limits
  }

  /** A session is out, or somebody waits for one. */
  get isBusy(): boolean {
    return this.#busy.size > 0 || this.#turns.size > 0
  }

  /** Rejects with Trouble, Refusal or PoolBusy. Whoever takes a session gives it back to `release`. */
  async acquire(transcript: string[], { fresh }: { fresh: boolean }): Promise<SmtpSession> {
    while (!this.#closed) {
      const warm = fresh ? undefined : this.#takeIdle()
      if (warm) {
        transcript.push("* using an open connection")
        warm.transcript = transcript
        return warm
      }
      if (this.#busy.size < this.#limits.max_connections) return this.#open(transcript)
      await this.#turn()
    }
    throw closed()
  }

  release(session: SmtpSession): void {
    this.#busy.delete(session)
    if (!session.alive || this.#closed) session.quit()
    else this.#keep(session)
    const [turn] = this.#turns
    if (!turn) return
    this.#turns.delete(turn) // at once, or a second release would wake the same one again
    turn.resolve()
  }

  /** Idle connections end at once, busy ones are cut: their messages come out as `retry`. */
  async close(): Promise<void> {
    this.#closed = true
    for (const turn of this.#turns) turn.reject(closed())
    for (const [session, timer] of this.#idle) {
      clearTimeout(timer)
      session.quit()
    }
    this.#idle.clear()
    for (const session of this.#busy) session.abort()
  }

  #takeIdle(): SmtpSession | undefined {
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

  #turn(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const turn: Turn = { resolve, reject }
    const late = () => reject(new PoolBusy("all connections to the server are in use"))
    const timer = setTimeout(late, this.#limits.queue)
    this.#turns.add(turn)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#turns.delete(turn)
    })
  }
}

const closed = () => new SmtpConnectionError("connection", "the provider was closed")
