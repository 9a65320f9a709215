import type { ServerWebSocket } from "bun"
import { log } from "../core/log"
import { monotonic } from "../core/time"

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

export type Frame = Record<string, unknown>

/** Whether a frame was asked for, was not, or does not belong here at all. */
export type Verdict = "expected" | "extra" | "bad"

/** What one feature says and hears on a connection of its own. */
export interface Conversation {
  /** Runs while the connection is open. What it throws closes it (1011). */
  begin(socket: Socket): Promise<void>
  /** A frame of the client other than ping and pong; without it every one is bad. */
  hear?(frame: Frame): Verdict
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

function frameOf(data: string | Buffer): Frame | undefined {
  if (typeof data !== "string" || Buffer.byteLength(data) > MOST_FRAME_BYTES) return undefined
  try {
    const frame: unknown = JSON.parse(data)
    const is_object = typeof frame === "object" && frame !== null && !Array.isArray(frame)
    return is_object ? (frame as Frame) : undefined
  } catch {
    return undefined
  }
}
