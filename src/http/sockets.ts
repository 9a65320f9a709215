import type { ServerWebSocket } from "bun"
import { fail } from "../core/errors"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { peerOf } from "./connection-limits"

/** How often a connection is checked, and how long it may take. Tests take shorter times. */
export interface SocketTimes {
  /** Between two checks of credential, silence and slow reader. */
  look_ms: number
  ping_ms: number
  silence_ms: number
  stuck_ms: number
  /** For the close frame to be read. */
  parting_ms?: number
}

export const SOCKET_TIMES = {
  look_ms: 2500,
  ping_ms: 25_000,
  silence_ms: 50_000,
  stuck_ms: 10_000,
  parting_ms: 2000,
}

/** Open connections of one project on this node. One more closes the oldest (4429). */
export const SOCKETS_PER_PROJECT = 100
const FRAMES_PER_SECOND = 20
export const MOST_FRAME_BYTES = 16 * 1024
export const MOST_BUFFERED_BYTES = 1024 * 1024

/** Why a connection ends (contract 42, section 3), beside RFC 6455's own codes. */
const CLOSE = {
  restart: [1012, "the server restarts"],
  broken: [1011, "the server failed"],
  slow: [1013, "the receiver is too slow"],
  bad_frame: [4400, "the frame is not valid in this protocol"],
  unauthorized: [4401, "the credential is not valid any more"],
  forbidden: [4403, "the origin or the subscriber is not admitted"],
  silent: [4408, "the client sent no pong"],
  too_many: [4429, "the client has too many connections or frames"],
} as const

const PING = JSON.stringify({ type: "ping" })
const PONG = JSON.stringify({ type: "pong" })

export type SocketFrame = Record<string, unknown>

/** What one feature says and hears on a connection of its own. */
export interface Conversation {
  /** Runs while the connection is open. What it throws closes it (1011). */
  begin(socket: Socket): Promise<void>
  /**
   * A frame of the client other than ping and pong: one that was asked for, one too many, or one
   * that does not belong here. Without this function every frame is bad.
   */
  hear?(frame: SocketFrame): "expected" | "extra" | "bad"
  /** Runs at each check of the connection, for what the conversation knows without asking. */
  look?(): void
  /** The connection is over, or about to be. */
  gone?(): void
}

/** A handler's answer that turns its request into a connection. */
export class Upgrade {
  readonly conversation: Conversation

  constructor(conversation: Conversation) {
    this.conversation = conversation
  }
}

/** The server, as far as an upgrade needs it. */
export interface Upgrader {
  requestIP(request: Request): { address: string; port: number } | null
  /** How long the connection may be silent, in place of the listener's own time. */
  timeout(request: Request, seconds: number): void
  upgrade(request: Request, options: { data: Socket; headers: Record<string, string> }): boolean
}

interface SocketOptions {
  conversation: Conversation
  /** Empty where no caller is known yet: the conversation then counts the connections, and admits them. */
  project_id: string
  /** Whether the credential would still be let in. */
  stillAdmitted?: (() => Promise<boolean>) | undefined
}

interface Opening extends SocketOptions {
  request: Request
  server: Upgrader | null
  protocol: string
  headers: Record<string, string>
}

/** Every open WebSocket of this node. Closes those that break a limit. */
export class Sockets {
  readonly #times: Required<SocketTimes>
  readonly #projects = new Map<string, Set<Socket>>()
  #timer: Timer | undefined

  constructor(times: SocketTimes = SOCKET_TIMES) {
    this.#times = { ...SOCKET_TIMES, ...times }
  }

