import { createHash } from "node:crypto"
import { ApiError } from "../core/errors"
import type { Caller } from "../identity/caller"
import { percentText } from "./thresholds"

/** Seconds after which a rejected send may be tried again: a new message has a new draw. */
const RETRY_AFTER = 60

/** What of a caller decides whether its account may send. */
export type SendingCaller = Pick<Caller, "sending_status" | "sending_status_reason" | "reputation">

/** The refusal of everything that a frozen account sends (403); undefined for every other account. */
export function frozenRefusal(caller: SendingCaller): ApiError | undefined {
  if (caller.sending_status !== "frozen") return undefined
  const text = `The account is frozen (${caller.sending_status_reason}). Only the operator of this instance can lift this.`
  return new ApiError("account_frozen", text, detailsOf(caller))
}

/**
 * The refusal of a send that is in the rejected share of a throttled account (429). A hash of the
 * message's id decides, so the same message always gets the same answer, and a new one a new draw.
 */
export function throttledRefusal(caller: SendingCaller, message_id: string): ApiError | undefined {
  if (caller.sending_status !== "throttled") return undefined
  const share = caller.reputation?.rejected_share ?? 0
  if (drawOf(message_id) >= share) return undefined
  const text = `The account is throttled (${caller.sending_status_reason}): ${percentText(share)} of its sends are rejected. Send this one again in ${RETRY_AFTER} s.`
  return new ApiError("account_throttled", text, { ...detailsOf(caller), retry_after: RETRY_AFTER })
}

const detailsOf = ({ sending_status_reason: reason, reputation }: SendingCaller) => ({
  reason,
  bounce_rate: reputation?.bounce_rate ?? 0,
  complaint_rate: reputation?.complaint_rate ?? 0,
})

const RANGE = 2 ** 32

/** 0 to 1, evenly over all ids. */
export const drawOf = (message_id: string): number =>
  createHash("sha256").update(message_id).digest().readUInt32BE(0) / RANGE
