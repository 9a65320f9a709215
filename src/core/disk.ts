import { randomBytes } from "node:crypto"
import { rmSync, statfsSync, statSync } from "node:fs"
import { open, rename, rm, statfs } from "node:fs/promises"
import { join } from "node:path"
import { faultOf } from "./faults"
import { log } from "./log"
import { monotonic, sleep } from "./time"

const MB = 1024 * 1024
const REFRESH_MS = 250
const PROBE_EVERY_MS = 1000
const PROBE_BYTES = 64 * 1024
const PROBE_LIMIT_MS = 5000

export interface DiskOptions {
  dir: string
  /** The floor; 0 switches it off. */
  min_free_mb: number
  /** Size of the file that is deleted when the disk is full; 0 means no such file. */
  ballast_mb: number
  /** A write of the storage itself that must also succeed before it counts as healthy again. */
  probe?: (() => Promise<void>) | undefined
}

/** What others see of it. */
export type Disk = { [Name in keyof DiskWatch]: DiskWatch[Name] }

/** Watches the file system of `dir`, which must exist. */
export const openDisk = (options: DiskOptions): Disk => new DiskWatch(options)

class DiskWatch {
  readonly #dir: string
  readonly #floor: number
  readonly #ballast: ReturnType<typeof openBallast>
  readonly #death = Promise.withResolvers<Error>()
  readonly #damage = Promise.withResolvers<Error>()
  readonly #probe: () => Promise<void>
  readonly #timer: Timer
  #free: number
  #is_healthy = true
  #is_dead = false
  #is_damaged = false
  #looks = false
  #doubts = false
  #probed_at = Number.NEGATIVE_INFINITY

  readonly died = this.#death.promise
  readonly damaged = this.#damage.promise

  constructor({ dir, min_free_mb, ballast_mb, probe }: DiskOptions) {
    this.#dir = dir
    this.#floor = min_free_mb * MB
    this.#ballast = openBallast(join(dir, "ballast"), ballast_mb * MB)
    this.#probe = inTime(async () => await probe?.())
    this.#free = readFree(dir)
    this.#timer = setInterval(() => void this.#look(), REFRESH_MS)
    this.#timer.unref()
  }

