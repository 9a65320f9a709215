import type { ReputationCounts } from "../../src/identity/account-reputation"
import { hourOf, NONE, sumOf } from "../../src/reputation/hour-counts"
import {
  type AccountStanding,
  BLANK,
  decide,
  firstHour,
  type StatusDecision,
  type Thresholds,
  thresholds,
} from "../../src/reputation/sending-status"

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** An account that sends while time goes by, assessed as the contract says. */
export class Walk {
  readonly hours = new Map<number, ReputationCounts>()
  readonly limits: Thresholds
  standing: AccountStanding = { status: "active", reputation: BLANK }
  /** Of every change of the status, with the moment. */
  readonly changes: { at_ms: number; status: string; reason: string | null }[] = []
  readonly warnings: string[] = []
  at_ms: number

  constructor(start: string, limits = thresholds()) {
    this.at_ms = Date.parse(start)
    this.limits = limits
  }

  /** Counts mail of this moment, without assessing it. */
  count(counts: Partial<ReputationCounts>) {
    const hour = hourOf(this.at_ms)
    const sum = sumOf([this.hours.get(hour) ?? NONE, { ...NONE, ...counts }])
    this.hours.set(hour, sum)
  }

  get window(): ReputationCounts {
    const first = firstHour(this.at_ms, this.limits.window_ms)
    return sumOf([...this.hours].flatMap(([hour, counts]) => (hour >= first ? [counts] : [])))
  }

  assess(usual_hour: number | null = null): StatusDecision {
    const hour_sent = this.hours.get(hourOf(this.at_ms))?.sent ?? 0
    const readings = { counts: this.window, hour_sent, usual_hour }
    const decision = decide(this.standing, readings, this.limits, this.at_ms)
    if (decision.warn) this.warnings.push(decision.warn)
    if (decision.status !== this.standing.status) {
      const { status, reason } = decision
      this.changes.push({ at_ms: this.at_ms, status, reason })
    }
    this.standing = { status: decision.status, reputation: decision.reputation }
    return decision
  }

  /** Sends and assesses at once. */
  send(counts: Partial<ReputationCounts>, usual_hour: number | null = null): StatusDecision {
    this.count(counts)
    return this.assess(usual_hour)
  }

  /** Assesses every minute until the time is over, or the status changes. */
  wait(duration_ms: number, usual_hour: number | null = null) {
    const end = this.at_ms + duration_ms
    const { status } = this.standing
    while (this.at_ms < end && this.standing.status === status) {
      this.at_ms += MINUTE
      this.assess(usual_hour)
    }
  }

  get status() {
    return this.standing.status
  }
}
