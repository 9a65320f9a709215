import {
  blameOf,
  isRelayDenied,
  isSendingLimit,
  type RefusalStage,
  subtypeOf,
} from "../../lib/refusal"
import { type Fault, NO_REPLY, type Outcome, type RecipientOutcome } from "../../providers/provider"
import { isTemporary, Unroutable } from "./mx"
import { SmtpRefusal, type Unsendable } from "./session"
import { isGood, SmtpConnectionError, type SmtpReply } from "./wire"

/** The outcome of an attempt. Every recipient has its own, and the first one stands for the message. */
export function outcomeOf(
  [first, ...others]: RecipientOutcome[],
  attempt: Pick<Outcome, "provider" | "schedule"> & { transcript?: string[] },
): Outcome {
  if (!first) throw new TypeError("an outcome needs a recipient")
  return { ...first, others, transcript: [], ...attempt }
}

export type RecipientResult = Omit<RecipientOutcome, "address">

/** Where in the dialogue the server said it. */
export type SmtpPhase = SmtpRefusal["phase"] | "RCPT" | "DATA" | "message"

type ReplyMeaning = Pick<RecipientOutcome, "status" | "bounce_subtype" | "code" | "fault">

export interface AnsweringServer {
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
  server: AnsweringServer,
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
  blameOf(subtypeOf(reply, stageOf(phase))) === "recipient"

/** The server refused us before any recipient was named. */
export function refused(policy: ReplyPolicy, refusal: SmtpRefusal, server: AnsweringServer) {
  const result = replied(policy, refusal.reply, refusal.phase, server)
  return refusal.is_spoken ? result : { ...result, reply: { ...NO_REPLY, ...server } }
}

/** The message or one address cannot be put to this server at all. */
export function unsendable({ enhanced, message }: Unsendable, server: AnsweringServer) {
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
export const NOWHERE: AnsweringServer = { mx: null, tls: null }

/** The message is tried again. Whether the server has it is not known. */
export const unanswered = (reason: string, server: AnsweringServer): RecipientResult =>
  resultOf(RETRY, reason, server)

/** Nothing was handed over, so another provider may be asked. */
export const unreached = (reason: string, server: AnsweringServer): RecipientResult =>
  resultOf({ ...RETRY, fault: "connection" }, reason, server)

/** A mistake of ours: the attempt cannot be made. */
export const impossible = (reason: string, mx: string | null): RecipientResult =>
  resultOf({ ...FAILED, code: "internal_error" }, reason, { mx, tls: null })

function bouncedByUs(
  subtype: string,
  enhanced_code: string,
  words: string,
  server: AnsweringServer,
) {
  const result = resultOf(bounced(subtype), `${enhanced_code} ${words}`, server)
  return { ...result, reply: { ...result.reply, enhanced_code } }
}

function resultOf(
  meaning: ReplyMeaning,
  reason: string | null,
  { mx, tls }: AnsweringServer,
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
  return isLogin(reply) || isRefusalOfUs(reply) ? FAILED : bounced(subtypeOf(reply, stageOf(phase)))
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

const STAGES: Record<SmtpPhase, RefusalStage> = {
  greeting: "connection",
  EHLO: "connection",
  STARTTLS: "connection",
  AUTH: "connection",
  MAIL: "sender",
  RCPT: "recipient",
  DATA: "data",
  message: "message",
}

const stageOf = (phase: SmtpPhase): RefusalStage => STAGES[phase]

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
  const stage = stageOf(phase)
  // No mail server may want a login of another.
  const wants_login = isLogin(reply) && stage !== "connection"
  return bounced(wants_login ? "PolicyRejected" : subtypeOf(reply, stage))
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

/** A relay refuses us for every recipient. */
const isRefusalOfUs = (reply: SmtpReply): boolean =>
  reply.code >= 500 &&
  (subtypeOf(reply, "recipient") === "InfrastructureRejected" || isRelayDenied(reply))

/** RFC 5321, 4.1.1.1 and RFC 1870: known from MAIL on, where the size is announced. */
const isTooLarge = (reply: SmtpReply): boolean =>
  reply.code >= 500 && subtypeOf(reply, "sender") === "MessageTooLarge"
