import type { ServerWebSocket } from "bun"
import { fail } from "../core/errors"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { peerOf } from "./in-flight"

/** How often a connection is looked at, and what it may take. Tests take shorter times. */
export interface SocketTimes {
  /** Between two looks: credential, silence, stuck reader. */
  look_ms: number
  ping_ms: number
  silence_ms: number
  stuck_ms: number
  /** For the goodbye to be read; 2 s without it. */
  parting_ms?: number
}

export const SOCKET_TIMES: SocketTimes = {
  look_ms: 2500,
  ping_ms: 25_000,
  silence_ms: 50_000,
  stuck_ms: 10_000,
}

/** Open connections of one project on this node; one more closes the oldest (4429). */
export const SOCKETS_PER_PROJECT = 100

/** The server, as far as an upgrade needs it. */
export interface Upgrader {
  requestIP(request: Request): { address: string; port: number } | null
  upgrade(request: Request, options: { data: Socket; headers: Record<string, string> }): boolean
}

export interface Opening {
  request: Request
  server: Upgrader | null
  protocol: string
  project_id: string
  headers: Record<string, string>
  conversation: Conversation
  /** Whether the credential would still be let in. */
  stillAdmitted: () => Promise<boolean>
}

interface Open {
  socket: Socket
  stillAdmitted: () => Promise<boolean>
  /** Since the last ping. */
  unpinged_ms: number
}

/** Every open WebSocket of this node, and who of them has to go. */
export class Sockets {
  readonly #times: SocketTimes
  readonly #projects = new Map<string, Set<Open>>()
  #timer: Timer | undefined

  constructor(times: SocketTimes = SOCKET_TIMES) {
    this.#times = times
  }

  /** Throws 422 where the request asks for no connection of this protocol. */
  open({ request, server, protocol, project_id, headers, conversation, ...rest }: Opening): void {
    const open = { ...rest, unpinged_ms: 0 } as Open
    const onGone = () => this.#forget(project_id, open)
    open.socket = new Socket(conversation, onGone, this.#times.parting_ms)
    open.socket.peer = server ? peerOf(request, server) : undefined
    const answer = { ...headers, "sec-websocket-protocol": protocol }
    this.#join(project_id, open)
    if (server?.upgrade(request, { data: open.socket, headers: answer })) return
    this.#forget(project_id, open)
    refuseUpgrade("upgrade_required", PLAIN)
  }

  #join(project_id: string, open: Open) {
    const all = this.#projects.get(project_id) ?? new Set()
    this.#projects.set(project_id, all.add(open))
    const [oldest] = all
    if (all.size > SOCKETS_PER_PROJECT) oldest?.socket.close("too_many")
    this.#timer ??= setInterval(() => this.#look(), this.#times.look_ms)
  }

  #forget(project_id: string, open: Open) {
    const all = this.#projects.get(project_id)
    all?.delete(open)
    if (all?.size === 0) this.#projects.delete(project_id)
    if (this.#projects.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look() {
    for (const all of this.#projects.values()) for (const open of [...all]) this.#lookAt(open)
  }

  #lookAt(open: Open) {
    const { socket, stillAdmitted } = open
    const { look_ms, ping_ms, silence_ms, stuck_ms } = this.#times
    if (socket.silent_ms >= silence_ms) return socket.close("silent")
    if (socket.stuck_ms >= stuck_ms) return socket.close("slow")
    open.unpinged_ms += look_ms
    if (open.unpinged_ms >= ping_ms) {
      open.unpinged_ms = 0
      socket.ping()
    }
    stillAdmitted().then(
      (admitted) => void (admitted || socket.close("unauthorized")),
      (error) => log.debug("the credential of a WebSocket could not be checked", { error }),
    )
  }
}

/** Before anything else of the route is looked at: a mere GET is told what this is. */
export function demandUpgrade({ headers }: Request, protocol: string): void {
  if (headers.get("upgrade")?.toLowerCase() !== "websocket")
    refuseUpgrade("upgrade_required", PLAIN)
  const offered = headers.get("sec-websocket-protocol")?.split(",") ?? []
  if (offered.some((one) => one.trim() === protocol)) return
  refuseUpgrade(
    "subprotocol_required",
    `This WebSocket needs the subprotocol ${protocol}. Name it in Sec-WebSocket-Protocol.`,
  )
}

const PLAIN = "This route is a WebSocket. Connect with a WebSocket client."

const refuseUpgrade = (reason: string, message: string): never =>
  fail("validation_error", message, { reason })

/** Why a connection ends (contract 42, section 3), beside RFC 6455's own codes. */
export const CLOSE = {
  restart: 1012,
  broken: 1011,
  slow: 1013,
  bad_frame: 4400,
  unauthorized: 4401,
  silent: 4408,
  too_many: 4429,
} as const

