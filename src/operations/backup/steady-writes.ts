import { open } from "node:fs/promises"
import { codeOf } from "../../core/faults"
import { sleep } from "../../core/time"

const PAUSE_MS = 50

/**
 * Brings to disk, bit by bit, what another thread writes to these files. Otherwise all of it would go there
 * at once, and each commit of the server would wait for it. Returns how to stop. That throws what the disk said
 * meanwhile, because a later sync of the file may not hear of it again.
 */
export function writeSteadily(paths: readonly string[]): () => Promise<void> {
  let is_over = false
  const flush = async () => {
    while (!is_over) {
      for (const path of paths) await sync(path)
      await sleep(PAUSE_MS)
    }
  }
  const flushing = flush()
  flushing.catch(() => {}) // the caller that stops it hears of it
  return () => {
    is_over = true
    return flushing
  }
}

/** A file that is not there yet, or no more, has nothing to bring to disk. */
async function sync(path: string): Promise<void> {
  const file = await open(path, "r+").catch((error) => {
    if (codeOf(error) !== "ENOENT") throw error
  })
  try {
    await file?.datasync()
  } finally {
    await file?.close()
  }
}
