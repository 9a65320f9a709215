import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const MOST_ATTEMPTS = 20
const MB = 1024 * 1024

export interface SmallDisk {
  /** An empty folder on it. */
  folder: string
  /** Takes all but `left` bytes of its space. */
  fill(left: number): void
  free(): void
  [Symbol.dispose](): void
}

/** A file system of its own in memory, or undefined where mounting is refused. */
export function smallDisk(size_mb: number): SmallDisk | undefined {
  const point = mkdtempSync(join(tmpdir(), "belfry-disk-"))
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size_mb}m`, "tmpfs", point])
  if (mounted.status !== 0) {
    rmSync(point, { recursive: true, force: true })
    return undefined
  }
  const folder = join(point, "belfry")
  mkdirSync(folder)
  const filler = join(point, "filler")
  return {
    folder,
    fill(left) {
      // The server writes meanwhile, so what was free a moment ago may be taken.
      for (let attempt = 1; ; attempt++) {
        rmSync(filler, { force: true })
        const size = String(available(point) - left)
        const filled = spawnSync("fallocate", ["-l", size, filler], { encoding: "utf8" })
        if (filled.status === 0) return
        if (attempt === MOST_ATTEMPTS) throw new Error(filled.stderr)
      }
    },
    free: () => rmSync(filler, { force: true }),
    [Symbol.dispose]() {
      spawnSync("umount", ["-l", point])
      rmSync(point, { recursive: true, force: true })
    },
  }
}

function available(point: string): number {
  const told = spawnSync("df", ["--output=avail", "-B1", point], { encoding: "utf8" })
  return Number(told.stdout.trim().split("\n").at(-1))
}

/** For `wrap`: no file may grow beyond this, as on a disk that is full. The limit can be lifted. */
export const fileLimit = (size_mb: number): string[] => {
  const blocks = (size_mb * MB) / 512
  return ["sh", "-c", `ulimit -S -f ${blocks}; exec "$@"`, "sh"]
}

export function liftFileLimit(pid: number) {
  const lifted = spawnSync("prlimit", ["--pid", String(pid), "--fsize=unlimited:"])
  if (lifted.status !== 0) throw new Error(lifted.stderr.toString())
}
