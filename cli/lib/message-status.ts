/** The message left, or is where it was meant to go. */
export const isGood = (status: string): boolean => GOOD.has(status)

/** The message did not reach its recipient, or its recipient complained. */
export const isBad = (status: string): boolean => BAD.has(status)

/** Nothing more happens, except for what a recipient does. */
export const isFinal = (status: string): boolean =>
  status === "delivered" || status === "cancelled" || BAD.has(status)

/** The queue of the work that is held since a restore. */
export const HELD_QUEUE = "held_after_restore"

/** The message or publish waits since a restore. Its status stays, and its reason names the queue. */
export const isHeld = (status_reason: string | null | undefined): boolean =>
  status_reason?.includes(HELD_QUEUE) ?? false

const GOOD = new Set(["sent", "delivered"])

const BAD = new Set(["bounced", "complained", "failed", "undelivered", "expired"])
