import type { Settings } from "../../core/config"
import type { RetrySchedule } from "../../jobs/work-item"
import type { OutgoingMessage, Provider } from "../../providers/provider"
import type { MailToMake, SigningFacts } from "../compose-task"
import type { Recipe } from "../recipe"
import type { ConcurrencyLimit, PerDestinationOptions } from "../smtp/destination-limits"
import type { MtaStsOptions } from "../smtp/mta-sts"

/** Fully composed: a provider carries these bytes, it decides nothing about them. */
export interface OutgoingMail extends OutgoingMessage {
  /** The author's address; empty for the null sender. */
  from: string
  /**
   * Our return path, which names the message, so that a report which comes later can be told from a forged one.
   * Undefined where no host of ours takes reports.
   */
  reports_to?: () => Promise<string | undefined>
  /** The server is asked to report success and delay, too, where it offers that (RFC 3461). */
  wants_reports?: boolean
  /** The message with CRLF line ends and nothing stuffed. */
  raw: Uint8Array
  /** For a server without 8BITMIME, where `raw` is bytes: with what they are signed anew in 7 bits. */
  signing?: SigningFacts
  /** The header needs SMTPUTF8 (RFC 6531). Addresses that need it are noticed without this. */
  smtputf8: boolean
}

/** A mail that the mailer's thread makes when it sends it. */
export interface UnmadeMail {
  mail: MailToMake
  /** What the thread says of the bytes that it made. */
  recipe: Required<Recipe> | undefined
}

/** As `OutgoingMail`, whose bytes may still have to be made. */
export interface UnsentMail extends Omit<OutgoingMail, "raw"> {
  raw: Uint8Array | UnmadeMail
}

/** Carries one email, once. `test/contracts/email-provider.ts` is this promise, as tests. */
export interface EmailProvider extends Provider<OutgoingMail> {
  /** It takes an `UnsentMail` as well: the mailer's thread makes its bytes. */
  makes_mail?: true
}

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

const MINUTE = 60
const HOUR = 60 * MINUTE

const FIRST_WAITS = [1, 5, 15, 30, 60, 120, 240, 480].map((minutes) => minutes * MINUTE)
const EVERY_LATER_WAIT = 8 * HOUR
const JITTER = 0.1

const DEFAULT_MAX_AGE_SECONDS = 48 * HOUR

const MAILBOX_WAITS = [1, 2, 4]

/**
 * 1, 5, 15, 30 minutes, 1, 2, 4, 8 hours, then every 8 hours, each ±10 % so that a relay that
 * was away is not met by all messages at once. Gives up where the next attempt would begin later
 * than `max_age_seconds` after queueing.
 */
export const smtpSchedule =
  (max_age_seconds = DEFAULT_MAX_AGE_SECONDS, random: () => number = Math.random): RetrySchedule =>
  (attempt, age_seconds) => {
    const wait = FIRST_WAITS[attempt - 1] ?? EVERY_LATER_WAIT
    const seconds = wait * (1 + JITTER * (2 * random() - 1))
    return age_seconds + seconds > max_age_seconds ? undefined : seconds
  }

/** 1, 2, 4 seconds, so that every outcome of the embedded mailbox shows within seconds. */
export const mailboxSchedule: RetrySchedule = (attempt) => MAILBOX_WAITS[attempt - 1]
