import { log } from "../core/log"
import { isoFrom, millis, millisFrom, monotonic, sleep } from "../core/time"
import * as instanceValues from "../store/instance-values"
import type { Store } from "../store/store"

export interface EveryRow {
  /** What the log calls it. Nodes that take turns share their last round under this name. */
  name: string
  every_ms: number
  /** `node`: each process does it. `all`: in each period one of the nodes on the database does it. */
  by: "node" | "all"
  /** One round. After the signal, which comes when the server stops, it should end soon. */
  run: (signal: AbortSignal) => unknown
}

/** Each wait is this part of the period longer or shorter, so that nodes and rows do not meet for ever. */
const JITTER = 0.05

/** A round of another node that began this part of a period ago counts as one of this period. */
const SAME_PERIOD = 0.8

const END_MILLISECONDS = 2000

/**
 * Runs the rows, the first time after one period. Rounds of a row never overlap. One that fails is logged, and the next
 * one comes at its time. The returned function begins no more rounds, and waits for those that run for 2 s at most.
 */
export function keepRunning(store: Store, rows: EveryRow[]): () => Promise<void> {
  const end = new AbortController()
  const running = Promise.all(rows.map((row) => rounds(store, row, end.signal)))
  return async () => {
    end.abort()
    const over = new AbortController()
    await Promise.race([running, sleep(END_MILLISECONDS, over.signal)])
    over.abort()
  }
}

async function rounds(store: Store, row: EveryRow, signal: AbortSignal) {
  for (let took_ms = 0; ; ) {
    await sleep(waitOf(row.every_ms, took_ms), signal)
    if (signal.aborted) return
    const begun_at = monotonic()
    try {
      if (row.by === "node" || (await isOurs(store, row))) await row.run(signal)
    } catch (error) {
      if (!signal.aborted) log.warn("recurring work failed", { work: row.name, error })
    }
    took_ms = monotonic() - begun_at
  }
}

/** Rounds begin one period after each other; the periods that a long one used up are left out. */
const waitOf = (every_ms: number, took_ms: number) =>
  every_ms * (1 + JITTER * (2 * Math.random() - 1)) - (took_ms % every_ms)

const NEVER = isoFrom(0)

/** Whether this node is the first in this period. A clock that was set back is no obstacle. */
export function isOurs(
  store: Store,
  { name, every_ms }: Pick<EveryRow, "name" | "every_ms">,
): Promise<boolean> {
  if (store.isAlone) return Promise.resolve(true)
  return store.tx(async (tx) => {
    const key = `every.${name}`
    await instanceValues.initialize(tx, key, NEVER) // a row that every node can lock
    const age = millis() - millisFrom((await instanceValues.findForUpdate(tx, key)) ?? NEVER)
    if (age >= 0 && age < SAME_PERIOD * every_ms) return false
    await instanceValues.set(tx, key, isoFrom(millis()))
    return true
  })
}