  /** Throws 422 where the request asks for no connection of this protocol. */
  open({ request, server, protocol, headers, ...options }: Opening): void {
    const socket = new Socket(options, this.#times, this)
    if (server) socket.peer = peerOf(request, server)
    this.#join(socket)
    const answer = { ...headers, "sec-websocket-protocol": protocol }
    if (server?.upgrade(request, { data: socket, headers: answer })) return
    this.forget(socket)
    refuseUpgrade("upgrade_required", PLAIN)
  }

  #join(socket: Socket) {
    const all = this.#projects.get(socket.project_id) ?? new Set()
    this.#projects.set(socket.project_id, all.add(socket))
    const [oldest] = all
    if (socket.project_id && all.size > SOCKETS_PER_PROJECT) oldest?.close("too_many")
    this.#timer ??= setInterval(() => {
      for (const some of this.#projects.values()) for (const one of [...some]) one.check()
    }, this.#times.look_ms)
  }

  forget(socket: Socket) {
    const all = this.#projects.get(socket.project_id)
    all?.delete(socket)
    if (all?.size === 0) this.#projects.delete(socket.project_id)
    if (this.#projects.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Before anything else of the route is looked at: a mere GET is told what this is. */
export function requireUpgrade({ headers }: Request, protocol: string): void {
  if (headers.get("upgrade")?.toLowerCase() !== "websocket")
    refuseUpgrade("upgrade_required", PLAIN)
  if (offeredProtocols(headers).includes(protocol)) return
  const message = `This WebSocket needs the subprotocol ${protocol}. Name it in Sec-WebSocket-Protocol.`
  refuseUpgrade("subprotocol_required", message)
}

const offeredProtocols = (headers: Headers): string[] =>
  headers
    .get("sec-websocket-protocol")
    ?.split(",")
    .map((one) => one.trim()) ?? []

const BEARER = "bearer."

/**
 * The credentials that a page offers as subprotocols `bearer.<token>`, because it can send no header
 * (contract 42, section 3), each once. None is ever the protocol that the server chooses.
 */
export const offeredTokens = ({ headers }: Request): string[] => [
  ...new Set(
    offeredProtocols(headers)
      .filter((one) => one.startsWith(BEARER))
      .map((one) => one.slice(BEARER.length)),
  ),
]

const PLAIN = "This route is a WebSocket. Connect with a WebSocket client."

const refuseUpgrade = (reason: string, message: string): never =>
  fail("validation_error", message, { reason })

/**
 * One open WebSocket. Its memory is bounded: a client that does not read is closed, never waited for. There may be
 * thousands of them, so each is small.
 */
export class Socket {
  peer: string | undefined
  is_over = false
  readonly #options: SocketOptions
  readonly #times: Required<SocketTimes>
  readonly #all: Pick<Sockets, "forget">
  #closed: AbortController | undefined
  #wire: ServerWebSocket<Socket> | undefined
  #room: PromiseWithResolvers<void> | undefined
  #stuck_at = Number.POSITIVE_INFINITY
  #heard_at = monotonic()
  #unpinged_ms = 0
  #second = 0
  #frames = 0

  constructor(options: SocketOptions, times: Required<SocketTimes>, all: Pick<Sockets, "forget">) {
    this.#options = options
    this.#times = times
    this.#all = all
  }

  get project_id(): string {
    return this.#options.project_id
  }

  /** Aborted when the connection is over, or about to be. */
  get closed(): AbortSignal {
    this.#closed ??= new AbortController()
    if (this.is_over) this.#closed.abort()
    return this.#closed.signal
  }

  /** Resolves when there is room for the next one: at once, unless the reader is slow. */
  async send(frame: object): Promise<void> {
    await this.sendAll([JSON.stringify(frame)])
  }

  /** As `send`, for frames that are text already, in their order and in few writes. */
  async sendAll(frames: readonly string[]): Promise<void> {
    for (let sent = 0; sent < frames.length && !this.is_over; ) {
      await this.#room?.promise
      sent += this.#writeAll(frames.slice(sent), () => this.#room === undefined)
    }
    await this.#room?.promise
  }

  /** For frames that cannot be asked for again. They wait in a bounded buffer; too many close (1013). */
  pushAll(frames: readonly string[]) {
    this.#writeAll(frames, () => true)
  }

  /** Returns how many it wrote, at least one: what is written together leaves in few packets. */
  #writeAll(frames: readonly string[], goesOn: () => boolean): number {
    let written = 0
    this.#wire?.cork(() => {
      do this.#write(frames[written++] ?? "")
      while (written < frames.length && goesOn())
    })
    return Math.max(1, written)
  }

