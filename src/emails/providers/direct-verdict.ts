import { bounced, RETRY, subtype, type Verdict } from "../smtp/outcome"
import type { SmtpReply } from "../smtp/reply"
import type { SmtpRefusal } from "../smtp/session"

/** Whom a permanent refusal is about. Only the first says anything about the address. */
export type Blame = "recipient" | "content" | "infrastructure"

const BLAMES: Record<string, Blame> = {
  NoEmail: "recipient",
  MailboxFull: "recipient",
  General: "recipient",
  MessageTooLarge: "content",
  ContentRejected: "content",
  AttachmentRejected: "content",
  PolicyRejected: "infrastructure",
  InfrastructureRejected: "infrastructure",
}

/** By the `bounce_subtype` of the contract. */
export const blameOf = (bounce_subtype: string): Blame => BLAMES[bounce_subtype] ?? "recipient"

/** Where in the dialogue the server said it. */
export type Phase = SmtpRefusal["phase"] | "RCPT" | "DATA" | "message"

/**
 * What the reply of a recipient's own mail server means. 4yz comes again. 5yz is a bounce, of whom it
 * is about: before a recipient was named it cannot be about him, whatever the words.
 */
export function directVerdict(reply: SmtpReply, phase: Phase): Verdict {
  if (reply.code < 500) return RETRY
  if (phase === "greeting" || phase === "EHLO" || phase === "STARTTLS") {
    return bounced("InfrastructureRejected")
  }
  // RFC 4954, 6: it wants a login, which no mail server may want of another.
  const kind = WANTS_LOGIN.has(reply.code) ? "PolicyRejected" : subtype(reply)
  const is_of_recipient = blameOf(kind) === "recipient"
  return bounced(phase === "MAIL" && is_of_recipient ? "PolicyRejected" : kind)
}

const WANTS_LOGIN = new Set([530, 534, 535, 538])

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
