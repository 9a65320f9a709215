import { spawnSync } from "node:child_process"
import { leftover } from "./leftovers"
import { locate } from "./peers"

/**
 * The environment of a process whose clock is `seconds` ahead of ours. Without `faketime` it is
 * empty, and what would be due already has to be waited for.
 */
export function ahead(seconds: number): Record<string, string> {
  const program = locate("faketime")
  if (!program) return {}
  // Only its library is wanted: the program itself stays between us and our signals.
  const offset = `+${seconds}s`
  const { stdout } = spawnSync(program, ["-f", offset, "printenv", "LD_PRELOAD"], {
    encoding: "utf8",
  })
  return { LD_PRELOAD: stdout.trim(), FAKETIME: offset }
}

/** What the library keeps in memory for such a process, and does not remove, goes with the tests. */
export function forgetClock(pid: number): void {
  for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
    leftover(`/dev/shm/${name}`)
}
