import { blameOf } from "../../lib/bounce-blame"
import { type Fault, NO_REPLY, type RecipientOutcome } from "../../providers/provider"
import { isTemporary, Unroutable } from "./mx"
import type { Unsendable } from "./session"
import { SmtpRefusal } from "./session"
import { isGood, SmtpConnectionError, type SmtpReply } from "./wire"

/** What one attempt came to for one recipient. */
export type RecipientResult = Omit<RecipientOutcome, "email">

/** Where in the dialogue the server said it. */
export type SmtpPhase = SmtpRefusal["phase"] | "RCPT" | "DATA" | "message"

/** What a reply means, without its words. */
type ReplyMeaning = Pick<RecipientOutcome, "status" | "bounce_subtype" | "code" | "fault">

/** The server that was asked. */
export interface AskedServer {
  mx: string | null
  tls: string | null
}

/** How a server is read: a relay works for us, a receiving server speaks for its recipients. */
export interface ReplyPolicy {
  /** What a message is once the server has accepted it. */
  accepted: "sent" | "delivered"
  meaningOf(reply: SmtpReply, phase: SmtpPhase): ReplyMeaning
}

/** The embedded mailbox is read as a relay, but what it accepts is `delivered`. */
export const relayPolicy = (accepted: ReplyPolicy["accepted"]): ReplyPolicy => ({
  accepted,
  meaningOf: relayMeaning,
})

export const RECEIVER_POLICY: ReplyPolicy = { accepted: "delivered", meaningOf: receiverMeaning }

const RETRY: ReplyMeaning = { status: "retry", bounce_subtype: null, code: null }
const FAILED: ReplyMeaning = { status: "failed", bounce_subtype: null, code: "provider_error" }

const bounced = (bounce_subtype: string): ReplyMeaning => ({
  status: "bounced",
  bounce_subtype,
  code: null,
})

/** The result that a reply gives, in the words of the server (RFC 5321, 4.2). */
export function replied(
  policy: ReplyPolicy,
  reply: SmtpReply,
  phase: SmtpPhase,
  server: AskedServer,
): RecipientResult {
  if (isGood(reply)) return resultOf({ ...RETRY, status: policy.accepted }, null, server, reply)
  const reason = isEarly(phase) ? `${phase}: ${reply.text}` : reply.text
  const meaning = policy.meaningOf(reply, phase)
  const result = resultOf(meaning, reason, server, reply)
  return isSoft(meaning, reply, phase) ? { ...result, is_soft: true } : result
}

/** Whether a deferral is about the recipient: not about us, about how much we send or about the mail. */
const isSoft = ({ status, fault }: ReplyMeaning, reply: SmtpReply, phase: SmtpPhase): boolean =>
  status === "retry" &&
  fault === undefined &&
  reply.code < 500 &&
  !isEarly(phase) &&
  !asksForLess(reply) &&
  blameOf(subtype(reply)) === "recipient"

/** The server refused us before any recipient was named. */
export function refused(policy: ReplyPolicy, refusal: SmtpRefusal, server: AskedServer) {
  const result = replied(policy, refusal.reply, refusal.phase, server)
  return refusal.is_spoken ? result : { ...result, reply: { ...NO_REPLY, ...server } }
}

/** The message or one address cannot be put to this server at all. */
export function unsendable({ enhanced, message }: Unsendable, server: AskedServer) {
  const subtype = enhanced === "5.3.4" ? "MessageTooLarge" : "ContentRejected"
  return bouncedByUs(subtype, enhanced, message, server)
}

/** A domain that cannot be found is a bounce. One that cannot be asked now is tried again. */
export function unrouted(error: Error): RecipientResult {
  if (isTemporary(error)) return unreached(error.message, NOWHERE)
  const { subtype, enhanced } =
    error instanceof Unroutable ? error : ({ enhanced: "5.1.2", subtype: "NoEmail" } as const)
  return bouncedByUs(subtype, enhanced, error.message, NOWHERE)
}

/** No server was asked. */
export const NOWHERE: AskedServer = { mx: null, tls: null }

/** The message is tried again. Whether the server has it is not known. */
export const unanswered = (reason: string, server: AskedServer): RecipientResult =>
  resultOf(RETRY, reason, server)

/** Nothing was handed over, so another provider may be asked. */
export const unreached = (reason: string, server: AskedServer): RecipientResult =>
  resultOf({ ...RETRY, fault: "connection" }, reason, server)

/** A mistake of ours: the attempt cannot be made. */
export const impossible = (reason: string, mx: string | null): RecipientResult =>
  resultOf({ ...FAILED, code: "internal_error" }, reason, { mx, tls: null })

