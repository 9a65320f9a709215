import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { root } from "../harness/migrations"

export interface Scratch extends Disposable {
  path: string
}

/**
 * An empty folder that goes with its scope, beside the sources: there the disk is a real one,
 * where a folder for temporary files may live in memory, with an fsync that costs nothing.
 */
export function scratchFolder(): Scratch {
  const path = mkdtempSync(join(root, "dist", "bench-"))
  chmodSync(path, 0o755) // peers run under users of their own
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
