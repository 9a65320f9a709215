/** Seconds until the next attempt, or `undefined` to give up. Attempts count from 1. */
export type RetrySchedule = (attempt: number, age_seconds: number) => number | undefined

/**
 * The work cannot be tried at the moment, for a reason of our own: thrown before any attempt. It
 * waits, which counts as no attempt.
 */
export class DeferredError extends Error {
  override readonly name = "DeferredError"
  /** Until it is looked at again; null: until the pause `by` ends. */
  readonly seconds: number | null
  readonly by: string | undefined

  constructor(reason: string, seconds: number | null, by?: string) {
    super(reason)
    this.seconds = seconds
    this.by = by
  }
}