export const MOST_FRAME_BYTES = 16 * 1024
export const MOST_BUFFERED_BYTES = 1024 * 1024
const FRAMES_PER_SECOND = 20
const PARTING_MILLISECONDS = 2000

export type SocketFrame = Record<string, unknown>

/** Whether a frame was asked for, was not, or does not belong here at all. */
export type FrameVerdict = "expected" | "extra" | "bad"

/** What one feature says and hears on a connection of its own. */
export interface Conversation {
  /** Runs while the connection is open. What it throws closes it (1011). */
  begin(socket: Socket): Promise<void>
  /** A frame of the client other than ping and pong; without it every one is bad. */
  hear?(frame: SocketFrame): FrameVerdict
}

/** A handler's answer that turns its request into a connection. */
export class Upgrade {
  readonly conversation: Conversation

  constructor(conversation: Conversation) {
    this.conversation = conversation
  }
}

/** One open WebSocket. Its memory is bounded: who does not read is closed, never waited for. */
export class Socket {
  /** The other side's address and port, as bytes. */
  peer: string | undefined
  readonly #conversation: Conversation
  readonly #closed = new AbortController()
  readonly #onGone: () => void
  readonly #parting_ms: number
  #wire: ServerWebSocket<Socket> | undefined
  #room: PromiseWithResolvers<void> | undefined
  #stuck_at = Number.POSITIVE_INFINITY
  #heard_at = monotonic()
  #second = 0
  #frames = 0

  /** After `parting_ms` who does not read the goodbye is cut off. */
  constructor(
    conversation: Conversation,
    onGone: () => void,
    parting_ms: number = PARTING_MILLISECONDS,
  ) {
    this.#conversation = conversation
    this.#onGone = onGone
    this.#parting_ms = parting_ms
  }

  /** Aborted when the connection is over, or about to be. */
  get closed(): AbortSignal {
    return this.#closed.signal
  }

  /** Milliseconds for which the other side has neither said nor answered anything. */
  get silent_ms(): number {
    return monotonic() - this.#heard_at
  }

  /** Milliseconds for which nothing has left, though something waits. */
  get stuck_ms(): number {
    return Math.max(0, monotonic() - this.#stuck_at)
  }

  /** Resolves when there is room for the next one: at once, unless the reader is slow. */
  async send(frame: object): Promise<void> {
    this.push(frame)
    await this.#room?.promise
  }

  /** For what nobody can ask for again: it waits in a bounded buffer, and too much closes (1013). */
  push(frame: object) {
    const wire = this.#wire
    if (!wire || this.closed.aborted) return
    if (wire.getBufferedAmount() > MOST_BUFFERED_BYTES) return this.close("slow")
    const sent = wire.send(JSON.stringify(frame))
    if (sent === 0) return this.close("slow")
    if (sent > 0 || this.#room) return
    this.#room = Promise.withResolvers()
    this.#stuck_at = monotonic()
  }

  ping() {
    this.push({ type: "ping" })
    this.#wire?.ping() // every browser answers this one by itself
  }

  close(why: keyof typeof CLOSE) {
    if (this.closed.aborted) return
    this.#end()
    const wire = this.#wire
    wire?.close(CLOSE[why], REASONS[why])
    // Who reads nothing does not read the goodbye either.
    setTimeout(() => wire?.terminate(), this.#parting_ms).unref()
  }

  opened(wire: ServerWebSocket<Socket>) {
    this.#wire = wire
    this.#conversation.begin(this).catch((error) => {
      log.error("a WebSocket conversation failed", { error })
      this.close("broken")
    })
  }

  /** A frame as it came. */
  received(data: string | Buffer) {
    this.lives()
    const frame = frameOf(data)
    if (!frame) return this.close("bad_frame")
    if (frame.type === "pong") return this.#count()
    if (frame.type === "ping") {
      this.#count()
      return this.push({ type: "pong" })
    }
    const verdict = this.#conversation.hear?.(frame) ?? "bad"
    if (verdict === "bad") return this.close("bad_frame")
    if (verdict === "extra") this.#count()
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
    this.#end()
  }

  #end() {
    if (this.closed.aborted) return
    this.#closed.abort()
    this.drained()
    this.#onGone()
  }

  #count() {
    const second = Math.floor(monotonic() / 1000)
    this.#frames = second === this.#second ? this.#frames + 1 : 1
    this.#second = second
    if (this.#frames > FRAMES_PER_SECOND) this.close("too_many")
  }
}

const REASONS: Record<keyof typeof CLOSE, string> = {
  restart: "the server restarts",
  broken: "the server failed",
  slow: "the receiver is too slow",
  bad_frame: "the frame is not valid in this protocol",
  unauthorized: "the credential is not valid any more",
  silent: "the client sent no pong",
  too_many: "the client has too many connections or frames",
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
