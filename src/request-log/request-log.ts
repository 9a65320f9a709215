import { newId } from "../core/ids"
import { log } from "../core/log"
import { isoFrom, millis, monotonic } from "../core/time"
import { inserter } from "../store/statements"
import type { Store } from "../store/store"
import { requestLog } from "./tables"

/** One request and its answer, as the shell knows it when the answer goes out. */
export interface Answered {
  request_id: string
  project_id: string | null
  /** The caller is not known to us: strangers may not fill our disk. */
  is_stranger: boolean
  key_id: string | null
  method: string
  path: string
  status: number
  duration_ms: number
  ip: string
  error_code: string | null
}

const FLUSH_MILLISECONDS = 500
const AT_ONCE = 250
const MOST_WAITING = 20_000
const STRANGERS_PER_FLUSH = 10

/** Two thousand a second. Each costs as much as a twentieth of accepting an email. */
const SUCCESSES_PER_FLUSH = 1000
const MOST_PATH = 200
const WARN_MILLISECONDS = 60_000

type Waiting = Answered & { id: string; at: number }

export interface RequestLogOptions {
  store: Store
  /** Whether there is room on the disk for what nobody needs to live. */
  hasRoom: () => boolean
}

/**
 * What was asked, a few days long. A request only leaves a note in memory; a moment later the
 * notes are written together. What the storage cannot take is dropped: no request waits for it,
 * and none fails. In a flood what succeeded is kept in part, and what failed is kept.
 */
export class RequestLog {
  readonly #options: RequestLogOptions
  #waiting: Waiting[] = []
  #strangers = 0
  #successes = 0
  #left_out = 0
  #dropped = 0
  #warned_at = Number.NEGATIVE_INFINITY
  #writing: Promise<void> | undefined

  constructor(options: RequestLogOptions) {
    this.#options = options
  }

  add(answered: Answered) {
    if (answered.is_stranger && ++this.#strangers > STRANGERS_PER_FLUSH) return
    if (answered.status < 400 && ++this.#successes > SUCCESSES_PER_FLUSH) {
      this.#left_out += 1
      return
    }
    if (this.#waiting.length >= MOST_WAITING) {
      this.#dropped += 1
      return
    }
    this.#waiting.push({ ...answered, id: newId(), at: millis() })
  }

  /** Writes what waits, now and then. The returned function writes the rest and ends it. */
  start(): () => Promise<void> {
    const timer = setInterval(() => void this.flush(), FLUSH_MILLISECONDS)
    return () => {
      clearInterval(timer)
      return this.flush()
    }
  }

  /** Resolves when everything noted so far is written, or given up. */
  async flush(): Promise<void> {
    await this.#writing // another one began before the last of these were noted
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async #write(): Promise<void> {
    this.#strangers = 0
    this.#successes = 0
    const all = this.#waiting
    this.#waiting = []
    for (let from = 0; from < all.length; from += AT_ONCE) {
      const some = all.slice(from, from + AT_ONCE)
      if (!(await this.#keep(some))) {
        this.#dropped += all.length - from
        break
      }
    }
    this.#warn()
  }

  async #keep(some: Waiting[]): Promise<boolean> {
    const { store, hasRoom } = this.#options
    if (!hasRoom()) return false
    try {
      await store.tx((tx) => insertEntries(tx, some.map(rowOf)))
      return true
    } catch {
      return false // the store has told the rest of the process
    }
  }

  #warn() {
    const [lost, left_out] = [this.#dropped, this.#left_out]
    if (lost + left_out === 0 || monotonic() - this.#warned_at < WARN_MILLISECONDS) return
    this.#warned_at = monotonic()
    this.#dropped = 0
    this.#left_out = 0
    if (lost > 0) log.warn("the request log had no room and lost entries", { entries: lost })
    if (left_out > 0)
      log.info("too many requests; the request log left out successful ones", { entries: left_out })
  }
}

const insertEntries = inserter(requestLog)

const rowOf = ({ is_stranger: _, at, path, ...row }: Waiting): typeof requestLog.$inferInsert => ({
  ...row,
  path: path.slice(0, MOST_PATH),
  created_at: isoFrom(at),
})
