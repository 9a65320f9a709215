import type { Socket } from "node:net"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import {
  type ConnectionContext,
  draining,
  type MailConnection,
  type SmtpCounts,
} from "./mail-connection"
import { MailMemory } from "./mail-data"
import { type MailServerOptions, refusalText, type SmtpLimits } from "./mail-session"

const DEADLINES = { greeting: 30_000, command: 60_000, data_idle: 180_000, data: 900_000 }
const MAIL_MEMORY_BYTES = 128 * 1024 * 1024
/** So many addresses at least it takes to fill the memory without a login. */
const STRANGERS_SHARE = 4
/** Between two looks at the deadlines. */
const LOOK_MILLISECONDS = 1000
const TELL_MILLISECONDS = 60_000

export interface MailServerCounts extends SmtpCounts {
  open_connections: number
  /** Of the messages that are being received now. */
  buffered_bytes: number
}

export interface OpenSocket {
  socket: Socket
  /** By `monotonic`: until then the client has to reach its greeting. */
  greeting_ends_at: number
  connection?: MailConnection
  /** TLS on top of the socket while its handshake runs. */
  destroy: () => void
  free: () => void
}

/** What both ports of one server share: limits, connections, counters. */
export class MailServerState implements ConnectionContext {
  readonly options: MailServerOptions
  readonly deadlines
  readonly memory: MailMemory
  readonly clients: ClientLimits
  readonly sockets = new Set<OpenSocket>()
  readonly look_ms: number
  readonly tally: SmtpCounts = {
    sessions: 0,
    refused_connections: 0,
    failed_handshakes: 0,
    failed_logins: 0,
    timeouts: 0,
    accepted_mails: 0,
    refused_mails: 0,
    accepted_recipients: 0,
    refused_recipients: 0,
    received_bytes: 0,
    ended: {},
  }
  #is_draining = false
  #told_at = Number.NEGATIVE_INFINITY
  #untold = 0
  #whenEmpty: (() => void) | undefined

  constructor(options: MailServerOptions) {
    this.options = options
    this.deadlines = { ...DEADLINES, ...options.deadlines }
    const { memory = MAIL_MEMORY_BYTES, kind, limits } = options
    // A stranger gets a part of it, and always enough for one mail.
    const share = kind === "inbound" ? Math.max(memory / STRANGERS_SHARE, limits.size) : memory
    this.memory = new MailMemory(memory, share)
    this.clients = new ClientLimits(options.limits)
    this.look_ms = Math.min(LOOK_MILLISECONDS, ...Object.values(this.deadlines).map((ms) => ms / 4))
  }

  isDraining = () => this.#is_draining

  counts(): MailServerCounts {
    return {
      ...this.tally,
      ended: { ...this.tally.ended },
      open_connections: this.sockets.size,
      buffered_bytes: this.memory.used,
    }
  }

  drain() {
    this.#is_draining = true
    for (const { connection } of this.sockets) {
      if (connection?.is_idle) connection.endWith("drain", 421, draining())
    }
  }

  /** Resolves when no connection is open. */
  emptied(): Promise<void> {
    if (this.sockets.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenEmpty = resolve
    })
  }

  destroy() {
    for (const open of this.sockets) open.destroy()
  }

  gone(open: OpenSocket) {
    open.free()
    this.sockets.delete(open)
    if (this.sockets.size === 0) this.#whenEmpty?.()
  }

  /** Ends what passed its deadline, and forgets sockets whose end nobody told. */
  look() {
    const now = monotonic()
    for (const open of this.sockets) {
      const { socket, connection, greeting_ends_at } = open
      if (socket.destroyed) this.gone(open)
      else if (connection && now >= connection.deadline) {
        this.tally.timeouts += 1
        connection.deadline = Number.POSITIVE_INFINITY
        connection.endWith("timeout", 421, `4.4.2 ${refusalText("timeout", "Too slow")}`)
      } else if (!connection && now >= greeting_ends_at) {
        this.tally.timeouts += 1
        open.destroy()
      }
    }
  }

  /** At most one line a minute: an attacker may open any number of connections. */
  refusedConnection(address: string, reason: string) {
    this.tally.refused_connections += 1
    this.#untold += 1
    if (monotonic() - this.#told_at < TELL_MILLISECONDS) return
    const { kind } = this.options
    log.warn("a mail server refused connections", {
      server: kind,
      address,
      reason,
      refused: this.#untold,
    })
    this.#told_at = monotonic()
    this.#untold = 0
  }
}

const MINUTE = 60_000
/** A flood of more addresses within a minute makes the oldest ones forgotten. */
const MOST_REMEMBERED = 50_000

/** How many connections each client has, and how many it opened within a minute. */
export class ClientLimits {
  readonly #options: Pick<SmtpLimits, "per_address" | "per_minute">
  readonly #open = new Map<string, number>()
  /** The oldest minute first. */
  readonly #opened = new Map<string, { since: number; count: number }>()

  constructor(options: Pick<SmtpLimits, "per_address" | "per_minute">) {
    this.#options = options
  }

  /** Why one more connection is too many, or how to give it back. */
  admit(address: string): "too_many" | "too_fast" | (() => void) {
    const client = subscriberOf(address)
    const open = this.#open.get(client) ?? 0
    if (open >= this.#options.per_address) return "too_many"
    if (!this.#isSlow(client)) return "too_fast"
    this.#open.set(client, open + 1)
    let is_open = true
    return () => {
      if (!is_open) return
      is_open = false
      const left = (this.#open.get(client) ?? 1) - 1
      if (left > 0) this.#open.set(client, left)
      else this.#open.delete(client)
    }
  }

  #isSlow(client: string): boolean {
    const { per_minute } = this.#options
    if (per_minute === undefined) return true
    const now = monotonic()
    this.#forget(now)
    const minute = this.#opened.get(client) ?? { since: now, count: 0 }
    minute.count += 1
    this.#opened.set(client, minute)
    return minute.count <= per_minute
  }

  /** Any number of addresses may come: only those are looked at whose minute is over. */
  #forget(now: number) {
    for (const [client, { since }] of this.#opened) {
      if (now - since < MINUTE && this.#opened.size < MOST_REMEMBERED) return
      this.#opened.delete(client)
    }
  }
}
