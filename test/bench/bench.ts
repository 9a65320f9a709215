/** How long and how often; `--quick` is for trying a change, never for a figure to quote. */
export interface Effort {
  rounds: number
  seconds: number
}

/** A figure that was measured once a round. */
export interface Series {
  name: string
  unit: string
  values: number[]
}

/** What is demanded of a figure, and whether it was met. */
export interface Verdict {
  what: string
  shown: string
  target: string
  met: boolean
}

export interface Report {
  series: Series[]
  verdicts: Verdict[]
  notes: string[]
}

/** One row of the benchmark table: alternates limit, ours and peer, and reports. */
export interface Bench {
  name: string
  title: string
  /** How often it measures, where it does not follow the effort. */
  rounds?: number
  /** Rejects when anything was answered wrongly, or when the counts do not match. */
  run(effort: Effort): Promise<Report>
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The median of the rounds' ratios: both of a pair were measured in the same minute. */
export const ratioOf = (ours: Series, other: Series): number =>
  median(ours.values.map((value, round) => value / (other.values[round] ?? Number.NaN)))

export const atLeast = (what: string, value: number, target: number, unit = "×"): Verdict => ({
  what,
  shown: `${show(value)} ${unit}`,
  target: `≥ ${target} ${unit}`,
  met: value >= target,
})

export const atMost = (what: string, value: number, target: number, unit: string): Verdict => ({
  what,
  shown: `${show(value)} ${unit}`,
  target: `≤ ${target} ${unit}`,
  met: value <= target,
})

/** Three digits that mean something; thousands apart. */
export function show(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en")
  return value.toPrecision(3)
}

export const series = (name: string, unit: string): Series => ({ name, unit, values: [] })

/** The counts of a benchmark are part of its result: a difference ends it. */
export function requireEqual(what: string, expected: number, found: number) {
  if (expected !== found) throw new Error(`${what}: ${found} instead of ${expected}`)
}
