import { stat } from "node:fs/promises"
import type { Disk } from "../core/disk"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import { millis, millisFrom, now } from "../core/time"
import { LostDatabase } from "../store/database-file"
import { FileCheck } from "../store/file-check"
import * as instanceValues from "../store/instance-values"
import type { Store } from "../store/store"

const CHECKED_AT = "database_checked_at"
const DAY_MS = 24 * 3_600_000
const LOOK_MS = 60_000
const MISS_MS = 1000
/** With fewer commits from one look to the next it is a quiet time. */
const QUIET_COMMITS = 120

export interface KeptCheck {
  /** How far a check beside the work is, or undefined while there is none. */
  readonly progress: string | undefined
  /** What the timer does each minute: begins the daily check where it is due. */
  look(): Promise<void>
  stop(): Promise<void>
}

/**
 * Checks an SQLite file beside the work: a large one now, quickly, and each one fully once a day. The
 * daily check waits for a quiet minute, but never for more than another day. Undefined on Postgres,
 * which has its own means.
 */
export function keepChecked(store: Store, disk: Disk): KeptCheck | undefined {
  const { file } = store
  if (!file) return undefined
  const check = new FileCheck({ path: file.path, onDamage: (error) => void disk.failed(error) })
  if (!file.is_checked) void check.quick()

  let commits = store.stats.commits
  const isQuiet = () => {
    const before = commits
    commits = store.stats.commits
    return commits - before < QUIET_COMMITS
  }
  const look = async () => {
    const is_quiet = isQuiet()
    if (disk.isDamaged() || !disk.healthy() || check.progress !== undefined) return
    const checked_at = await instanceValues.find(store.read, CHECKED_AT)
    // A time far ahead is of a clock that was put right since.
    const age = checked_at === undefined ? 0 : Math.abs(millis() - millisFrom(checked_at))
    const is_due = age >= 2 * DAY_MS || (age >= DAY_MS && is_quiet)
    if (checked_at !== undefined && !is_due) return
    if (is_due && !(await check.full())) return
    await store.tx((tx) => instanceValues.set(tx, CHECKED_AT, now()))
  }
  const told = (error: unknown) =>
    log.warn("the daily check of the database could not begin", { error })
  const timer = setInterval(() => void look().catch(told), LOOK_MS)
  const forget = missFile(file.path, (error) => void disk.failed(error))
  return {
    get progress() {
      return check.progress
    },
    look,
    async stop() {
      clearInterval(timer)
      forget()
      await check.stop()
    },
  }
}

/**
 * Tells once when another file, or none, has the name of the one that is open now: no start would find
 * what is written from then on. SQLite asks this itself, but not where it has a write-ahead log.
 */
function missFile(path: string, onLoss: (error: Error) => void): () => void {
  const opened = inodeOf(path)
  const look = async () => {
    const found = await inodeOf(path)
    if (found === "untold" || found === (await opened)) return
    clearInterval(timer)
    onLoss(new LostDatabase(path))
  }
  const timer = setInterval(() => void look(), MISS_MS)
  return () => clearInterval(timer)
}

/** Any other error than a missing file says nothing about the file. */
const inodeOf = (path: string): Promise<bigint | "gone" | "untold"> =>
  stat(path, { bigint: true }).then(
    ({ ino }) => ino,
    (error) => (codeOf(error) === "ENOENT" ? "gone" : "untold"),
  )
