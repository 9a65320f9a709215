import { useEffect, useRef } from "preact/hooks"

/**
 * Calls `run` at once and then again and again, but never while nobody sees the page: a hidden tab costs
 * the server nothing. It looks again as soon as the page shows.
 */
export function usePoll(every_ms: number | undefined, run: () => unknown): void {
  const latest = useRef(run)
  latest.current = run
  useEffect(() => {
    if (every_ms === undefined) return undefined
    const look = () => {
      if (document.visibilityState === "visible") latest.current()
    }
    look()
    const timer = setInterval(look, every_ms)
    document.addEventListener("visibilitychange", look)
    return () => {
      clearInterval(timer)
      document.removeEventListener("visibilitychange", look)
    }
  }, [every_ms])
}