function bouncedByUs(subtype: string, enhanced_code: string, words: string, server: AskedServer) {
  const result = resultOf(bounced(subtype), `${enhanced_code} ${words}`, server)
  return { ...result, reply: { ...result.reply, enhanced_code } }
}

function resultOf(
  meaning: ReplyMeaning,
  reason: string | null,
  { mx, tls }: AskedServer,
  said?: SmtpReply,
): RecipientResult {
  const {
    code: smtp_code = null,
    enhanced: enhanced_code = null,
    text: response = null,
  } = said ?? {}
  return { ...meaning, reason, reply: { smtp_code, enhanced_code, response, mx, tls } }
}

/**
 * What a relay's refusal means. A refusal of us is no bounce: the recipient's own server was not
 * asked yet. A temporary refusal is tried again, and so is any refusal of STARTTLS.
 */
function relayMeaning(reply: SmtpReply, phase: SmtpPhase): ReplyMeaning {
  const fault = relayFault(reply, phase)
  return fault === undefined ? relayStatus(reply, phase) : { ...relayStatus(reply, phase), fault }
}

function relayStatus(reply: SmtpReply, phase: SmtpPhase): ReplyMeaning {
  if (reply.code < 500 || phase === "STARTTLS") return RETRY
  if (isEarly(phase)) return isTooLarge(reply) ? bounced("MessageTooLarge") : FAILED
  return isLogin(reply) || isRefusalOfUs(reply) ? FAILED : bounced(subtype(reply))
}

/** What the refusal says about the relay and us. Mostly it is about the recipient or the message. */
function relayFault(reply: SmtpReply, phase: SmtpPhase): Fault | undefined {
  if (isLogin(reply) || (phase === "AUTH" && reply.code >= 500)) return "authentication"
  if (isEarly(phase)) return phase === "MAIL" && isTooLarge(reply) ? undefined : "infrastructure"
  if (reply.code === 421) return "infrastructure" // RFC 5321, 3.8: it closes for every recipient
  return isSendingLimit(reply) || isRefusalOfUs(reply) ? "infrastructure" : undefined
}

/** What an attempt that ended before any recipient was named says about the relay. */
export function relayFaultOf(error: Error): Fault | undefined {
  if (error instanceof SmtpConnectionError) return "connection"
  return error instanceof SmtpRefusal ? relayFault(error.reply, error.phase) : undefined
}

const isEarly = (phase: SmtpPhase) => phase !== "RCPT" && phase !== "DATA" && phase !== "message"

/**
 * What the reply of a recipient's own mail server means. 4yz is tried again. 5yz is a bounce of the
 * recipient that it is about. Before RCPT no reply is about a recipient, in any words.
 */
function receiverMeaning(reply: SmtpReply, phase: SmtpPhase): ReplyMeaning {
  const meaning = receiverStatus(reply, phase)
  // It does not talk to us, or no longer: a provider at another address may fare better.
  const is_closed = reply.code === 421 || phase === "greeting" || phase === "EHLO"
  const is_ours = is_closed || meaning.bounce_subtype === "InfrastructureRejected"
  return is_ours ? { ...meaning, fault: "infrastructure" } : meaning
}

function receiverStatus(reply: SmtpReply, phase: SmtpPhase): ReplyMeaning {
  if (reply.code < 500) return RETRY
  if (phase === "greeting" || phase === "EHLO" || phase === "STARTTLS") {
    return bounced("InfrastructureRejected")
  }
  // No mail server may want a login of another.
  const kind = isLogin(reply) ? "PolicyRejected" : subtype(reply)
  const is_of_recipient = blameOf(kind) === "recipient"
  return bounced(phase === "MAIL" && is_of_recipient ? "PolicyRejected" : kind)
}

const GREYLISTED = /gr[ae]y-?list/i
const TOO_MUCH =
  /rate.?limit|throttl|too (?:many|much|fast)|(?:connections?|messages?|volume) (?:limit|rate)|unusual|slow(?:ing)? down/i

/** Concerns this message alone, and the next one is as welcome. */
const OF_THE_MESSAGE = new Set(["4.5.3", "4.2.1", "4.2.2", "4.1.1"])

/**
 * Whether the server asks for less of us: 421, a policy that defers (450 4.7.x), or its words. Not
 * where it waits for the same message to come again.
 */
export function asksForLess({ code, enhanced, text }: SmtpReply): boolean {
  if (code < 400 || code >= 500) return false
  if (code === 421) return true
  if (GREYLISTED.test(text) || OF_THE_MESSAGE.has(enhanced ?? "")) return false
  return enhanced?.startsWith("4.7.") === true || TOO_MUCH.test(text)
}

/** RFC 4954, 6: the server wants a login. */
const isLogin = ({ code }: SmtpReply): boolean => [530, 534, 535, 538].includes(code)

