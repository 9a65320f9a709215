import { isMailbox } from "../../lib/address"
import { isClean } from "../../lib/crlf"
import type { RecipientOutcome, RemoteReply } from "../../providers/provider"
import type { OutgoingMail } from "../providers/provider"
import { faultIn, faultOfReply } from "../providers/smtp-fault"
import { Unsendable } from "./envelope"
import { bounced, FAILED, RETRY, refusalVerdict, SENT, type Verdict, verdict } from "./outcome"
import { type ConnectionPool, PoolBusy } from "./pool"
import type { SmtpReply } from "./reply"
import { isGood, SmtpRefusal, type SmtpSession, type Transaction } from "./session"
import { SmtpConnectionError } from "./wire"

/** What one attempt says about one recipient. */
export type Judged = Omit<RecipientOutcome, "email">

export interface Attempt {
  /** One a recipient, in the order of `mail.to`. */
  judged: Judged[]
  transcript: string[]
}

/** One attempt over a connection of the pool. Rejects with PoolBusy only: then there was no attempt. */
export async function attempt(
  pool: ConnectionPool,
  mail: OutgoingMail,
  mx: string,
): Promise<Attempt> {
  const transcript: string[] = []
  const fault = faultOf(mail)
  const judged = fault
    ? everyone(mail, judge({ ...FAILED, code: "internal_error" }, fault, { mx }))
    : await overPool(pool, mail, { mx, transcript, fresh: false })
  return { judged, transcript }
}

interface Circumstances {
  mx: string
  transcript: string[]
  fresh: boolean
}

async function overPool(
  pool: ConnectionPool,
  mail: OutgoingMail,
  how: Circumstances,
): Promise<Judged[]> {
  let session: SmtpSession | undefined
  try {
    session = await pool.acquire(how.transcript, how)
    const transaction = await session.deliver(mail)
    pool.release(session)
    return mail.to.map((_, index) => settle(transaction, index, { ...how, tls: session?.tls }))
  } catch (error) {
    if (error instanceof PoolBusy) throw error
    how.transcript.push(`* ${(error as Error).message}`)
    if (session) {
      session.quit()
      pool.release(session)
      // A server may hang up between two messages, so that was no attempt yet.
      if (session.used > 1 && isHangUp(error)) return overPool(pool, mail, { ...how, fresh: true })
    }
    return everyone(mail, refusal(error as Error, { ...how, tls: session?.tls }))
  }
}

export const isHangUp = (error: unknown) =>
  (error instanceof SmtpConnectionError && error.kind === "connection") ||
  (error instanceof SmtpRefusal && error.reply.code === 421)

export interface Place {
  mx: string
  tls?: string | null | undefined
}

function settle(done: Transaction, index: number, place: Place): Judged {
  const { recipients, end, trouble, handed } = done
  const reply = recipients[index]
  if (reply instanceof Unsendable) return refusal(reply, place)
  if (reply && !isGood(reply)) return refused(reply, place)
  if (end && isGood(end)) return judge(SENT, null, place, end)
  if (end) return refused(end, place)
  const lost = judge(RETRY, trouble?.message ?? "the server did not answer", place)
  return handed ? lost : { ...lost, fault: "connection" }
}

const refused = (reply: SmtpReply, place: Place): Judged =>
  blaming(faultOfReply(reply), judge(verdict(reply), reply.text, place, reply))

const blaming = (fault: Judged["fault"], judged: Judged): Judged =>
  fault === undefined ? judged : { ...judged, fault }

/** Why the whole message got nowhere. Whatever is not the server's last word is tried again. */
function refusal(error: Error, place: Place): Judged {
  if (error instanceof Unsendable) {
    const subtype = error.enhanced === "5.3.4" ? "MessageTooLarge" : "ContentRejected"
    const judged = judge(bounced(subtype), `${error.enhanced} ${error.message}`, place)
    return { ...judged, reply: { ...judged.reply, enhanced_code: error.enhanced } }
  }
  const fault = faultIn(error)
  if (!(error instanceof SmtpRefusal)) return blaming(fault, judge(RETRY, error.message, place))
  const { reply, phase, is_spoken } = error
  const verdict = phase === "STARTTLS" ? RETRY : refusalVerdict(reply)
  return blaming(
    fault,
    judge(verdict, `${phase}: ${reply.text}`, place, is_spoken ? reply : undefined),
  )
}

export function judge(
  verdict: Verdict,
  reason: string | null,
  place: Place,
  said?: SmtpReply,
): Judged {
  const reply: RemoteReply = {
    smtp_code: said?.code ?? null,
    enhanced_code: said?.enhanced ?? null,
    response: said?.text ?? null,
    mx: place.mx,
    tls: place.tls ?? null,
  }
  return { ...verdict, reason, reply }
}

export const everyone = (mail: OutgoingMail, judged: Judged): Judged[] => mail.to.map(() => judged)

/** Mistakes of ours that must not reach a command line of SMTP, where they would be another command. */
export function faultOf({ from, to, raw }: OutgoingMail): string | undefined {
  const bad = [...(from === "" ? [] : [from]), ...to].find((address) => !isMailbox(address))
  if (bad !== undefined) return `${JSON.stringify(bad)} is not an address`
  return isClean(raw) ? undefined : "the message holds a bare CR, LF or NUL"
}
