import { millisFrom } from "../core/time"
import type { ReputationCounts } from "../identity/account-reputation"
import { hourOf } from "./hour-counts"
import { firstHour, type Thresholds } from "./thresholds"

interface WindowStart {
  hour: number
  /** What was counted in that hour before the start. */
  base: ReputationCounts | null
}

/** Where the window of an account, tag or template begins: a lifted freeze or a release begins it anew. */
export function windowStart(
  begun: { window_start: string | null; base: ReputationCounts | null } | null,
  { window_ms }: Thresholds,
  at_ms: number,
): WindowStart {
  const hour = firstHour(at_ms, window_ms)
  if (!begun?.window_start) return { hour, base: null }
  const own = hourOf(millisFrom(begun.window_start))
  return own >= hour ? { hour: own, base: begun.base } : { hour, base: null }
}

/** What was counted beside the base. No number becomes negative. */
export function less(all: ReputationCounts, base: ReputationCounts | null): ReputationCounts {
  if (base === null) return all
  return {
    sent: Math.max(0, all.sent - base.sent),
    delivered: Math.max(0, all.delivered - base.delivered),
    bounced: Math.max(0, all.bounced - base.bounced),
    complained: Math.max(0, all.complained - base.complained),
  }
}