  #write(frame: string) {
    const wire = this.#wire
    if (!wire || this.is_over) return
    if (wire.getBufferedAmount() > MOST_BUFFERED_BYTES) return this.close("slow")
    const sent = wire.send(frame)
    if (sent === 0) return this.close("slow")
    if (sent > 0 || this.#room) return
    this.#room = Promise.withResolvers()
    this.#stuck_at = monotonic()
  }

  close(why: keyof typeof CLOSE) {
    if (this.is_over) return
    this.gone()
    const wire = this.#wire
    const [code, reason] = CLOSE[why]
    wire?.close(code, reason)
    // A client that reads nothing does not read the close frame either.
    setTimeout(() => wire?.terminate(), this.#times.parting_ms).unref()
  }

  /** Closes it where the client is silent, slow or not admitted any more. Sends a ping from time to time. */
  check() {
    const { look_ms, ping_ms, silence_ms, stuck_ms } = this.#times
    if (monotonic() - this.#heard_at >= silence_ms) return this.close("silent")
    if (monotonic() - this.#stuck_at >= stuck_ms) return this.close("slow")
    this.#unpinged_ms += look_ms
    if (this.#unpinged_ms >= ping_ms) {
      this.#unpinged_ms = 0
      this.pushAll([PING])
      this.#wire?.ping() // every browser answers this one by itself
    }
    this.#options.conversation.look?.()
    this.#options.stillAdmitted?.().then(
      (admitted) => void (admitted || this.close("unauthorized")),
      (error) => log.debug("the credential of a WebSocket could not be checked", { error }),
    )
  }

  opened(wire: ServerWebSocket<Socket>) {
    this.#wire = wire
    this.#options.conversation.begin(this).catch((error) => {
      log.error("a WebSocket conversation failed", { error })
      this.close("broken")
    })
  }

  received(data: string | Buffer) {
    if (this.is_over) return // what was on its way when the connection was closed
    this.lives()
    const frame = frameOf(data)
    if (!frame) return this.close("bad_frame")
    const { type } = frame
    const is_own = type === "ping" || type === "pong"
    const kind = is_own ? "extra" : (this.#options.conversation.hear?.(frame) ?? "bad")
    if (kind === "bad") return this.close("bad_frame")
    if (kind === "extra") this.#count()
    if (type === "ping") this.pushAll([PONG])
  }

  lives() {
    this.#heard_at = monotonic()
  }

  drained() {
    this.#stuck_at = Number.POSITIVE_INFINITY
    this.#room?.resolve()
    this.#room = undefined
  }

  gone() {
    if (this.is_over) return
    this.is_over = true
    this.#closed?.abort()
    this.drained()
    this.#options.conversation.gone?.()
    this.#all.forget(this)
  }

  #count() {
    const second = Math.floor(monotonic() / 1000)
    this.#frames = second === this.#second ? this.#frames + 1 : 1
    this.#second = second
    if (this.#frames > FRAMES_PER_SECOND) this.close("too_many")
  }
}

function frameOf(data: string | Buffer): SocketFrame | undefined {
  if (typeof data !== "string" || Buffer.byteLength(data) > MOST_FRAME_BYTES) return undefined
  try {
    const frame: unknown = JSON.parse(data)
    const is_object = typeof frame === "object" && frame !== null && !Array.isArray(frame)
    return is_object ? (frame as SocketFrame) : undefined
  } catch {
    return undefined
  }
}
