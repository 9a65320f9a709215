/** Who wants to know of new work: the loop of this process, and the other nodes. */
const bells = new Set<() => void>()

/** Calls `listener` after each commit that brought work, until the returned function is called. */
export function onEnqueued(listener: () => void): () => void {
  bells.add(listener)
  return () => void bells.delete(listener)
}

/** Wakes every loop of this process; also called when another node says that there is work. */
export function ringJobs() {
  for (const bell of bells) bell()
}
