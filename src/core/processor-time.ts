import { readFileSync, readlinkSync } from "node:fs"

/** The number of the thread that calls this, as the system knows it. Undefined where it tells none: only Linux does. */
export function ownThread(): string | undefined {
  try {
    return readlinkSync("/proc/thread-self").split("/").at(-1)
  } catch {
    return undefined
  }
}

/** Of a clock that `stat` counts in, on every machine that Belfry runs on. */
const TICK_MS = 10

/** A thread that gets less of a processor may take so many times as long. */
const MOST_PATIENCE = 20

/** Acts when a thread has worked for so long, or the time has passed where nobody tells. Returns what stops it. */
export function afterWork(thread: string | undefined, limit_ms: number, act: () => void) {
  const begun = processorMs(thread)
  let patience = begun === undefined ? 1 : MOST_PATIENCE
  const look = () => {
    const left = limit_ms - ((processorMs(thread) ?? Number.POSITIVE_INFINITY) - (begun ?? 0))
    patience -= 1
    if (left > 0 && patience > 0) timer = setTimeout(look, left)
    else act()
  }
  let timer = setTimeout(look, limit_ms)
  return () => clearTimeout(timer)
}

/** How long a thread of this process has had a processor, or undefined where nobody tells. */
function processorMs(thread: string | undefined): number | undefined {
  if (thread === undefined) return undefined
  try {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, "utf8")
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13) // proc_pid_stat(5)
    return (Number(user) + Number(system)) * TICK_MS
  } catch {
    return undefined
  }
}
