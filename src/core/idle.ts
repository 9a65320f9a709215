/** A process that used less than this share of one processor did next to nothing. */
const IDLE_SHARE = 0.05

const LOOK_MS = 1000

interface Looks {
  /** Processor time of the process so far, in ms. */
  usedMs?: () => number
  look_ms?: number
}

/**
 * Calls `effect` once, at the end of the first second in which the process did next to nothing. The
 * returned function ends the wait. The wait keeps no process alive.
 */
export function onceIdle(
  effect: () => void,
  { usedMs = ownProcessorMs, look_ms = LOOK_MS }: Looks = {},
): () => void {
  let before = usedMs()
  const timer = setInterval(() => {
    const used = usedMs()
    const is_idle = used - before < IDLE_SHARE * look_ms
    before = used
    if (!is_idle) return
    clearInterval(timer)
    effect()
  }, look_ms)
  timer.unref()
  return () => clearInterval(timer)
}

function ownProcessorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
