import { DeferredError } from "../jobs/work-item"
import { Semaphore } from "../lib/semaphore"
import { perStore } from "../store/cached"
import type { Reader } from "../store/store"

/** Parts that a process walks in at the same time: on SQLite all of them share one writer. */
const walksAtOnce = (db: Reader) => (db.isAlone ? 1 : 2)

/** Parts that wait in the process, each in the place of a job. They go on as soon as a permit is free. */
const MOST_WAITING = 4

/** Until a part beyond them looks again: as long as one part walks at a time. */
export const LOOK_AGAIN_SECONDS = 1

interface Walks {
  permits: Semaphore
  waiting: number
}

const walksOf = perStore((db): Walks => ({ permits: new Semaphore(walksAtOnce(db)), waiting: 0 }))

/** The right to walk in a part. */
export interface WalkPermit {
  /** Whether another part waits for it. */
  isAwaited(): boolean
  release(): void
}

/**
 * Resolves when the part may be walked in, in the order of the questions. Rejects with DeferredError where
 * enough parts wait already.
 */
export async function acquireWalk(db: Reader): Promise<WalkPermit> {
  const walks = walksOf(db)
  const release = walks.permits.tryAcquire() ?? (await nextPermit(walks))
  return { isAwaited: () => walks.waiting > 0, release }
}

async function nextPermit(walks: Walks): Promise<() => void> {
  if (walks.waiting >= MOST_WAITING) {
    throw new DeferredError("Other parts of publishes are walked.", LOOK_AGAIN_SECONDS)
  }
  walks.waiting += 1
  try {
    return await walks.permits.acquire()
  } finally {
    walks.waiting -= 1
  }
}
