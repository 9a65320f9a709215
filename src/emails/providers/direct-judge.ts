import { type Judged, judge } from "../smtp/attempt"
import { Unsendable } from "../smtp/envelope"
import { isPassing, Unroutable } from "../smtp/mx"
import { bounced, RETRY, SENT } from "../smtp/outcome"
import type { SmtpReply } from "../smtp/reply"
import { isGood, type Transaction } from "../smtp/session"
import { directVerdict, type Phase } from "./direct-verdict"

/** Where it was said. */
export interface Place {
  mx: string | null
  tls: string | null
}

export const NOWHERE: Place = { mx: null, tls: null }

const judged = (verdict: Parameters<typeof judge>[0], reason: string, place: Place): Judged => {
  const found = judge(verdict, reason, { mx: place.mx ?? "", tls: place.tls })
  return { ...found, reply: { ...found.reply, mx: place.mx } }
}

/** A domain that cannot be found, as opposed to a host that does not answer. */
export function ofRoute(error: Error): Judged {
  if (isPassing(error)) return unreached(ofTrouble(error.message, NOWHERE))
  const { enhanced, subtype } =
    error instanceof Unroutable ? error : ({ enhanced: "5.1.2", subtype: "NoEmail" } as const)
  const found = judged(bounced(subtype), `${enhanced} ${error.message}`, NOWHERE)
  return { ...found, reply: { ...found.reply, enhanced_code: enhanced } }
}

/** The message, or one address, cannot be put to this server at all. */
export function ofUnsendable({ enhanced, message }: Unsendable, place: Place): Judged {
  const subtype = enhanced === "5.3.4" ? "MessageTooLarge" : "ContentRejected"
  const found = judged(bounced(subtype), `${enhanced} ${message}`, place)
  return { ...found, reply: { ...found.reply, enhanced_code: enhanced } }
}

/** No connection, or one that ended without a word. */
export const ofTrouble = (reason: string, place: Place): Judged => judged(RETRY, reason, place)

/** Nothing was handed over, so another provider may be asked: it may be our side that is cut off. */
export const unreached = (one: Judged): Judged => ({ ...one, fault: "connection" })

/** What a host said, in its own words; RFC 5321, 4.2. */
export function ofReply(reply: SmtpReply, phase: Phase, place: Place): Judged {
  const words = phase === "RCPT" || phase === "message" ? reply.text : `${phase}: ${reply.text}`
  const verdict = directVerdict(reply, phase)
  const found = judge(verdict, words, { ...place, mx: place.mx ?? "" }, reply)
  const is_ours = verdict.bounce_subtype === "InfrastructureRejected" || isOfHost(reply, phase)
  return is_ours ? { ...found, fault: "infrastructure" } : found
}

/** It would not talk to us at all, or no longer: whoever is at another address may fare better. */
const isOfHost = ({ code }: SmtpReply, phase: Phase) =>
  code === 421 || phase === "greeting" || phase === "EHLO"

/**
 * The word of a transaction on one of its recipients. Undefined where there is none: the connection
 * was lost, or the server closed it (421) before the message began to travel.
 */
export function wordOf(done: Transaction, index: number, place: Place): Judged | undefined {
  const { recipients, end, handed } = done
  const reply = recipients[index]
  if (reply instanceof Unsendable) return ofUnsendable(reply, place)
  const said = reply && !isGood(reply) ? reply : end
  if (!said || (said.code === 421 && !handed)) return undefined
  if (isGood(said)) return judge(SENT, null, { ...place, mx: place.mx ?? "" }, said)
  return ofReply(said, said === end ? "message" : "RCPT", place)
}
