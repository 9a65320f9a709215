import { sleep } from "../core/time"

/** Between two transactions, so that sends never wait for more than one of them. */
const PAUSE_MS = 5

/** Repeats a step until nothing is left for it, or until the signal. */
export async function inSteps(
  step: () => Promise<number>,
  signal: AbortSignal | undefined,
): Promise<void> {
  while (!signal?.aborted && (await step()) > 0) await sleep(PAUSE_MS, signal)
}
