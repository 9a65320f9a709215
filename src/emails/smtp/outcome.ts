import type { RecipientOutcome } from "../../providers/provider"
import type { SmtpReply } from "./reply"

export type Verdict = Pick<RecipientOutcome, "status" | "bounce_subtype" | "code">

export const SENT: Verdict = { status: "sent", bounce_subtype: null, code: null }
export const RETRY: Verdict = { status: "retry", bounce_subtype: null, code: null }
export const FAILED: Verdict = { status: "failed", bounce_subtype: null, code: "provider_error" }

export const bounced = (bounce_subtype: string): Verdict => ({
  status: "bounced",
  bounce_subtype,
  code: null,
})

/** RFC 4954, 6: the relay wants a login. That is between it and us, not the recipient's fault. */
const LOGIN_CODES = new Set([530, 534, 535, 538])

export const isLogin = ({ code }: SmtpReply): boolean => LOGIN_CODES.has(code)

/** The words with which a server speaks about us rather than about the message. */
const BLAMES_US =
  /\b(?:ips?|host|client|server|network|mta|unauthenticated|banned|ptr|r(?:everse )?dns|helo|ehlo)\b|\d+\.\d+\.\d+\.\d+/i

/** The same, where there can be no doubt, whatever else the server says. */
const LISTED =
  /\b(?:block[- ]?list(?:ed)?|black[- ]?list(?:ed)?|deny[- ]?list(?:ed)?|[rd]n?s?bl|spamhaus|spamcop|barracuda|sorbs|uceprotect|abusix|senderscore|reputation|spf|dkim|dmarc)\b/i

/** RFC 7372 and 8616: what is missing is ours (DKIM, SPF, reverse DNS), or there was too much of it. */
const OURS = /^5\.7\.(?:2\d|5\d\d|6\d\d|7\d\d)$/

/** Of the author, though many servers say it with the code of a recipient (`550 5.1.0`). */
const OF_SENDER =
  /\bsender (?:address |domain |verif\w* )?(?:is |was )?(?:rejected|refused|denied|blocked|invalid|unknown|unverified|failed|not )|(?:invalid|unknown|unverified|bad) sender\b/i

