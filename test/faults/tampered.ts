import { spawnSync } from "node:child_process"
import { locate, missing, note } from "../harness/peers"

export const strace = locate("strace") ?? ""

/** Says it in the summary where strace is missing, or may not trace here. */
export function cannotTrace(what: string): boolean {
  const cannot = missing("strace") || spawnSync(strace, ["true"]).status !== 0
  if (cannot) note(`${what}: strace is missing, or may not trace here`)
  return cannot
}

interface Tampering {
  /** Names of system calls, with commas. */
  calls: string
  /** `signal=SIGKILL` comes before the call. `error=ENOSPC` comes in place of it. */
  does: string
  /** For the so manieth of these calls of a thread. */
  step: number
  /** Only calls that name this file or folder, or a descriptor of it. */
  path?: string
}

/** The arguments of strace behind its name, and before the program or `-p`. */
export const tampered = ({ calls, does, step, path }: Tampering): string[] => [
  ...["-f", "-qq", "-o", "/dev/null"],
  ...(path === undefined ? [] : ["-P", path]),
  ...["-e", `trace=${calls}`, "-e", `inject=${calls}:${does}:when=${step}`],
]
