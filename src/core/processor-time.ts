import { readFileSync, readlinkSync } from "node:fs"
import { monotonic } from "./time"

/** The number of the thread that calls this, as the system knows it. Undefined where it tells none: only Linux does. */
export function ownThread(): string | undefined {
  try {
    return readlinkSync("/proc/thread-self").split("/").at(-1)
  } catch {
    return undefined
  }
}

/** For how many milliseconds the thread that calls this has had a processor. */
export function ownWorkMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** What a pool knows of a thread. */
export interface KnownThread {
  /** See `ownThread`. */
  number: string | undefined
  /** See `ownWorkMs`, by its last message: it rests between two tasks. */
  worked_ms: number
}

/** Of a clock that `stat` counts in, on every machine that Belfry runs on. */
const TICK_MS = 10

/** On a busy machine a task may take this many times its limit. */
const MOST_TIMES = 20

/**
 * Acts when a thread has worked for so long since its last message. Without a thread, and where the system tells
 * nothing, the clock on the wall decides. Returns what stops it.
 */
export function afterWork(thread: KnownThread | undefined, limit_ms: number, act: () => void) {
  const { number, worked_ms: begun = 0 } = thread ?? {}
  const last_at = monotonic() + MOST_TIMES * limit_ms
  const look = () => {
    const left = limit_ms - (processorMs(number) - begun)
    if (left > 0 && monotonic() < last_at) timer = setTimeout(look, Math.max(left, TICK_MS))
    else act()
  }
  let timer = setTimeout(look, limit_ms)
  return () => clearTimeout(timer)
}

/** As `ownWorkMs`, of another thread of this process. Infinity where nobody tells. */
function processorMs(thread: string | undefined): number {
  if (thread === undefined) return Number.POSITIVE_INFINITY
  try {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, "utf8")
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13) // proc_pid_stat(5)
    return (Number(user) + Number(system)) * TICK_MS
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
