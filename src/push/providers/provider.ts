import type { Settings } from "../../core/config"
import type { NetRequest } from "../../core/net"
import type { SubscriptionKeys } from "../../devices/tables"
import type { RetrySchedule } from "../../jobs/work-item"
import {
  NO_REPLY,
  type Outcome,
  type OutgoingMessage,
  type Provider,
  type RecipientOutcome,
} from "../../providers/provider"
import type { BuiltFrom } from "../push-content"

/** The device as the provider knows it. */
export interface TargetDevice {
  token: string
  keys: SubscriptionKeys | null
  app_id: string | null
  apns_environment: "sandbox" | "production" | null
}

/** One push message to one device. `to` has the name of that device. */
export interface OutgoingPush extends OutgoingMessage, BuiltFrom {
  device: TargetDevice
  /** What is left of its time to live, in seconds. */
  ttl_seconds: number
}

export type PushSender = Provider<OutgoingPush>

export interface PushContext {
  /** They name the servers of APNs and FCM. */
  settings: Settings
  /** Networks where the endpoints of devices may be, besides the public internet. */
  allow_private: readonly string[]
  /** Default: the name servers of the settings. */
  resolver?: NetRequest["resolver"]
}

/** What a provider's answer says, whichever words it uses. */
export type PushMeaning =
  | "sent"
  /** The device is gone. */
  | "unregistered"
  /** The token is none of this app: the device can get nothing any more. */
  | "invalid_token"
  /** The token is another sender's. The device stays. */
  | "other_sender"
  | "payload_too_large"
  | "refused"
  | "throttled"
  | "credentials"
  /** The provider has trouble. */
  | "outage"
  /** The server of this one device has trouble, which says nothing of the provider. */
  | "busy"
  | "unreachable"

export interface PushAnswer {
  meaning: PushMeaning
  /** The provider's words, for people. */
  said: string | null
  /** Its own word: `BadDeviceToken`, `UNREGISTERED`, `410`. */
  provider_code?: string | undefined
  provider_message_id?: string | undefined
  /** When it wants to be asked again, in seconds. */
  retry_after?: number | undefined
  /** Beside `unregistered`: since when, in ISO 8601, where the provider says so. */
  gone_since?: string | undefined
}

const SECONDS = [1, 5, 30, 120, 600]

/** In seconds; no attempt after the last one (contract 40). */
export const pushSchedule: RetrySchedule = (attempt) => SECONDS[attempt - 1]

type Result = Pick<RecipientOutcome, "status" | "fault" | "held" | "code" | "gone">

const failed = (code: string) => ({ status: "failed", code }) as const
const again = { status: "retry", code: "provider_unavailable" } as const

const RESULTS: Record<PushMeaning, Result> = {
  sent: { status: "sent", code: null },
  unregistered: { ...failed("unregistered"), gone: {} },
  invalid_token: { ...failed("invalid_token"), gone: {} },
  other_sender: failed("invalid_token"),
  payload_too_large: failed("payload_too_large"),
  refused: failed("provider_rejected"),
  throttled: { ...again, fault: "infrastructure" },
  credentials: { ...failed("provider_rejected"), fault: "authentication" },
  outage: { ...again, fault: "infrastructure" },
  busy: again,
  unreachable: { ...again, fault: "connection" },
}

/** Of the words of a provider. */
const MOST_SAID = 500

/** The outcome of one attempt, by what the provider said. */
export function pushOutcome(
  provider: string,
  { to: [address = ""] }: Pick<OutgoingPush, "to">,
  answer: PushAnswer,
): Outcome {
  const { meaning, provider_code, provider_message_id, retry_after, gone_since: since } = answer
  const said = answer.said?.slice(0, MOST_SAID) ?? null
  const result = RESULTS[meaning]
  const { status, code, gone } = result
  return {
    ...result,
    address,
    provider,
    reason:
      status === "failed" && !result.fault ? code : status === "sent" ? null : (said ?? meaning),
    ...(status === "failed" && { text: said ?? TEXTS[meaning] ?? meaning }),
    ...(gone && { gone: { ...(since !== undefined && { since }) } }),
    bounce_subtype: null,
    reply: { ...NO_REPLY, response: said, ...(provider_code !== undefined && { provider_code }) },
    others: [],
    transcript: [],
    schedule: scheduleAfter(retry_after),
    ...(provider_message_id !== undefined && { provider_message_id }),
  }
}

const TEXTS: Partial<Record<PushMeaning, string>> = {
  unregistered: "The app was removed from the device, or no longer wants push messages.",
  invalid_token: "The token of the device is not valid.",
}

const scheduleAfter =
  (seconds = 0): RetrySchedule =>
  (attempt, age) => {
    const usual = pushSchedule(attempt, age)
    return usual === undefined ? undefined : Math.max(usual, seconds)
  }
