import { deliveries } from "./tables"

/** What an attempt and its end need to know. */
export const claimedColumns = {
  id: deliveries.id,
  webhook_id: deliveries.webhook_id,
  event_id: deliveries.event_id,
  trigger: deliveries.trigger,
  attempts: deliveries.attempts,
  max_attempts: deliveries.max_attempts,
  by_hand: deliveries.by_hand,
  owner: deliveries.owner,
  body: deliveries.body,
  attempt_log: deliveries.attempt_log,
  first_attempted_at: deliveries.first_attempted_at,
}

/** A delivery that is ours to attempt. `in_hand`: its row does not say so, or did not at first. */
export type Claimed = Pick<typeof deliveries.$inferSelect, keyof typeof claimedColumns> & {
  in_hand?: true
}

export interface ClaimRequest {
  webhook_id: string
  /** At most so many of its deliveries. */
  room: number
  rate_limit: number | null
  /** The endpoint is disabled: only what was asked for by hand may go. */
  only_by_hand: boolean
}
