import type { Components } from "../../src/client/components"

export type Publish = Components["Publish"]

/** What became of the recipients of a publish, over all of its channels. */
export interface PublishTotals {
  planned: number
  sent: number
  skipped: number
  failed: number
  /** Recipients that are decided: sent or skipped. */
  done: number
  left: number
}

export function totalsOf({ channels }: Pick<Publish, "channels">): PublishTotals {
  const totals = { planned: 0, sent: 0, skipped: 0, failed: 0 }
  for (const counts of Object.values(channels)) {
    totals.planned += counts.planned
    totals.sent += counts.sent
    totals.skipped += sum(counts.skipped)
    totals.failed += counts.failed
  }
  const done = totals.sent + totals.skipped
  return { ...totals, done, left: Math.max(0, totals.planned - done) }
}

const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((all, one) => all + one, 0)

export const isOver = ({ completed_at }: Pick<Publish, "completed_at">): boolean =>
  completed_at !== null

/** Skipped recipients with their reasons, as `41 preference, 2 suppressed`. */
export function skippedText({ channels }: Pick<Publish, "channels">): string {
  const all = new Map<string, number>()
  for (const { skipped } of Object.values(channels)) {
    for (const [reason, count] of Object.entries(skipped)) {
      all.set(reason, (all.get(reason) ?? 0) + count)
    }
  }
  const told = [...all].filter(([, count]) => count > 0)
  return told.map(([reason, count]) => `${count} ${reason.replaceAll("_", " ")}`).join(", ")
}

/** How many recipients were done at a moment, in epoch milliseconds. */
export interface ProgressSample {
  at: number
  done: number
}

const WINDOW_MILLISECONDS = 10_000
const LEAST_MILLISECONDS = 1000

/** The samples of the last seconds, with a new one. */
export const withSample = (
  samples: readonly ProgressSample[],
  sample: ProgressSample,
): readonly ProgressSample[] => [
  ...samples.filter(({ at }) => at >= sample.at - WINDOW_MILLISECONDS),
  sample,
]

/** Recipients per second over these samples; undefined until it is known. */
export function rateOf(samples: readonly ProgressSample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || last.at - first.at < LEAST_MILLISECONDS) return undefined
  return ((last.done - first.done) * 1000) / (last.at - first.at)
}

/** Seconds until the rest is done at this speed; undefined where nothing moves. */
export const secondsLeft = (left: number, rate: number | undefined): number | undefined =>
  rate === undefined || rate <= 0 ? undefined : Math.ceil(left / rate)

/** `4 s`, `3 min`, `2 h`: how long something still takes. */
export function spanText(seconds: number): string {
  if (seconds < 90) return `${seconds} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3600)} h`
}

const BAR_CHARACTERS = 20

/** `[#####---------------]` */
export function barText(done: number, planned: number, width = BAR_CHARACTERS): string {
  const filled = planned === 0 ? 0 : Math.floor((Math.min(done, planned) * width) / planned)
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}]`
}

/** One line about a publish that runs. */
export function progressText(publish: Publish, rate: number | undefined): string {
  const { planned, done, left } = totalsOf(publish)
  const words = [publish.status.replaceAll("_", " ")]
  if (publish.status_reason) words.push(`(${publish.status_reason})`)
  if (planned > 0) words.push(barText(done, planned), `${done} of ${planned}`)
  if (rate !== undefined && left > 0) words.push(`${Math.round(rate)}/s`)
  const seconds = secondsLeft(left, rate)
  if (seconds !== undefined && left > 0) words.push(`${spanText(seconds)} left`)
  return words.join(" ")
}