/** The words with which a server speaks about us rather than about the message. */
const BLAMES_US =
  /\b(?:ips?|host|client|server|network|mta|unauthenticated|banned|ptr|r(?:everse )?dns|helo|ehlo)\b|\d+\.\d+\.\d+\.\d+/i

/** Words that speak about us without doubt, whatever other words the reply has. */
const LISTED =
  /\b(?:block[- ]?list(?:ed)?|black[- ]?list(?:ed)?|deny[- ]?list(?:ed)?|[rd]n?s?bl|spamhaus|spamcop|barracuda|sorbs|uceprotect|abusix|senderscore|reputation|spf|dkim|dmarc)\b/i

/** RFC 7372 and 8616: what is missing is ours (DKIM, SPF, reverse DNS), or there was too much of it. */
const OURS = /^5\.7\.(?:2\d|5\d\d|6\d\d|7\d\d)$/

/** Of the author, though many servers say it with the code of a recipient (`550 5.1.0`). */
const OF_SENDER =
  /\bsender (?:address |domain |verif\w* )?(?:is |was )?(?:rejected|refused|denied|blocked|invalid|unknown|unverified|failed|not )|(?:invalid|unknown|unverified|bad) sender\b/i

const TOO_LARGE = /size|large|\bbig\b|length|\btoo long\b/i
const NO_SUCH_RECIPIENT =
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

/** The same, where the server says nothing of a mailbox or a receiver. */
const LIMIT_IN_TIME =
  /\b(?:daily|hourly|monthly)\b.*\b(?:quota|limits?)\b|\b(?:e?-?mails|messages) per (?:hour|day|month)\b|\brate limit|\bcredits? (?:limit )?exceeded/i
const OF_RECEIVER = /\b(?:recipient|mailbox|inbox|storage|receiv\w*)\b/i

/** Whether the server says that we have sent as much as it takes from us. */
function isSendingLimit({ code, text }: SmtpReply): boolean {
  const words = wordsOf(text)
  if (code < 400 || TOO_LARGE.test(words)) return false
  return SENDING_LIMIT.test(words) || (LIMIT_IN_TIME.test(words) && !OF_RECEIVER.test(words))
}

const wordsOf = (text: string) => text.replace(/^\d+ (?:\d\.\d+\.\d+ )?/, "")

/** A relay refuses us for every recipient. */
const isRefusalOfUs = (reply: SmtpReply): boolean =>
  reply.code >= 500 &&
  (subtype(reply) === "InfrastructureRejected" || RELAYS_NOT.test(wordsOf(reply.text)))

/** Of a relay it says that we may not use it, however politely it is named a policy. */
const RELAYS_NOT =
  /\brelay(?:ing)? (?:access )?(?:is |was )?(?:denied|not (?:permitted|allowed))|\b(?:unable|not (?:permitted|allowed|authori[sz]ed)) to relay\b/i

/** RFC 5321, 4.1.1.1 and RFC 1870: known from MAIL on, where the size is announced. */
const isTooLarge = (reply: SmtpReply): boolean =>
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
  if (LISTED.test(words) && !NO_SUCH_RECIPIENT.test(words)) return "InfrastructureRejected"
  if (OF_SENDER.test(words)) return "PolicyRejected"
  if (subject === "1") return detail === "7" || detail === "8" ? "PolicyRejected" : "NoEmail"
  if (enhanced === "5.2.2") return "MailboxFull"
  if (enhanced === "5.2.3" || enhanced === "5.3.4") return "MessageTooLarge"
  if (subject === "6") return "ContentRejected"
  if (subject === "7") return BLAMES_US.test(words) ? "InfrastructureRejected" : "PolicyRejected"
  // Large hosts say "5.4.1 Recipient address rejected" and "5.5.0 mailbox unavailable" of addresses that do not exist.
  if (NO_SUCH_RECIPIENT.test(words) || /recipient address rejected/i.test(words)) return "NoEmail"
  return BETWEEN_SERVERS.has(subject ?? "") ? "InfrastructureRejected" : "General"
}

/** RFC 3463: mail system, network and routing, protocol. None of them is the address's. */
const BETWEEN_SERVERS = new Set(["3", "4", "5"])

function fromWords(code: number, words: string): string {
  if (code === 552) return "MailboxFull"
  if (OF_SENDER.test(words)) return "PolicyRejected"
  if (NO_SUCH_RECIPIENT.test(words)) return "NoEmail"
  if (LISTED.test(words) || OF_PROTOCOL.has(code)) return "InfrastructureRejected"
  if (POLICY.test(words)) return BLAMES_US.test(words) ? "InfrastructureRejected" : "PolicyRejected"
  if (SPAM.test(words)) return "ContentRejected"
  return UNAVAILABLE.test(words) ? "InfrastructureRejected" : "General"
}