const TOO_LARGE = /size|large|\bbig\b|length|\btoo long\b/i
const NOBODY =
  /unknown (?:user|recipient|mailbox)|bad (?:recipient|mailbox|destination)\b|(?:user|recipient|mailbox) (?:is )?(?:unknown|unavailable|not found)|no (?:such|mailbox)|does(?: not|n't) exist|invalid (?:recipient|mailbox)/i
const SPAM = /spam|virus|malware|content|message (?:was )?(?:rejected|refused)/i
const POLICY = /policy|denied|not (?:allowed|permitted)|prohibited|block|relay/i
const UNAVAILABLE = /service (?:is |currently |temporarily )*(?:unavailable|not available)/i

/**
 * RFC 5321, 4.2.1 and RFC 7504: the server did not understand us, or takes no mail at all. A reply
 * about an address has other codes.
 */
const OF_PROTOCOL = new Set([500, 501, 502, 503, 504, 521])

/** How much we may send, said so that it cannot be meant of a mailbox or of one message. */
const SENDING_LIMIT =
  /\b(?:send|sending|submission|outbound|outgoing|relay|relaying)(?: (?!over|is)\w+){0,2} (?:quota|limits?|allowance)\b|\b(?:quota|limits?|allowance) (?:for|on|of) (?:sending|submission|outbound|outgoing|relaying)\b/i

/** The same, where the server says nothing of a mailbox or of who receives. */
const LIMIT_IN_TIME =
  /\b(?:daily|hourly|monthly)\b.*\b(?:quota|limits?)\b|\b(?:e?-?mails|messages) per (?:hour|day|month)\b|\brate limit|\bcredits? (?:limit )?exceeded/i
const OF_RECEIVER = /\b(?:recipient|mailbox|inbox|storage|receiv\w*)\b/i

/** Whether the server says that we have sent as much as it takes from us. */
export function isSendingLimit({ code, text }: SmtpReply): boolean {
  const words = wordsOf(text)
  if (code < 400 || TOO_LARGE.test(words)) return false
  return SENDING_LIMIT.test(words) || (LIMIT_IN_TIME.test(words) && !OF_RECEIVER.test(words))
}

const wordsOf = (text: string) => text.replace(/^\d+ (?:\d\.\d+\.\d+ )?/, "")

/**
 * What a relay's refusal at RCPT, at DATA or of the message itself means for its recipient. What it
 * says about us is no bounce: nobody has asked the recipient's own server yet.
 */
export function verdict(reply: SmtpReply): Verdict {
  if (reply.code < 500) return RETRY
  return LOGIN_CODES.has(reply.code) || isRefusalOfUs(reply) ? FAILED : bounced(subtype(reply))
}

/** A relay's refusal of us, before any recipient was named; or of the message, by its size. */
export const refusalVerdict = (reply: SmtpReply): Verdict => {
  if (reply.code < 500) return RETRY
  return isTooLarge(reply) ? bounced("MessageTooLarge") : FAILED
}

/** A relay will not work for us, whoever was meant. */
export const isRefusalOfUs = (reply: SmtpReply): boolean =>
  reply.code >= 500 &&
  (subtype(reply) === "InfrastructureRejected" || RELAYS_NOT.test(wordsOf(reply.text)))

/** Of a relay it says that we may not use it, however politely it is named a policy. */
const RELAYS_NOT =
  /\brelay(?:ing)? (?:access )?(?:is |was )?(?:denied|not (?:permitted|allowed))|\b(?:unable|not (?:permitted|allowed|authori[sz]ed)) to relay\b/i

/** RFC 5321, 4.1.1.1 and RFC 1870: known from MAIL on, where the size is announced. */
export const isTooLarge = (reply: SmtpReply): boolean =>
  reply.code >= 500 && subtype(reply) === "MessageTooLarge"

/** RFC 3463 where the server uses it; its words otherwise, and where codes are known to lie. */
export function subtype(reply: SmtpReply): string {
  const { code, enhanced: given, text } = reply
  const words = wordsOf(text)
  const enhanced = given?.replace(/^4/, "5") ?? null // some say 552 4.2.2: the reply's own code counts
  const [, subject, detail] = (enhanced ?? "").split(".")
  if (/attachment|file type/i.test(words) && (subject === "7" || subject === "6" || code === 552)) {
    return "AttachmentRejected"
  }
  if (code === 552 && TOO_LARGE.test(words)) return "MessageTooLarge"
  if (isSendingLimit(reply)) return "InfrastructureRejected"
  if (enhanced === null || enhanced === "5.0.0") return fromWords(code, words)
  if (OURS.test(enhanced)) return "InfrastructureRejected"
  if (LISTED.test(words) && !NOBODY.test(words)) return "InfrastructureRejected"
  if (OF_SENDER.test(words)) return "PolicyRejected"
  if (subject === "1") return detail === "7" || detail === "8" ? "PolicyRejected" : "NoEmail"
  if (enhanced === "5.2.2") return "MailboxFull"
  if (enhanced === "5.2.3" || enhanced === "5.3.4") return "MessageTooLarge"
  if (subject === "6") return "ContentRejected"
  if (subject === "7") return BLAMES_US.test(words) ? "InfrastructureRejected" : "PolicyRejected"
  // Large hosts say "5.4.1 Recipient address rejected" and "5.5.0 mailbox unavailable" of nobody.
  if (NOBODY.test(words) || /recipient address rejected/i.test(words)) return "NoEmail"
  return BETWEEN_SERVERS.has(subject ?? "") ? "InfrastructureRejected" : "General"
}

/** RFC 3463: mail system, network and routing, protocol. None of them is the address's. */
const BETWEEN_SERVERS = new Set(["3", "4", "5"])

function fromWords(code: number, words: string): string {
  if (code === 552) return "MailboxFull"
  if (OF_SENDER.test(words)) return "PolicyRejected"
  if (NOBODY.test(words)) return "NoEmail"
  if (LISTED.test(words) || OF_PROTOCOL.has(code)) return "InfrastructureRejected"
  if (POLICY.test(words)) return BLAMES_US.test(words) ? "InfrastructureRejected" : "PolicyRejected"
  if (SPAM.test(words)) return "ContentRejected"
  return UNAVAILABLE.test(words) ? "InfrastructureRejected" : "General"
}
