import { log } from "../core/log"
import { secondsFromNow } from "../core/time"
import type { Tx } from "../store/store"
import { type Hold, hold } from "./holds"
import * as queue from "./queue"
import type { RetrySchedule } from "./work"

/** A reason may reach the world: an error's own words, with SQL and paths in them, may not. */
const FAILED = "The job failed. The log has the reason."

type Write = (tx: Tx) => Promise<void>

/** What a handler answers. A handler that throws asks for another try. */
export type Verdict<End = never> = (
  | { done?: Write }
  /** Over, and `onDone` writes what came of it, for many jobs at once. */
  | { end: End }
  /** Not now: no attempt was made. `holding` is written with the job's return to the queue. */
  | { hold: Hold; holding?: Write }
  | {
      retry: string
      schedule?: RetrySchedule
      /** Written with the job's return to the queue … */
      waiting?: (tx: Tx, next_at: string) => Promise<void>
      /** … or, when the schedule is at its end, before `onDead`. */
      dying?: Write
    }
) & {
  /** Called once when the verdict is on disk, or nobody tries to write it any more. */
  settled?: () => void
}

/** What `onClaim` learned of each job, by the job's id. */
export type Taken<Known> = Map<string, Known>

interface Working<Payload, Known, End> {
  /** `known` is what `onClaim` learned; undefined where there is none, or the claim had to do without. */
  run(payload: Payload, job: queue.ClaimedJob, known?: Known): Promise<Verdict<End>>
  /** Work that is cheaper for many jobs at once, in the transaction that claims them. */
  onClaim?: (tx: Tx, claimed: queue.ClaimedJob[]) => Promise<Taken<Known>>
  /** Undoes `onClaim` for a job that was not begun, or is cut off, in the transaction that gives it back. */
  onGiveBack?: (tx: Tx, payload: Payload, job: queue.ClaimedJob) => Promise<void>
  /** Writes the last word about the work, in the transaction that gives up on it. */
  onDead?: (tx: Tx, payload: Payload, reason: string) => Promise<void>
  /** Writes why the work waits, in the transaction that puts it under an operator's pause. */
  onHold?: (tx: Tx, payload: Payload, hold: Hold, job: queue.ClaimedJob) => Promise<void>
}

interface Ending<End> {
  /**
   * Writes the ends of jobs that are over, in the transaction that ends them. Where it fails for many,
   * it is asked again for each alone: what cannot be written spoils no other end.
   */
  onDone: (tx: Tx, ends: End[]) => Promise<void>
}

/** Who answers with an `end` says how it is written. */
export type JobHandler<Payload, Known = never, End = never> = Working<Payload, Known, End> &
  ([End] extends [never] ? Partial<Ending<End>> : Ending<End>)

interface Line {
  schedule: RetrySchedule
  handler: JobHandler<never, never>
}

export type JobHandlers = Record<string, Line>

/** One line of the job table: the kind of work and who does it. */
export const bind = <Payload, Known = never, End = never>(
  job: queue.JobKind<Payload>,
  handler: JobHandler<Payload, Known, End>,
): JobHandlers => ({
  [job.name]: { schedule: job.schedule, handler: handler as unknown as JobHandler<never, never> },
})

/** Runs the handler. What it throws is told to the log alone. */
export async function attempt(
  handler: JobHandler<never, never> | undefined,
  job: queue.ClaimedJob,
  known: unknown,
): Promise<Verdict> {
  try {
    if (!handler) throw new Error(`There is no handler for the job "${job.name}"`)
    return await handler.run(job.payload as never, job, known as never)
  } catch (error) {
    log.error("a job failed", { job: job.name, job_id: job.id, attempt: job.attempt, error })
    return { retry: FAILED }
  }
}

/** Nothing is to be written but that the job is over: such ends may share a transaction. */
export const isPlainEnd = (verdict: Verdict) =>
  !("retry" in verdict || "hold" in verdict || "end" in verdict) &&
  !verdict.done &&
  !verdict.settled

/** It ran, but its end breaks a rule of ours: run again it would break it again. */
export const unrecordable: Verdict = {
  retry: "The result could not be recorded. The log has the reason.",
  schedule: () => undefined,
}

export interface Ended {
  job: queue.ClaimedJob
  end: unknown
}

/** One transaction: the ends of these jobs and what `onDone` writes, but for those that lost theirs. */
export async function endAll(tx: Tx, lineOf: (name: string) => Line | undefined, list: Ended[]) {
  const held = await queue.completeAll(
    tx,
    list.map(({ job }) => job),
  )
  const ours = list.filter(({ job }) => held.has(job))
  for (const [name, some] of Map.groupBy(ours, ({ job }) => job.name)) {
    const { onDone } = lineOf(name)?.handler ?? {}
    if (!onDone) throw new Error(`No function records the result of the job "${name}"`)
    await onDone(
      tx,
      some.map(({ end }) => end as never),
    )
  }
}

/** One transaction: the job's end and what it means for its subject, or neither. */
export async function finish(
  tx: Tx,
  line: Line | undefined,
  job: queue.ClaimedJob,
  verdict: Verdict<unknown>,
) {
  if ("hold" in verdict) {
    if (await hold(tx, job, verdict.hold)) await verdict.holding?.(tx)
    return
  }
  if ("end" in verdict) return endAll(tx, () => line, [{ job, end: verdict.end }])
  if (!("retry" in verdict)) {
    if (await queue.complete(tx, job)) await verdict.done?.(tx)
    return
  }
  const schedule = verdict.schedule ?? line?.schedule
  const seconds = schedule?.(job.attempt, queue.ageSeconds(job))
  if (seconds === undefined) {
    if (!(await queue.bury(tx, job, verdict.retry))) return
    await verdict.dying?.(tx)
    await line?.handler.onDead?.(tx, job.payload as never, verdict.retry)
    return
  }
  const next_at = secondsFromNow(seconds)
  if (await queue.release(tx, job, next_at, verdict.retry)) await verdict.waiting?.(tx, next_at)
}
