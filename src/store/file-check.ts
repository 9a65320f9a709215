import { faultOf } from "../core/faults"
import { log } from "../core/log"
import { monotonic } from "../core/time"
import { openWorkers, type Workers } from "../core/workers"
import { DamagedDatabase } from "./database-file"
import { type FileToCheck, tablesOf } from "./file-tasks"

/**
 * A file up to this size is checked before anything else: 9 ms from memory, some 130 ms from a slow
 * disk. A larger one is checked by a thread while the server serves.
 */
export const CHECKED_AT_OPEN_BYTES = 8 * 1024 * 1024

/** No further table is begun after this; the daily check reads what is left. */
const LIMIT_MS = 5 * 60_000
/** A thread inside SQLite cannot be ended without leaving its locks behind: it is let end. */
const TASK = { deadline_ms: 24 * 3_600_000, left: true }

interface FileCheckOptions {
  path: string
  onDamage: (error: DamagedDatabase) => void
  limit_ms?: number
  /** In place of a thread of its own; for tests. */
  workers?: () => Workers
}

/** Checks an SQLite file by a thread of its own, which is there only while it checks. */
export class FileCheck {
  readonly #options: FileCheckOptions
  #workers: Workers | undefined
  #progress: string | undefined
  #stopped = false

  constructor(options: FileCheckOptions) {
    this.#options = options
  }

  /** How far a check is, or undefined while there is none. */
  get progress(): string | undefined {
    return this.#progress
  }

  /** `PRAGMA quick_check` table by table. False where it could not be done, as of `full`. */
  quick(): Promise<boolean> {
    return this.#withThread(async () => {
      const { path, limit_ms = LIMIT_MS } = this.#options
      const begun = monotonic()
      const tables = tablesOf(path)
      for (const [checked, table] of tables.entries()) {
        if (this.#stopped) return
        this.#progress = `${checked} of ${tables.length} tables`
        if (monotonic() - begun >= limit_ms) {
          const fields = { checked, tables: tables.length }
          log.warn(
            "the check of the database is not finished; the daily check continues it",
            fields,
          )
          return
        }
        if (await this.#isBad({ path, how: "quick", table })) return
      }
      const took_ms = Math.round(monotonic() - begun)
      log.info("the check found no damage in the database", { tables: tables.length, took_ms })
    })
  }

  /** `PRAGMA integrity_check`: also what no table leads to, and whether the indexes are true. */
  full(): Promise<boolean> {
    return this.#withThread(async () => {
      this.#progress = "every page and index"
      const begun = monotonic()
      if (await this.#isBad({ path: this.#options.path, how: "full" })) return
      const took_ms = Math.round(monotonic() - begun)
      log.info("the daily check found no damage in the database", { took_ms })
    })
  }

  /** A check in the thread ends by itself; `stop` does not wait for it. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#workers?.close()
  }

  async #withThread(check: () => Promise<void>): Promise<boolean> {
    if (this.#workers || this.#stopped) return false
    this.#workers = this.#options.workers?.() ?? openWorkers({ size: 1 })
    try {
      await check()
      return !this.#stopped
    } catch (error) {
      if (!this.#stopped) log.warn("the check of the database failed", { error })
      return false
    } finally {
      this.#progress = undefined
      await this.#workers.close()
      this.#workers = undefined
    }
  }

  async #isBad(file: FileToCheck): Promise<boolean> {
    const faults = this.#workers ? await faultsIn(this.#workers, file) : []
    if (faults.length === 0) return false
    const said = `${file.path} is damaged: ${faults.join("; ")}.`
    this.#options.onDamage(new DamagedDatabase(said, file.path))
    return true
  }
}

/** What SQLite finds wrong with the file, by a thread. Throws what keeps the thread from looking. */
export async function faultsIn(workers: Workers, file: FileToCheck): Promise<string[]> {
  try {
    return await workers.run<string[]>("check-file", file, TASK)
  } catch (error) {
    if (faultOf(error) !== "damaged") throw error
    return [error instanceof Error ? error.message : String(error)]
  }
}
