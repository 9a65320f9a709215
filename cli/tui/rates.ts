import type { Counts } from "./message-rows"

/** What was seen since the monitor began: messages a second, and how they ended. */
export interface Rates {
  /** Messages that were new in each second, the oldest first; the last one is not over yet. */
  seconds: readonly number[]
  /** The second of the last of them. */
  second: number
  settled: number
  bounced: number
  complained: number
}

const KEPT_SECONDS = 60
const MEAN_SECONDS = 5

export const NO_RATES: Rates = { seconds: [0], second: 0, settled: 0, bounced: 0, complained: 0 }

/** Brings the seconds up to now; those in which nothing came are zeros. */
export function upTo(rates: Rates, now: number): Rates {
  const second = Math.floor(now / 1000)
  const gone = rates.second === 0 ? 0 : Math.min(KEPT_SECONDS, second - rates.second)
  if (gone <= 0) return rates.second === 0 ? { ...rates, second } : rates
  const zeros = Array.from({ length: gone }, () => 0)
  return { ...rates, second, seconds: [...rates.seconds, ...zeros].slice(-KEPT_SECONDS) }
}

/** Adds what has just been seen to the second that runs. */
export function counted(rates: Rates, more: Counts, now: number): Rates {
  const { seconds, ...rest } = upTo(rates, now)
  const last = seconds.at(-1) ?? 0
  return {
    ...rest,
    seconds: [...seconds.slice(0, -1), last + more.added],
    settled: rest.settled + more.settled,
    bounced: rest.bounced + more.bounced,
    complained: rest.complained + more.complained,
  }
}

/** The mean of the last whole seconds: one that has just begun says nothing. */
export function perSecond({ seconds }: Rates): number {
  const whole = seconds.slice(0, -1).slice(-MEAN_SECONDS)
  if (whole.length === 0) return seconds.at(-1) ?? 0
  return whole.reduce((sum, one) => sum + one, 0) / whole.length
}
