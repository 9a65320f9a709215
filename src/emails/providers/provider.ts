import type { RetrySchedule } from "../../jobs/work"
import type { Fault, Outcome } from "../../providers/provider"

export type EmailProviderName = "smtp" | "mailbox" | "direct" | "ses"

/** Fully composed: a provider carries these bytes, it decides nothing about them. */
export interface OutgoingMail {
  /** The same over all attempts: hand it on wherever the other side can tell a repetition by it. */
  message_id: string
  project_id: string
  /** Envelope sender; empty for the null sender. */
  from: string
  /**
   * The envelope sender for who hands over to the recipient's own server: it names the message, so
   * that a report which comes later can be told from a forged one.
   */
  reports_to?: () => Promise<string>
  /** Envelope recipients that are still open; the first is the one the message's status follows. */
  to: string[]
  /** The message with CRLF line ends and nothing stuffed. */
  raw: Uint8Array
  /** The header needs SMTPUTF8 (RFC 6531). Addresses that need it are noticed without this. */
  smtputf8: boolean
}

/**
 * Carries one email, once. A refusal is an `Outcome` with the reason the server gave, never an
 * exception, and `sent` means that the other side took responsibility for the message.
 * `test/contracts/email-provider.ts` is this promise, as tests.
 */
export interface EmailProvider {
  readonly name: EmailProviderName
  readonly schedule: RetrySchedule
  send(mail: OutgoingMail): Promise<Outcome>
  /**
   * Asked before a message is composed: keeps room for it until `dismiss`, or rejects with DeferredError where
   * there is none. Absent where there always is; `send` without it asks for itself.
   */
  admit?(message_id: string, to: string[], is_urgent: boolean, project_id: string): Promise<void>
  dismiss?(message_id: string): void
  /**
   * Goes as far as one gets without a message: connects and logs in. Resolves with what was found,
   * in words, and rejects with ProviderError. Absent where there is nobody to ask.
   */
  check?(): Promise<string>
  close(): Promise<void>
}

/** A provider that cannot be used at all, whatever the message. */
export class ProviderError extends Error {
  override readonly name = "ProviderError"
  readonly fault: Fault

  constructor(fault: Fault, message: string) {
    super(message)
    this.fault = fault
  }
}
