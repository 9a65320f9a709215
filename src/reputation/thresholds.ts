import { settings } from "../core/config"
import { hourOf } from "./hour-counts"

const HOUR_MILLISECONDS = 3_600_000

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
  const shareOf = (percent: number) => percent / 100
  return {
    window_ms: own["reputation.window"],
    throttled: {
      min_sent: own["reputation.throttle.min_sent"],
      bounce_rate: shareOf(own["reputation.throttle.bounce_percent"]),
      complaint_rate: shareOf(own["reputation.throttle.complaint_percent"]),
      hour_sent: own["reputation.throttle.hour_sent"],
      hour_factor: own["reputation.throttle.hour_factor"],
      least_share: shareOf(own["reputation.throttle.least_percent"]),
      most_share: shareOf(own["reputation.throttle.most_percent"]),
    },
    frozen: {
      min_sent: own["reputation.freeze.min_sent"],
      bounce_rate: shareOf(own["reputation.freeze.bounce_percent"]),
      complaint_rate: shareOf(own["reputation.freeze.complaint_percent"]),
    },
    held: {
      min_sent: own["reputation.hold.min_sent"],
      complaint_rate: shareOf(own["reputation.hold.complaint_percent"]),
    },
    recovery: {
      share: shareOf(own["reputation.recovery.percent"]),
      after_ms: own["reputation.recovery.after"],
    },
  }
}

/** The first hour of the window that ends now: whole hours, the present one included. */
export const firstHour = (at_ms: number, window_ms: number): number =>
  hourOf(at_ms) + 1 - Math.ceil(window_ms / HOUR_MILLISECONDS)

/** `7d`, or `36h` where it is no number of days. */
export const windowText = (window_ms: number): string => {
  const hours = Math.ceil(window_ms / HOUR_MILLISECONDS)
  return hours % 24 === 0 ? `${hours / 24}d` : `${hours}h`
}

/** A share as a percentage: `6.1%`, `0.12%`. */
export function percentText(share: number): string {
  const percent = share * 100
  const rounded = percent >= 1 ? Math.round(percent * 10) / 10 : Number(percent.toPrecision(2))
  return `${rounded}%`
}
