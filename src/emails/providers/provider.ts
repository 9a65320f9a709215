import type { Settings } from "../../core/config"
import type { RetrySchedule } from "../../jobs/work-item"
import type { OutgoingMessage, Provider } from "../../providers/provider"
import type { ConcurrencyLimit, PerDestinationOptions } from "../smtp/destination-limits"
import type { MtaStsOptions } from "../smtp/mta-sts"

/** Fully composed: a provider carries these bytes, it decides nothing about them. */
export interface OutgoingMail extends OutgoingMessage {
  /** Envelope sender; empty for the null sender. */
  from: string
  /**
   * The envelope sender for delivery to the recipient's own server: it names the message, so
   * that a report which comes later can be told from a forged one.
   */
  reports_to?: () => Promise<string>
  /** The message with CRLF line ends and nothing stuffed. */
  raw: Uint8Array
  /** The header needs SMTPUTF8 (RFC 6531). Addresses that need it are noticed without this. */
  smtputf8: boolean
}

/** Carries one email, once. `test/contracts/email-provider.ts` is this promise, as tests. */
export type EmailProvider = Provider<OutgoingMail>

/** What every email provider gets, besides its credentials. */
export interface EmailContext {
  settings: Settings
  schedule: RetrySchedule
  /** Null where the embedded mailbox does not run. */
  mailbox_port: number | null
  /** What delivery to the recipients' own servers needs. */
  direct: {
    policies: MtaStsOptions["policies"]
    /** Deliveries at once in all; without it they have one of their own. */
    limit?: ConcurrencyLimit
    onBacklog?: PerDestinationOptions["onBacklog"]
  }
}
