import { exits, Failure } from "./errors"
import { millis, pause } from "./time"

/** Servers say something every 25 s: one that is silent for longer is gone. */
const SILENCE_MILLISECONDS = 60_000
const OPENING_MILLISECONDS = 15_000
const FIRST_PAUSE = 500
const LONGEST_PAUSE = 10_000
const MOST_WAITING = 2000

/** Whether news arrive now. */
export type LinkState = "open" | "lost"

interface LiveOptions<Frame> {
  /** Before the first socket. Rejects with what no further try would mend. */
  begin?: () => Promise<void>
  /** A socket that is about to open. Where it rejects, the connection counts as closed with 1006. */
  connect: () => Promise<WebSocket>
  onOpen?: (socket: WebSocket) => void
  /** Hears a frame at once; what it gives is then handled. */
  hear: (text: string) => Frame | undefined
  /** One after the other; what it returns is awaited before the next. */
  onFrame: (frame: Frame) => unknown
  onState?: ((state: LinkState) => void) | undefined
  /** Throws what another attempt would only repeat. */
  checkClose: (code: number, opened: boolean) => Promise<void>
  /** Milliseconds until it closes by itself. */
  timeout?: number | undefined
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
 * A WebSocket that is opened again after a pause that grows, whenever it breaks. Its options say where it goes on.
 */
export class LiveSocket<Frame> {
  /** Resolves after `close`. Rejects with what no further try would mend. */
  readonly ended: Promise<void>
  readonly #options: LiveOptions<Frame>
  #socket: WebSocket | undefined
  #tries = 0
  #waiting = 0
  #done: Promise<unknown> = Promise.resolve()
  readonly #closed = Promise.withResolvers<void>()
  #is_closed = false
  #failure: unknown

  constructor(options: LiveOptions<Frame>) {
    const { timeout } = options
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

  /** Closes it, and `ended` rejects with this error. */
  fail(error: unknown): void {
    this.#failure ??= error
    this.close()
  }

  async #run(): Promise<void> {
    await this.#options.begin?.()
    while (!this.#is_closed) {
      const { code, opened } = await this.#once()
      await this.#done // the frames received so far are handled before the next connection begins
      if (this.#is_closed) break
      if (opened) this.#options.onState?.("lost")
      await this.#options.checkClose(code, opened)
      await Promise.race([this.#closed.promise, pause(this.#pause())])
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  async #once(): Promise<{ code: number; opened: boolean }> {
    const connecting = this.#options.connect().catch(() => undefined)
    const socket = await Promise.race([connecting, this.#closed.promise])
    if (this.#is_closed) void connecting.then((late) => late?.terminate())
    if (!socket) return { code: 1006, opened: false } // the look at the API says why
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
      this.#tries = 0
      this.#options.onOpen?.(socket)
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
    const frame = this.#options.hear(text)
    if (frame === undefined) return
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

  /** Exponential backoff with jitter, so that clients of one server do not return together. */
  #pause(): number {
    const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#tries)
    this.#tries += 1
    return longest / 2 + (Math.random() * longest) / 2
  }
}

export function frameIn<Frame>(text: string): Frame | undefined {
  try {
    return JSON.parse(text) as Frame
  } catch {
    return undefined
  }
}

export const notUnderstood = (): Failure =>
  new Failure(exits.failed, "bad_frame", "The server does not understand this version of belfry.", {
    hint: "use the version of the server",
  })

const MAY_PASS: ReadonlySet<number> = new Set([
  exits.unreachable,
  exits.try_later,
  exits.limited,
  exits.failed,
])

/** Whether a server that was there may be there again. */
export const mayPass = (error: unknown): boolean =>
  error instanceof Failure && MAY_PASS.has(error.exit)
