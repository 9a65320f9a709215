import { millis } from "../core/time"
import { RateWindows } from "../http/rate-limits"
import { subscriberOf } from "../lib/ip-ranges"
import { refusalText, SmtpReplyError } from "../smtp/mail-session"

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

/** What each recipient costs beside the mail: a row, an event, its part of a job. */
const RECIPIENT_BYTES = 2048

/** The bytes that one mail takes from the share of the address that delivers it. */
export const costOf = (size: number, recipients: number): number =>
  size + recipients * RECIPIENT_BYTES

/**
 * What each delivering address may store in an hour of the clock (setting `inbound.mb_per_hour`), so that
 * no stranger fills the disk alone. An IPv6 address counts with its /64. Each node counts for itself.
 */
export class DeliveringShares {
  readonly #windows = new RateWindows(HOUR_MS)
  readonly #bytes_per_hour: () => number

  constructor(bytes_per_hour: () => number) {
    this.#bytes_per_hour = bytes_per_hour
  }

  /** Whether these bytes fit into what is left of the share. */
  hasRoom(address: string, bytes: number): boolean {
    return this.#windowOf(address).used + bytes <= this.#bytes_per_hour()
  }

  /** Counts what is about to be stored. Negative bytes give back what was not. */
  count(address: string, bytes: number): void {
    const window = this.#windowOf(address)
    window.used = Math.max(0, window.used + bytes) // what is given back may be of the hour before
  }

  /** The reply to mail beyond the share. */
  refusal(address: string): SmtpReplyError {
    const minutes = Math.ceil((this.#windowOf(address).ends - millis()) / MINUTE_MS)
    const megabytes = Math.floor(this.#bytes_per_hour() / 1024 ** 2)
    const text = `${address} may store ${megabytes} MB an hour here, and this mail is beyond that. Try again in ${minutes} min`
    return new SmtpReplyError(452, "4.2.2", refusalText("rate_limit_exceeded", text))
  }

  #windowOf(address: string) {
    return this.#windows.of(subscriberOf(address))
  }
}
