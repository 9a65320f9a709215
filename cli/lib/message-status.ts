/** The message left, or is where it was meant to go. */
export const isGood = (status: string): boolean => GOOD.has(status)

/** The message did not reach its recipient, or its recipient complained. */
export const isBad = (status: string): boolean => BAD.has(status)

/** Nothing more happens, except for what a recipient does. */
export const isFinal = (status: string): boolean =>
  status === "delivered" || status === "cancelled" || BAD.has(status)

const GOOD = new Set(["sent", "delivered"])

const BAD = new Set(["bounced", "complained", "failed", "undelivered", "expired"])
