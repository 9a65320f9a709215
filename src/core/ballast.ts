import { randomBytes } from "node:crypto"
import { statSync } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { log } from "./log"
import { monotonic } from "./time"

const PIECE_BYTES = 1024 * 1024
const SYNC_EVERY_PIECES = 8
const RETRY_MS = 60_000

export interface Ballast {
  /** Makes it if it is missing and there is room; from then on `restore` does so too. */
  keep(free: number, floor: number): Promise<void>
  drop(): Promise<void>
  restore(free: number, floor: number): Promise<void>
}

/** A file whose only use is that it can be deleted: on a full disk even DELETE needs space. */
export function openBallast(path: string, size: number): Ballast {
  let wanted = false
  let there = false
  let not_before = 0
  let last: Promise<void> = Promise.resolve()
  // Made and dropped in turn, so that a drop during the making cannot leave the file behind.
  const inTurn = (work: () => Promise<void>) => {
    last = last.then(work, work)
    return last
  }

  const make = async (free: number, floor: number) => {
    if (size === 0 || !wanted || there || monotonic() < not_before) return
    // Twice its size above the floor, so that making it does not itself bring the disk down to it.
    if (!isWhole(path, size) && free < floor + 2 * size) return
    try {
      if (!isWhole(path, size)) await fill(path, size)
      there = true
    } catch (error) {
      not_before = monotonic() + RETRY_MS
      log.warn("the reserve file for a full disk (ballast) cannot be written", { path, error })
    }
  }

  return {
    keep: (free, floor) => {
      wanted = true
      return inTurn(() => make(free, floor))
    },
    restore: (free, floor) => {
      if (size === 0 || !wanted || there) return Promise.resolve()
      return inTurn(() => make(free, floor))
    },
    drop: () =>
      inTurn(async () => {
        there = false
        await rm(path, { force: true }).catch(() => undefined)
      }),
  }
}

const isWhole = (path: string, size: number) =>
  statSync(path, { throwIfNoEntry: false })?.size === size

/** Random bytes, because file systems that compress or look for holes store zeros for nothing. */
async function fill(path: string, size: number): Promise<void> {
  const draft = `${path}.draft`
  const piece = randomBytes(Math.min(PIECE_BYTES, size))
  try {
    const file = await open(draft, "w", 0o600)
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
