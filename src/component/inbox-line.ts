import type { InboxCounts, InboxState } from "./inbox-message"
import { InboxProblem, type InboxRequests } from "./inbox-requests"
import type { ChangeFrame } from "./inbox-shelf"
import { isOffline } from "./page-words"

/** What the server says beside the changes of the inbox. */
export type LineFrame =
  | ChangeFrame
  | { type: "ready"; last_seq: number; counts: Partial<InboxCounts>; heartbeat: number }
  | ({ type: "counts" } & Partial<InboxCounts>)
  | { type: "resync" }
  | { type: "token.expiring" }
  | { type: "ping" }

export interface LineParts {
  requests: InboxRequests
  /** The last change that is known; undefined where none is. */
  after(): number | undefined
  hear(frame: LineFrame): void
  /** Reads the inbox by REST, where the socket does not work. */
  poll(): Promise<unknown>
  turn(state: InboxState, why?: InboxProblem): void
}

const HANDSHAKE_MS = 10_000
const SILENT_BEATS = 2.2
const PONG_MS = 5_000
const SHORTEST_MS = 500
const LONGEST_MS = 10_000
const POLL_MS = 15_000
/** Between tries of a socket while polling helps, and after the server found that there are too many. */
const SELDOM_MS = 60_000
const TOO_MANY_MS = 300_000
/** So often in a row a socket has to fail before polling begins. */
const FAILURES_TO_POLL = 3
/** So long a socket has to live to be no failure. */
const SOLID_MS = 10_000

const [EXPIRED, BLOCKED, TOO_MANY, RESTART] = [4401, 4403, 4429, 1012]

/** The socket of the inbox. It comes back after each break, and polls where no socket lasts. */
export class InboxLine {
  readonly #parts: LineParts
  #socket: WebSocket | undefined
  #token: string | undefined
  #failures = 0
  #is_renewed = false
  #is_ready = false
  #is_reached = true
  #ended = false
  #again: ReturnType<typeof setTimeout> | undefined
  #watch: ReturnType<typeof setTimeout> | undefined
  #polls: ReturnType<typeof setTimeout> | undefined
  #solid: ReturnType<typeof setTimeout> | undefined
  #silence_ms = HANDSHAKE_MS

  constructor(parts: LineParts) {
    this.#parts = parts
  }

  open(): void {
    void this.#connect()
  }

