import type { Components } from "../../src/client/components"
import type { Client } from "./client"
import type { Context } from "./context"
import { exits, Failure } from "./errors"
import { type Start, serverTime, startAt } from "./feed"
import { given } from "./input"
import { millis, pause } from "./time"

const PATH = "/v1/events/stream"
const PROTOCOL = "svc.events.v1"

/** The server says something every 25 s: a server that is silent for longer is gone. */
const SILENCE_MILLISECONDS = 60_000
const OPENING_MILLISECONDS = 15_000
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 10_000
const MOST_WAITING = 2000

export type Frame =
  | { type: "ready"; secret: string; after: string | null }
  | { type: "event"; event: Components["EventEnvelope"] }
  | { type: "message"; message: unknown }
  | { type: "delivery"; delivery_id: string; headers: Record<string, string>; body: string }
  | { type: "ping" }

interface StreamOptions {
  /** Where to begin; without it with what happens from now on. */
  start?: Start | undefined
  types?: string | undefined
  forward?: boolean
  /** Sent along each time it opens. */
  headers?: Record<string, string>
  /** One after the other; what it returns is awaited before the next. */
  onFrame: (frame: Frame) => unknown
  onState?: (state: "open" | "lost") => void
  timeout?: number | undefined
  /** Of a consumer that moves its own place on: the last event it is done with. */
  cursor?: () => string | undefined
}

/** The way to the server lets no WebSocket through, though its API answers. */
export class NoUpgrade extends Failure {
  constructor(url: string) {
    super(exits.failed, "no_websocket", `${url} answers, but the WebSocket connection fails.`, {
      hint: "a proxy may block WebSockets; HTTPS_PROXY can name another proxy",
    })
  }
}

/**
 * Follows the project over one outgoing WebSocket. When it breaks, it is opened again after a
 * pause that grows, behind the last event that was seen: nothing is missed, and nothing comes twice.
 */
export class EventStream {
  /** Resolves after `close`. Rejects with what no further try would mend. */
  readonly ended: Promise<void>
  readonly #client: Client
  readonly #options: StreamOptions
  #after: string | undefined
  #not_before: string | undefined
  #socket: WebSocket | undefined
  #was_open = false
  #tries = 0
  #waiting = 0
  #done: Promise<unknown> = Promise.resolve()
  readonly #closed = Promise.withResolvers<void>()
  #is_closed = false
  #failure: unknown

  constructor(client: Client, options: StreamOptions) {
    const { timeout } = options
    this.#client = client
    this.#options = options
    const timer = timeout === undefined ? undefined : setTimeout(() => this.close(), timeout)
    this.ended = this.#run().finally(() => clearTimeout(timer))
  }

  send(frame: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  close(): void {
    this.#is_closed = true
    this.#socket?.close(1000)
    this.#closed.resolve()
  }

  async #run(): Promise<void> {
    await this.#begin()
    while (!this.#is_closed) {
      const { code, opened } = await this.#once()
      await this.#done // the frames received so far are handled before the next connection begins
      if (this.#is_closed) break
      if (opened) this.#options.onState?.("lost")
      await this.#checkClose(code, opened)
      await Promise.race([this.#closed.promise, pause(this.#pause())])
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Without a place of its own, the server tells one at the start of a forwarding stream only. */
  async #begin() {
    const { start, forward } = this.#options
    const now = async () => startAt(this.#client, await serverTime(this.#client))
    const known = start ?? (forward ? undefined : await now())
    this.#after = known?.not_before === undefined ? known?.after : (known.after ?? "")
    this.#not_before = known?.not_before
  }

  #query() {
    const { types, forward, cursor } = this.#options
    const after = cursor?.() ?? this.#after
    return { after, types, forward: forward ? "true" : undefined }
  }

  async #once(): Promise<{ code: number; opened: boolean }> {
    const socket = await this.#client
      .socket(PATH, this.#query(), PROTOCOL, this.#options.headers)
      .catch(() => undefined)
    if (!socket) return { code: 1006, opened: false } // the next look at the API says why
    this.#socket = socket
    let opened = false
    let last_message_at = millis()
    const over = Promise.withResolvers<number>()
    const look = setInterval(() => {
      const limit = opened ? SILENCE_MILLISECONDS : OPENING_MILLISECONDS
      if (millis() - last_message_at > limit) over.resolve(1006)
    }, 1000)
    socket.onopen = () => {
      opened = true
      this.#was_open = true
      this.#tries = 0
      this.#options.onState?.("open")
    }
    socket.onmessage = ({ data }) => {
      last_message_at = millis()
      this.#onMessage(String(data), socket)
    }
    socket.onclose = ({ code }) => over.resolve(code)
    const code = await Promise.race([over.promise, this.#closed.promise.then(() => 1000)])
    clearInterval(look)
    socket.onmessage = null
    if (!this.#is_closed) socket.terminate()
    return { code, opened }
  }

  #onMessage(text: string, socket: WebSocket) {
    const frame = frameOf(text)
    if (!frame || frame.type === "ping") return
    if (frame.type === "ready") this.#after ??= frame.after ?? ""
    if (frame.type === "event") {
      this.#after = frame.event.id
      if (this.#not_before !== undefined && frame.event.created_at < this.#not_before) return
    }
    this.#waiting += 1
    this.#done = this.#done
      .then(() => this.#options.onFrame(frame))
      .catch((error: unknown) => this.fail(error))
      .finally(() => {
        this.#waiting -= 1
      })
    // Behind a slow reader the rest waits at the server, not here.
    if (this.#waiting > MOST_WAITING) socket.terminate()
  }

  /** Closes it, and `ended` rejects with this error. */
  fail(error: unknown): void {
    this.#failure ??= error
    this.close()
  }

  /** Throws what another attempt would only repeat. */
  async #checkClose(code: number, opened: boolean) {
    if (code === 4429) {
      const message = "The project has too many open connections, and this one was the oldest."
      throw new Failure(exits.limited, "too_many_connections", message)
    }
    if (code === 4400) {
      const message = "The server does not understand this version of belfry."
      throw new Failure(exits.failed, "bad_frame", message, {
        hint: "use the version of the server",
      })
    }
    if (opened && code !== 4401) return
    const query = { after: this.#query().after || undefined, types: this.#options.types, limit: 1 }
    try {
      await this.#client.call("GET /v1/events", { query: given(query) })
    } catch (error) {
      if (this.#was_open && error instanceof Failure && MAY_PASS.has(error.exit)) return
      throw error
    }
    if (!this.#was_open) throw new NoUpgrade(this.#client.url)
  }

  /** Exponential backoff with jitter, so that clients of one server do not return together. */
  #pause(): number {
    const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#tries)
    this.#tries += 1
    return longest / 2 + (Math.random() * longest) / 2
  }
}

function frameOf(text: string): Frame | undefined {
  try {
    return JSON.parse(text) as Frame
  } catch {
    return undefined
  }
}

const MAY_PASS: ReadonlySet<number> = new Set([
  exits.unreachable,
  exits.try_later,
  exits.limited,
  exits.failed,
])

/** Notes on a terminal that the connection broke, and that it is back. */
export function notifyLink({ output, paint }: Context): (state: "open" | "lost") => void {
  let was_lost = false
  return (state) => {
    if (state === "lost") {
      was_lost = true
      void output.note(paint.yellow("The connection is lost. Connecting again …"))
    } else if (was_lost) {
      was_lost = false
      void output.note(paint.green("Connected again. No event was missed."))
    }
  }
}
