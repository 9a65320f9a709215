/** What was counted of emails by recipient, for the reputation of their account. */
export interface ReputationCounts {
  sent: number
  delivered: number
  /** Permanently, for a reason that is the recipient's or the content's. */
  bounced: number
  complained: number
}

/** What decides how an account may send, as the last evaluation left it. */
export interface AccountReputation {
  /** Where the window begins at the earliest: when the operator last lifted a freeze. */
  window_start: string | null
  /** What was counted before that in the hour of the start. */
  base: ReputationCounts | null
  /** Shares, 0 to 1. */
  bounce_rate: number
  complaint_rate: number
  /** Of new sends, 0 to 1; 0 where the account is active. */
  rejected_share: number
  /** What throttled or froze the account; null where it is active. */
  cause: "bounce_rate" | "complaint_rate" | "hour_sent" | "operator" | null
  /** Since when a throttled account has been below all marks of recovery. */
  below_since: string | null
  /** The step that owners were warned of, and that has not come. */
  warned: "throttled" | "frozen" | null
  changed_at: string | null
}
