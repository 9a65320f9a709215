import type { Database } from "bun:sqlite"
import { ApiError } from "../core/errors"
import { codeOf, faultOf } from "../core/faults"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import type { LogState } from "./file-tasks"

/** The share of the checkpoint's length that the writer's own thread copies at the end. */
const REST = 1 / 4
/** Times that length: from there on the writer copies all there is, so that the log has an end. */
const BOUND = 8
/** A log that took longer to fill is copied here: a thread would cost more memory than it saves. */
const CALM_MS = 10_000

/** Runs `copyLog` in another thread; rejects with what that threw. */
export type CopyLog = (path: string) => Promise<void>

interface CheckpointOptions {
  path: string
  /** Length of the log at which a checkpoint begins. */
  pages: number
  copyLog: CopyLog
  /** A log that fills more slowly than this needs no other thread. Tests set it. */
  calm_ms?: number
  /** Hears what the disk refused. After a lost fsync it has to `stop` them: the next would lie. */
  onFault: (error: unknown) => void
}

/**
 * Checkpoints that hold the writer's thread for a fraction of their time. Another thread copies the
 * log; the few pages written meanwhile are copied here, between two groups. A thread alone would
 * never come to an end: the log begins anew only when a group starts on one that is copied to its
 * last page, and a busy writer adds pages during every pass. Where there is little to do, no thread
 * is asked: it would start for that, and stay.
 */
export class Checkpoints {
  #database: Database
  #options: CheckpointOptions
  #count: () => LogState
  #finish: () => LogState
  /** Length of the log at which something is to be done next. */
  #due: number
  /** What the last look found: length of the log, and how much of it was copied. */
  #pages = 0
  #copied = 0
  /** Since the other thread was asked: how many were copied then. */
  #asked: number | undefined
  #copying: Promise<void> | undefined
  /** When the log began anew, or was last tried in vain. */
  #since = monotonic()
  #ended = false

  constructor(database: Database, options: CheckpointOptions) {
    const checkpoint = (mode: "NOOP" | "PASSIVE") => {
      const statement = database.prepare<LogState, []>(`PRAGMA wal_checkpoint(${mode})`)
      return () => statement.get() ?? { busy: 1, log: 0, checkpointed: 0 }
    }
    this.#database = database
    this.#options = options
    this.#due = options.pages
    this.#count = checkpoint("NOOP") // takes a microsecond, and no lock
    this.#finish = checkpoint("PASSIVE")
  }

  /** To be called after each group: does, or orders, what the length of the log demands. */
  look(): void {
    if (this.#ended || this.#database.inTransaction) return
    const { pages: enough } = this.#options
    const { log: pages, checkpointed } = this.#count()
    const anew = pages < this.#pages || checkpointed < this.#copied
    if (anew) this.#wait(enough)
    this.#pages = pages
    this.#copied = checkpointed
    if (pages < this.#due) return

    const is_asked = this.#asked !== undefined
    if (is_asked && pages > enough * BOUND) this.#end(pages)
    else if (this.#copying) return
    else if (!is_asked && this.#calm() && pages < 2 * enough) this.#end(pages)
    else if (this.#asked === undefined) this.#ask()
    else if (pages - checkpointed <= enough * REST) this.#end(pages)
    else if (checkpointed > this.#asked) this.#ask()
    else this.#wait(pages + enough) // a reader of an old state is in the way, or the disk is
  }

  /** Nothing is ordered any more. Resolves when the other thread has left the file. */
  async stop(): Promise<void> {
    this.#ended = true
    await this.#copying
  }

  #calm() {
    const { calm_ms = CALM_MS } = this.#options
    return monotonic() - this.#since >= calm_ms
  }

  #wait(due: number) {
    this.#due = due
    this.#since = monotonic()
    this.#asked = undefined
  }

  #ask() {
    const { copyLog, path } = this.#options
    this.#asked = this.#copied
    this.#copying = copyLog(path)
      .catch((error) => this.#failed(error))
      .then(() => {
        this.#copying = undefined
        this.look()
      })
      .catch((error) => this.#failed(error))
  }

  #end(pages: number) {
    try {
      const { busy, checkpointed } = this.#finish()
      if (busy) return // the other thread is at it: after the next group, then
      this.#copied = checkpointed
    } catch (error) {
      this.#failed(error)
    }
    this.#wait(pages + this.#options.pages)
  }

  #failed(error: unknown) {
    // No thread is free, or none is left, or no descriptor for one: later, or here.
    if (error instanceof ApiError || codeOf(error) === "SQLITE_CANTOPEN") return
    if (faultOf(error)) this.#options.onFault(error)
    else log.warn("the write-ahead log could not be copied into the database", { error })
  }
}
