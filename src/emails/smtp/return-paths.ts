import { domainOf } from "../../lib/address"
import type { ReturnPathAnswer } from "../../providers/provider"
import { type OutgoingMail, reportsTo } from "../providers/provider"
import { Remembered } from "../providers/remembered"
import type { SmtpAttemptResult } from "./smtp-attempt"
import type { SmtpReply } from "./wire"

/** For so long a relay that refused our return path gets the author's address without being asked again. */
const KNOWN_MS = 24 * 3_600_000

/** Hosts of return paths that are remembered. Further ones are asked again, which costs one command. */
const MOST_HOSTS = 1_000

/** One attempt at the relay with this envelope sender. */
type Ask = (from: string) => Promise<SmtpAttemptResult>

/**
 * The envelope sender that a relay takes, by the host of our return path. A relay that refuses ours gets the author's
 * address in the same attempt. Many say so at RCPT or after the message, in words of their own. So until a relay has
 * taken a mail with ours, every refusal for good is taken for one of the return path: with the author's
 * address it shows whether it was.
 */
export class ReturnPaths {
  readonly #refused = new Remembered<true>(KNOWN_MS, MOST_HOSTS)
  readonly #taken = new Remembered<true>(KNOWN_MS, MOST_HOSTS)

  async attempt(
    mail: OutgoingMail,
    transcript: string[],
    ask: Ask,
  ): Promise<SmtpAttemptResult & { return_path?: ReturnPathAnswer }> {
    const ours = await reportsTo(mail)
    const host = domainOf(ours)
    if (ours === mail.from || this.#refused.has(host)) return ask(mail.from)
    const first = await ask(ours)
    if (isTaken(first)) {
      void this.#taken.get(host, async () => true)
      return { ...first, return_path: { host, refusal: null } }
    }
    const refusal = refusalOf(first, ours, this.#taken.has(host))
    if (!refusal) return first
    transcript.push("* trying the author's address as envelope sender")
    const second = await ask(mail.from)
    if (!isTaken(second)) return second
    void this.#refused.get(host, async () => true)
    return { ...second, return_path: { host, refusal: refusal.text } }
  }

  /** The next mail asks again. */
  forget(host: string): void {
    this.#refused.forget(host)
  }
}

const isTaken = ({ results }: SmtpAttemptResult) =>
  results.some(({ status }) => status === "sent" || status === "delivered")

/** The reply that may be about the return path; undefined where it is about something else. */
function refusalOf(
  { refused }: SmtpAttemptResult,
  return_path: string,
  is_proven: boolean,
): SmtpReply | undefined {
  if (!refused) return undefined
  const { is_at_mail, replies } = refused
  const mayBe = (reply: SmtpReply) =>
    speaksOfSender(reply, return_path) || (reply.code >= 500 && (is_at_mail || !is_proven))
  return replies.every(mayBe) ? replies[0] : undefined
}

/** RFC 3463 says 5.1.7 and 5.1.8 of a sender; many servers say it in words alone. */
const speaksOfSender = ({ enhanced, text }: SmtpReply, return_path: string): boolean =>
  /^[45]\.1\.[78]$/.test(enhanced ?? "") ||
  /\bsender\b/i.test(text) ||
  text.toLowerCase().includes(return_path.toLowerCase())
