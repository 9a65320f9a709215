import type { Serving } from "./serving"

const TYPES = "email.sent,email.delivered"
const PROTOCOL = "svc.events.v1"

/** As in `src/console`. */
const NEWEST_EVERY_MS = 500
const SLOW_POLL_MS = 30_000
const FIRST_LOOK_MS = 100
const SPREAD_MS = 300
const LEAST_GAP_MS = 600
const LONG_GAP_MS = 3_000
const PAGE_ROWS = 100

/**
 * Clients that ask and listen as an open page of the mailbox does: a stream of the newest event, a look
 * at the first page of the list some time after it, and a slow poll.
 */
export class LivePages implements AsyncDisposable {
  readonly #server: Serving
  readonly #sockets = new Set<WebSocket>()
  readonly #timers = new Set<Timer>()
  readonly #count: number
  #looks = 0
  #is_over = false
  /** Every page has its list and its stream. */
  readonly ready: Promise<unknown>

  constructor(server: Serving, count: number) {
    this.#server = server
    this.#count = count
    this.ready = Promise.all(Array.from({ length: count }, () => this.#begin()))
  }

  async #begin() {
    let [total, has_news, is_looking] = [await this.#look(0), false, false]
    this.#timers.add(setInterval(() => this.#look(0), SLOW_POLL_MS))
    const lookAgain = async () => {
      is_looking = true
      while (has_news && !this.#is_over) {
        await Bun.sleep(FIRST_LOOK_MS + Math.random() * SPREAD_MS)
        has_news = false
        const before = total
        total = await this.#look(before)
        await Bun.sleep(total - before > PAGE_ROWS ? LONG_GAP_MS : LEAST_GAP_MS)
      }
      is_looking = false
    }
    await this.#follow(() => {
      has_news = true
      if (!is_looking) void lookAgain()
    })
  }

  /** Throws unless the pages looked again, so that their figures mean something. */
  requireLooks(): void {
    if (this.#looks >= 2 * this.#count) return
    throw new Error(`${this.#count} live pages have looked ${this.#looks} times`)
  }

  /** How many mails there are; `known` where nobody answers any more. */
  async #look(known: number): Promise<number> {
    if (this.#is_over) return known
    this.#looks += 1
    const { url, headers } = this.#server
    const answer = await fetch(`${url}/v1/mailbox?page=1&per_page=${PAGE_ROWS}`, { headers })
    return ((await answer.json()) as { meta: { total: number } }).meta.total
  }

  async #follow(onEvent: () => void) {
    const search = new URLSearchParams({ types: TYPES, newest_every_ms: String(NEWEST_EVERY_MS) })
    const socket = this.#open(search, (frame) => {
      if (frame.startsWith('{"type":"event"')) onEvent()
    })
    await new Promise((resolve, reject) => {
      socket.onopen = resolve
      socket.onerror = () => reject(new Error("the stream did not open"))
    })
  }

  #open(search: URLSearchParams, onFrame: (frame: string) => void): WebSocket {
    const { url, headers } = this.#server
    const token = headers.Authorization?.replace("Bearer ", "") ?? ""
    const address = `${url.replace(/^http/, "ws")}/v1/events/stream?${search}`
    const socket = new WebSocket(address, [PROTOCOL, `bearer.${token}`])
    socket.onmessage = ({ data }) => onFrame(String(data))
    this.#sockets.add(socket)
    return socket
  }

  async [Symbol.asyncDispose]() {
    this.#is_over = true
    for (const timer of this.#timers) clearTimeout(timer)
    for (const socket of this.#sockets) socket.close()
  }
}
