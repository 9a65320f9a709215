import type { Outcome, Schedule } from "../../messages/channel"

/** Fully composed: a provider carries these bytes, it decides nothing about them. */
export interface OutgoingMail {
  /** The same over all attempts: hand it on wherever the other side can tell a repetition by it. */
  message_id: string
  project_id: string
  /** Envelope sender; empty for the null sender. */
  from: string
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
  readonly name: "smtp" | "mailbox"
  readonly schedule: Schedule
  send(mail: OutgoingMail): Promise<Outcome>
  close(): Promise<void>
}
