import type { RetrySchedule } from "../jobs/work-item"

/** What the other side said, as far as it said anything. Codes of RFC 5321 and RFC 3463. */
interface RemoteReply {
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
  mx: string | null
  tls: string | null
}

/**
 * What went wrong between us and a provider, as opposed to a word about the message: it was not
 * reached, refused our credentials, or would not work for us. Another provider may do better.
 */
export type Fault = "connection" | "authentication" | "infrastructure"

export interface RecipientOutcome {
  email: string
  status: "sent" | "delivered" | "retry" | "bounced" | "failed"
  reason: string | null
  bounce_subtype: string | null
  /** An error code of the contract, for `failed`. */
  code: string | null
  reply: RemoteReply
  /** Only where the message certainly was not taken. */
  fault?: Fault | undefined
  /** Beside `retry`: nothing was tried for this recipient, only for others of the same message. */
  held?: true
}

/**
 * What came of one attempt. Neither channel nor provider throws for a refusal: it says so here.
 * The fields of `RecipientOutcome` speak of the `to` recipient or, once that one is settled, of
 * the first recipient still open; `others` holds the rest.
 */
export interface Outcome extends RecipientOutcome {
  provider: string
  /** The provider's own id of the message, by which its notifications will name it. */
  provider_message_id?: string | undefined
  others: RecipientOutcome[]
  transcript: string[]
  schedule: RetrySchedule
  /**
   * The provider refused our login. The attempt is recorded, no event tells of a deferral, and the
   * message waits under this hold.
   */
  login_refused?: { reason: string; by: string }
}

export const NO_REPLY: RemoteReply = {
  smtp_code: null,
  enhanced_code: null,
  response: null,
  mx: null,
  tls: null,
}

/** The outcome of an attempt. Every recipient has its own, and the first one stands for the message. */
export function outcomeOf(
  [first, ...others]: RecipientOutcome[],
  attempt: Pick<Outcome, "provider" | "schedule"> & { transcript?: string[] },
): Outcome {
  if (!first) throw new TypeError("an outcome needs a recipient")
  return { ...first, others, transcript: [], ...attempt }
}

/** No connection became free in time. */
export class ProviderBusyError extends Error {
  override readonly name: string = "ProviderBusyError"
}

/** A provider that cannot be used for any message. */
export class ProviderError extends Error {
  override readonly name = "ProviderError"
  readonly fault: Fault

  constructor(fault: Fault, message: string) {
    super(message)
    this.fault = fault
  }
}

/** One attempt of a message, composed: a provider delivers it as it is. */
export interface OutgoingMessage {
  /** The same over all attempts: hand it on wherever the other side can tell a repetition by it. */
  message_id: string
  project_id: string
  /** Recipients that are still open; the first is the one the message's status follows. */
  to: string[]
}

/**
 * Delivers a message, once. A refusal is an `Outcome` with the reason the server gave, never an
 * exception, and `sent` means that the other side took responsibility for the message.
 */
export interface Provider<Message extends OutgoingMessage = OutgoingMessage> {
  readonly name: string
  readonly schedule: RetrySchedule
  send(message: Message): Promise<Outcome>
  /**
   * Asked before a message is composed: keeps a permit for it until `dismiss`, or rejects with
   * DeferredError where none is free. Absent where there always is one; `send` without it asks itself.
   */
  admit?(message_id: string, to: string[], is_urgent: boolean, project_id: string): Promise<void>
  dismiss?(message_id: string): void
  /**
   * Goes as far as possible without a message: connects and logs in. Resolves with what was found,
   * in words, and rejects with ProviderError. Absent where there is no server to ask.
   */
  check?(): Promise<string>
  close(): Promise<void>
}
