import { settings } from "../core/config"
import { millisFrom } from "../core/time"
import type { ReputationCounts } from "../identity/account-reputation"
import { eachCount, hourOf } from "./hour-counts"

const HOUR_MS = 3_600_000

/** The numbers of one step. Rates are shares, 0 to 1. */
interface StepThresholds {
  min_sent: number
  bounce_rate: number
  complaint_rate: number
}

/** All numbers by which accounts are assessed. */
export interface Thresholds {
  window_ms: number
  throttled: StepThresholds & {
    hour_sent: number
    hour_factor: number
    least_share: number
    most_share: number
  }
  frozen: StepThresholds
  held: { min_sent: number; complaint_rate: number }
  /** A rate is low below this share of its threshold, and all must be so for that long. */
  recovery: { share: number; after_ms: number }
}

/** As the operator set them; they may change while the server runs. */
export function thresholds(): Thresholds {
  const own = settings()
  const rates = (step: "throttle" | "freeze") => ({
    min_sent: own[`reputation.${step}.min_sent`],
    bounce_rate: own[`reputation.${step}.bounce_percent`] / 100,
    complaint_rate: own[`reputation.${step}.complaint_percent`] / 100,
  })
  return {
    window_ms: own["reputation.window"],
    throttled: {
      ...rates("throttle"),
      hour_sent: own["reputation.throttle.hour_sent"],
      hour_factor: own["reputation.throttle.hour_factor"],
      least_share: own["reputation.throttle.least_percent"] / 100,
      most_share: own["reputation.throttle.most_percent"] / 100,
    },
    frozen: rates("freeze"),
    held: {
      min_sent: own["reputation.hold.min_sent"],
      complaint_rate: own["reputation.hold.complaint_percent"] / 100,
    },
    recovery: {
      share: own["reputation.recovery.percent"] / 100,
      after_ms: own["reputation.recovery.after"],
    },
  }
}

/** The first hour of the window that ends now: whole hours, the present one included. */
export const firstHour = (at_ms: number, window_ms: number): number =>
  hourOf(at_ms) + 1 - Math.ceil(window_ms / HOUR_MS)

/** `7d`, or `36h` where it is no number of days. */
export const windowText = (window_ms: number): string => {
  const hours = Math.ceil(window_ms / HOUR_MS)
  return hours % 24 === 0 ? `${hours / 24}d` : `${hours}h`
}

/** A share as a percentage: `6.1%`, `0.12%`. */
export function percentText(share: number): string {
  const percent = share * 100
  const rounded = percent >= 1 ? Math.round(percent * 10) / 10 : Number(percent.toPrecision(2))
  return `${rounded}%`
}

/**
 * The hour in which the window of an account, tag or template begins, and what was counted in it before: a
 * lifted freeze or a release begins it anew.
 */
export function windowStart(
  begun: { window_start: string | null; base: ReputationCounts | null } | null,
  { window_ms }: Thresholds,
  at_ms: number,
) {
  const hour = firstHour(at_ms, window_ms)
  if (!begun?.window_start) return { hour, base: null }
  const own = hourOf(millisFrom(begun.window_start))
  return own >= hour ? { hour: own, base: begun.base } : { hour, base: null }
}

/** What was counted beside the base. No number becomes negative. */
export function less(all: ReputationCounts, base: ReputationCounts | null): ReputationCounts {
  if (base === null) return all
  return eachCount((name) => Math.max(0, all[name] - base[name]))
}