  close(): void {
    this.#ended = true
    this.#drop()
    clearTimeout(this.#again)
    clearTimeout(this.#polls)
  }

  /** The page is seen again, or its network has changed: a silent socket is not trusted any longer. */
  check(): void {
    if (this.#ended) return
    if (isOffline()) this.#parts.turn("offline")
    else if (this.#is_ready) {
      this.#say({ type: "ping" })
      this.#listen(PONG_MS)
    } else if (!this.#socket && this.#again !== undefined) {
      void this.#connect()
      if (this.#polls !== undefined) this.#poll(0)
    }
  }

  async #connect(refused?: string): Promise<void> {
    clearTimeout(this.#again)
    this.#again = undefined
    // The page may take its time for a token, and nothing comes meanwhile.
    if (this.#polls === undefined) this.#parts.turn(isOffline() ? "offline" : "connecting")
    try {
      const token = await this.#parts.requests.token(refused)
      if (this.#ended || this.#socket) return
      this.#token = token
      this.#open(token)
    } catch (error) {
      const is_refused = error instanceof InboxProblem && error.status === 401
      if (is_refused) this.#end(error)
      else this.#later()
    }
  }

  #open(token: string): void {
    const socket = new WebSocket(this.#parts.requests.socketUrl, "svc.inbox.v1")
    this.#socket = socket
    this.#listen(HANDSHAKE_MS)
    socket.onopen = () => {
      const after_seq = this.#parts.after()
      this.#say({ type: "auth", token, ...(after_seq !== undefined && { after_seq }) })
    }
    socket.onmessage = ({ data }) => this.#hear(JSON.parse(String(data)) as LineFrame)
    socket.onclose = ({ code }) => this.#broken(code)
  }

  #say(frame: object): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(frame))
  }

  #hear(frame: LineFrame): void {
    if (frame.type === "ready") this.#ready(frame.heartbeat)
    if (frame.type === "ping") this.#say({ type: "pong" })
    if (frame.type === "token.expiring") void this.#refresh()
    this.#listen(this.#silence_ms)
    if (this.#is_ready) this.#parts.turn("live")
    this.#parts.hear(frame)
  }

  #ready(heartbeat: number): void {
    this.#is_ready = true
    this.#is_renewed = false
    // One that works, and breaks soon, is not tried as often as one that lasted.
    this.#failures = Math.min(1, this.#failures)
    this.#silence_ms = SILENT_BEATS * heartbeat * 1_000
    this.#solid = setTimeout(() => {
      this.#failures = 0
    }, SOLID_MS)
    clearTimeout(this.#polls)
    this.#polls = undefined
  }

  /** The token is about to end. Where the page has no newer one, the server closes. */
  async #refresh(): Promise<void> {
    try {
      this.#token = await this.#parts.requests.token(this.#token)
      this.#say({ type: "refresh", token: this.#token, ref: "token" })
    } catch {} // the server closes then, and the next socket asks for a token again
  }

  /** A line that says nothing at all is broken, and a browser may notice that only after minutes. */
  #listen(most_ms: number): void {
    clearTimeout(this.#watch)
    this.#watch = setTimeout(() => this.#broken(1006), most_ms)
  }

  #drop(): void {
    clearTimeout(this.#watch)
    clearTimeout(this.#solid)
    const socket = this.#socket
    this.#socket = undefined
    this.#is_ready = false
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  #broken(code: number): void {
    this.#drop()
    if (code === BLOCKED)
      this.#end(new InboxProblem(403, "forbidden", "The inbox is closed to this page."))
    else if (code === EXPIRED && this.#is_renewed)
      this.#end(new InboxProblem(401, "unauthorized", "The token of the inbox has ended."))
    else if (code === EXPIRED) {
      this.#is_renewed = true
      void this.#connect(this.#token)
    } else this.#later(code)
  }

  #later(code?: number): void {
    if (this.#ended) return
    this.#failures++
    const is_polling = code === TOO_MANY || this.#failures >= FAILURES_TO_POLL
    if (is_polling && this.#polls === undefined) this.#poll(0)
    else if (!is_polling) this.#parts.turn(isOffline() ? "offline" : "connecting")
    this.#again = setTimeout(() => void this.#connect(), pauseBefore(this.#failures, code))
  }

  #poll(in_ms: number): void {
    clearTimeout(this.#polls)
    this.#polls = setTimeout(async () => {
      const was_reached = this.#is_reached
      this.#is_reached = await this.#reach()
      if (this.#ended || this.#polls === undefined) return
      this.#parts.turn(this.#is_reached ? "polling" : "offline")
      this.#poll(POLL_MS * (0.8 + 0.4 * Math.random()))
      // The network is back: so may be the sockets.
      if (this.#is_reached && !was_reached && !this.#socket) void this.#connect()
    }, in_ms)
  }

  async #reach(): Promise<boolean> {
    try {
      await this.#parts.poll()
      return true
    } catch (error) {
      if (error instanceof InboxProblem && [401, 403].includes(error.status)) this.#end(error)
      return error instanceof InboxProblem && error.status > 0
    }
  }

  #end(why: InboxProblem): void {
    if (this.#ended) return
    this.close()
    this.#parts.turn("ended", why)
  }
}

/** Many clients lose their sockets at once, so each waits for a time of its own. */
function pauseBefore(failures: number, code?: number): number {
  const spread = 0.5 + Math.random()
  if (code === TOO_MANY) return TOO_MANY_MS * spread
  if (failures > FAILURES_TO_POLL) return SELDOM_MS * spread
  const most = code === RESTART ? LONGEST_MS : Math.min(LONGEST_MS, 1_000 * 2 ** failures)
  return SHORTEST_MS + Math.random() * (most - SHORTEST_MS)
}
