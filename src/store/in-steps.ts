import { log } from "../core/log"
import { monotonic, nextTurn, sleep } from "../core/time"

/** Between two transactions, so that sends never wait for more than one of them. */
const PAUSE_MS = 5

/** After a step that waited long for others the rest is no longer than this. */
const LONGEST_REST_MS = 250

/**
 * Rests after a step of background work that began at this moment (`monotonic()`), as long as it took, waiting for
 * the disk and for others included. So it goes on slowly where they have much to do. Resolves at once when the signal comes.
 */
export function rest(begun_at: number, signal?: AbortSignal): Promise<void> {
  const took = monotonic() - begun_at
  return sleep(Math.min(Math.max(PAUSE_MS, took), LONGEST_REST_MS), signal)
}

/** Repeats a step until nothing is left for it, or until the signal. */
export async function inSteps(
  step: () => Promise<number>,
  signal: AbortSignal | undefined,
): Promise<void> {
  while (!signal?.aborted) {
    const begun_at = monotonic()
    if ((await step()) === 0) return
    await rest(begun_at, signal)
  }
}

/** After an error, such as a full disk, the work goes on so much later. */
const AGAIN_MS = 60_000

interface BackgroundWork {
  /** What the log says after an error. */
  failed: string
  again_ms?: number | undefined
}

/**
 * Repeats a step in the background until it says that nothing is left, also after errors. The returned function ends it
 * after the step that runs.
 */
export function untilDone(
  step: () => Promise<boolean>,
  { failed, again_ms = AGAIN_MS }: BackgroundWork,
): () => Promise<void> {
  const end = new AbortController()
  const { signal } = end
  const running = (async () => {
    while (!signal.aborted) {
      try {
        return await inSteps(async () => ((await step()) ? 1 : 0), signal)
      } catch (error) {
        log.warn(failed, { error, again_seconds: again_ms / 1000 })
        await sleep(again_ms, signal)
      }
    }
  })()
  return () => {
    end.abort()
    return running
  }
}

/** Pages of rows in the order of their ids, with a pause between two; `next` reads the one behind an id. */
export async function* inPages<Row extends { id: string }>(
  size: number,
  next: (after: string) => PromiseLike<Row[]>,
  { first = "", pause = nextTurn }: { first?: string; pause?: () => Promise<void> } = {},
): AsyncGenerator<Row[]> {
  for (let after = first; ; ) {
    const rows = await next(after)
    yield rows
    after = rows.at(-1)?.id ?? ""
    if (rows.length < size) return
    await pause()
  }
}
