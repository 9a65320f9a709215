import type { WakeUpTopic } from "../jobs/wake-ups"

const bells = new Set<() => void>()

/** Calls `listener` after each commit that made deliveries due, until the function is called. */
export function onPlanned(listener: () => void): () => void {
  bells.add(listener)
  return () => void bells.delete(listener)
}

/** Wakes the delivery loop. It is also called when another node says that there is work. */
export function ringPlanned() {
  for (const bell of bells) bell()
}

/** What the other nodes on the same database are told, too. */
export const planned: WakeUpTopic = {
  topic: "belfry_deliveries",
  onWakeUp: onPlanned,
  wakeUp: ringPlanned,
}