  /** Free for us, not older than 250 ms; Infinity while the system does not tell. */
  free_bytes = () => this.#free
  /** `low`: under the floor, so nothing new is accepted while deliveries drain. */
  state = () => (this.#free < this.#floor ? "low" : "ok")
  /** False from `failed` until a probe could write and sync again. */
  healthy = () => this.#is_healthy
  isDamaged = () => this.#is_damaged
  /** Makes the ballast where there is room for it, and from now on again after it was dropped. */
  keepBallast = () => this.#ballast.keep(this.#free, this.#floor)
  close = () => clearInterval(this.#timer)

  /**
   * Reports an error and answers what it means for the storage; undefined when it means nothing. The
   * ballast is gone when it answers that writes are refused, so that deletes work from then on. A
   * failed fsync is final: `died` resolves, and no probe heals it. A damaged database is final,
   * too: `damaged` resolves. An unreachable database server is `doubtful`: one lost connection is
   * no outage, so the probe decides.
   */
  failed = (error: unknown) => {
    const fault = faultOf(error)
    // A busy database and too many open files mean nothing for the disk.
    if (fault === undefined || fault === "busy" || fault === "descriptors") return undefined
    if (fault === "away") {
      void this.#doubt()
      return "doubtful"
    }
    if (fault === "damaged") return this.#damagedBy(error)
    this.#refused(error)
    if (fault === "lost_fsync" && !this.#is_dead) {
      this.#is_dead = true
      this.#death.resolve(asError(error))
    }
    this.#ballast.drop()
    return fault === "lost_fsync" ? "dead" : "unhealthy"
  }

  #refused(error: unknown) {
    if (!this.#is_healthy) return
    log.error("the storage refuses writes", { error })
    this.#probed_at = monotonic()
    this.#is_healthy = false
  }

  /** Logged once, because every read of a bad page would log it again. */
  #damagedBy(error: unknown) {
    if (!this.#is_damaged) log.error(DAMAGED, { error, next: nextOf(error) ?? DAMAGED_NEXT })
    this.#damage.resolve(asError(error))
    this.#is_damaged = true
    this.#is_healthy = false
    return "damaged" as const
  }

  async #doubt() {
    if (!this.#is_healthy || this.#doubts) return
    this.#doubts = true
    await this.#probe().catch((error) => this.#refused(error))
    this.#doubts = false
  }

  async #heal() {
    const is_final = () => this.#is_dead || this.#is_damaged
    if (is_final() || monotonic() - this.#probed_at < PROBE_EVERY_MS) return
    this.#probed_at = monotonic()
    try {
      await writeProbe(join(this.#dir, "probe"))
      await this.#probe()
      this.#is_healthy = !is_final()
      if (this.#is_healthy) log.info("the storage accepts writes again")
    } catch (error) {
      this.failed(error)
    }
  }

  async #look() {
    if (this.#looks) return
    this.#looks = true
    try {
      this.#free = await statfs(this.#dir).then(freeOf, () => Number.POSITIVE_INFINITY)
      if (this.#is_healthy) await this.#ballast.restore(this.#free, this.#floor)
      else await this.#heal()
    } finally {
      this.#looks = false
    }
  }
}

const DAMAGED = "the database is damaged: nothing is accepted or sent any more"
const DAMAGED_NEXT =
  "Stop the server and copy its data folder. Then put back the database from a backup, or rescue " +
  "what can be read (docs/operations.md, A damaged database)."

/** An error may know better what to do next. */
const nextOf = (error: unknown) =>
  error instanceof Error && "next" in error ? error.next : undefined

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)))

const freeOf = (system: { bavail: number; bsize: number }) => system.bavail * system.bsize

function readFree(dir: string): number {
  try {
    return freeOf(statfsSync(dir))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Never two at once: a server that is frozen would hold one connection for each. */
function inTime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return async () => {
    running ??= work().finally(() => {
      running = undefined
    })
    const answered = new AbortController()
    const late = sleep(PROBE_LIMIT_MS, answered.signal).then(() => {
      throw new Error(`the storage did not answer for ${PROBE_LIMIT_MS} ms`)
    })
    await Promise.race([running, late]).finally(() => answered.abort())
  }
}

/** Large enough not to fit into what a nearly full disk has left. */
async function writeProbe(path: string): Promise<void> {
  await rm(path, { force: true }) // whatever has this name: to open a pipe would never end
  const file = await open(path, "wx", 0o600)
  try {
    await file.writeFile(Buffer.alloc(PROBE_BYTES, 1))
    await file.sync()
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
}

const PIECE_BYTES = 1024 * 1024
const SYNC_EVERY_PIECES = 8
const RETRY_MS = 60_000

/** A file that exists only to be deleted: on a full disk even DELETE needs space. */
function openBallast(path: string, size: number) {
  let wanted = false
  let there = false
  let drops = 0
  let not_before = 0
  let last: Promise<void> = Promise.resolve()
  const oneAfterAnother = (work: () => Promise<void>) => {
    last = last.then(work, work)
    return last
  }

  const make = async (free: number, floor: number) => {
    if (size === 0 || !wanted || there || monotonic() < not_before) return
    // Twice its size above the floor, so that making it does not itself bring the disk down to it.
    if (!isWhole(path, size) && free < floor + 2 * size) return
    const drops_before = drops
    try {
      if (!isWhole(path, size)) await fill(path, size)
      if (drops === drops_before) there = true
      else rmSync(path, { force: true }) // the disk became full meanwhile
    } catch (error) {
      not_before = monotonic() + RETRY_MS
      log.warn("the reserve file for a full disk (ballast) cannot be written", { path, error })
    }
  }

  return {
    /** Makes it if it is missing and there is room; from then on `restore` does so too. */
    keep: (free: number, floor: number) => {
      wanted = true
      return oneAfterAnother(() => make(free, floor))
    },
    restore: (free: number, floor: number) => {
      if (size === 0 || !wanted || there) return Promise.resolve()
      return oneAfterAnother(() => make(free, floor))
    },
    drop: () => {
      there = false
      drops++
      try {
        rmSync(path, { force: true })
      } catch {} // what cannot be written may not let anything be deleted
    },
  }
}

const isWhole = (path: string, size: number) =>
  statSync(path, { throwIfNoEntry: false })?.size === size

/** Random bytes, because file systems that compress or look for holes store zeros for nothing. */
async function fill(path: string, size: number): Promise<void> {
  const draft = `${path}.draft`
  const piece = randomBytes(Math.min(PIECE_BYTES, size))
  try {
    await rm(draft, { force: true }) // whatever has this name: to open a pipe would never end
    const file = await open(draft, "wx", 0o600)
    try {
      for (let written = 0, pieces = 0; written < size; pieces++) {
        const part = piece.subarray(0, Math.min(piece.length, size - written))
        written += (await file.write(part)).bytesWritten
        // Little by little: one large sync would hold up those of the database.
        if (pieces % SYNC_EVERY_PIECES === 0) await file.datasync()
      }
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    throw error
  }
}
