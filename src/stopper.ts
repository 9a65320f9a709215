import { log } from "./core/log"
import type { Listener } from "./http/listener"
import type { ServerHealth } from "./http/server-health"

/** What runs may take so long to end; the rest is released. */
export const DRAIN_MILLISECONDS = 20_000

export interface Loop {
  readonly running: number
  start(): Promise<void>
  stop(drain_ms: number): Promise<void>
}

/** Requests first, then the loops: what they accepted may still be on its way to the relay. */
export function stopper(
  health: ServerHealth,
  listener: Listener,
  loops: Loop[],
  undo: (() => unknown)[],
) {
  let stopped: Promise<void> | undefined
  const stop = async () => {
    const counts = loops.map(({ running }) => running)
    const running_deliveries = counts.pop() ?? 0 // the loop of the webhooks is the last one
    const running_jobs = counts.reduce((sum, running) => sum + running, 0)
    log.info("stopping", { running_jobs, running_deliveries })
    health.drain()
    await Promise.all([listener.stop(), ...loops.map((loop) => loop.stop(DRAIN_MILLISECONDS))])
    for (const step of undo.reverse()) await step()
    log.info("stopped")
  }
  return () => {
    stopped ??= stop()
    return stopped
  }
}
