import type { Hosts, Safety } from "./direct-hosts"
import type { Report } from "./direct-lanes"
import { asksForLess, directVerdict, type Phase } from "./direct-verdict"
import { isNamed, type KeptPolicy } from "./mta-sts"
import { isOfTheWay, isPassing, type MailRoutes, Unreached, Unroutable } from "./mx"
import type { OutgoingMail } from "./provider"
import { isHangUp, type Judged, judge } from "./smtp-attempt"
import { Unsendable } from "./smtp-envelope"
import { PoolBusy } from "./smtp-pool"
import type { SmtpReply } from "./smtp-reply"
import { isGood, Refusal, type Session, type Transaction } from "./smtp-session"
import { bounced, RETRY, SENT } from "./smtp-verdict"
import { Trouble } from "./smtp-wire"

/** Connections tried for one domain in one attempt, whatever the number of its hosts. */
const MOST_TRIES = 6

export interface Ways {
  routes: MailRoutes
  hosts: Hosts
  policyOf(domain: string): Promise<KeptPolicy | undefined>
}

export interface DomainAttempt {
  /** One a recipient, in the order of `mail.to`. */
  judged: Judged[]
  /** What the lane of the domain learns from it. */
  report: Report
}

interface Place {
  mx: string | null
  tls: string | null
}

const NOWHERE: Place = { mx: null, tls: null }

/**
 * One attempt at one domain, all its recipients in one transaction. The next host is asked while
 * nothing was handed over; once the message was, its answer or the lack of one is the end.
 */
export async function attemptDomain(
  ways: Ways,
  domain: string,
  mail: OutgoingMail,
  transcript: string[],
): Promise<DomainAttempt> {
  const all = (judged: Judged): Judged[] => mail.to.map(() => judged)
  const turn = new Turn(ways, domain, mail, transcript)
  try {
    return await turn.run()
  } catch (error) {
    if (!isOfTheWay(error)) throw error
    const { message } = error
    transcript.push(`* ${message}`)
    const report: Report = isPassing(error) ? { trouble: message } : "nothing"
    return { judged: all(ofRoute(error)), report }
  }
}

/** A domain that cannot be found, as opposed to a host that does not answer. */
function ofRoute(error: Error): Judged {
  if (isPassing(error)) return judged(RETRY, error.message, NOWHERE)
  const { enhanced, subtype } =
    error instanceof Unroutable ? error : ({ enhanced: "5.1.2", subtype: "NoEmail" } as const)
  const found = judged(bounced(subtype), `${enhanced} ${error.message}`, NOWHERE)
  return { ...found, reply: { ...found.reply, enhanced_code: enhanced } }
}

const judged = (verdict: Parameters<typeof judge>[0], reason: string, place: Place): Judged => {
  const found = judge(verdict, reason, { mx: place.mx ?? "", tls: place.tls })
  return { ...found, reply: { ...found.reply, mx: place.mx } }
}

/** The way of one message through the hosts of one domain. */
class Turn {
  readonly #ways: Ways
  readonly #domain: string
  readonly #mail: OutgoingMail
  readonly #transcript: string[]
  #tries = 0
  /** The best that the hosts so far gave: a refusal that may pass outweighs one for good. */
  #refused: { error: Error; place: Place } | undefined

  constructor(ways: Ways, domain: string, mail: OutgoingMail, transcript: string[]) {
    this.#ways = ways
    this.#domain = domain
    this.#mail = mail
    this.#transcript = transcript
  }

  async run(): Promise<DomainAttempt> {
    const { names, implicit } = await this.#ways.routes.hostsOf(this.#domain)
    const policy = await this.#ways.policyOf(this.#domain)
    const enforced = policy?.mode === "enforce"
    const allowed = enforced ? names.filter((name) => isNamed(name, policy)) : names
    if (allowed.length === 0) {
      throw new Unreached(
        `MTA-STS: the policy of ${this.#domain} names none of ${names.join(", ")}`,
      )
    }
    let unreachable: Error | undefined
    for (const name of allowed) {
      try {
        for (const address of await this.#ways.routes.addressesOf(name)) {
          if (this.#tries >= MOST_TRIES) break
          const done = await this.#host(name, address, enforced)
          if (done) return done
        }
      } catch (error) {
        if (!isOfTheWay(error)) throw error
        this.#transcript.push(`* ${error.message}`)
        // What may pass outweighs what will not: another host may be found another time.
        if (!unreachable || isPassing(error)) unreachable = error
      }
    }
    return this.#end(unreachable, implicit)
  }

  /** Every host was asked in vain. */
  #end(unreachable: Error | undefined, implicit: boolean): DomainAttempt {
    if (this.#refused) return this.#judge(this.#refused.error, this.#refused.place)
    if (implicit && unreachable instanceof Unroutable && unreachable.subtype === "General") {
      const words = `${this.#domain} has neither a mail server nor an address`
      throw new Unroutable("5.1.2", "NoEmail", words)
    }
    throw unreachable ?? new Unreached(`no mail server of ${this.#domain} could be asked`)
  }

  /** Undefined where the next host may do better. */
  async #host(
    name: string,
    address: string,
    enforced: boolean,
  ): Promise<DomainAttempt | undefined> {
    const plain = this.#ways.hosts.isPlain(address)
    const safety: Safety = enforced ? "proven" : plain ? "none" : "opportunistic"
    const done = await this.#connect(name, address, safety)
    const tls_failed = safety === "opportunistic" && isTlsTrouble(this.#refused?.error)
    if (done || !tls_failed) return done
    this.#transcript.push("* TLS did not work: once more without")
    this.#refused = undefined
    const open = await this.#connect(name, address, "none")
    if (open) this.#ways.hosts.speaksPlainly(address)
    return open
  }

  async #connect(
    name: string,
    address: string,
    safety: Safety,
    fresh = false,
  ): Promise<DomainAttempt | undefined> {
    this.#tries++
    const pool = this.#ways.hosts.pool(name, address, safety)
    const place: Place = { mx: name, tls: null }
    let session: Session | undefined
    try {
      session = await pool.acquire(this.#transcript, { fresh })
      place.tls = session.tls
      const transaction = await session.deliver(this.#mail)
      pool.release(session)
      return this.#settle(transaction, place)
    } catch (error) {
      if (error instanceof PoolBusy) throw error
      this.#transcript.push(`* ${(error as Error).message}`)
      if (session) {
        session.quit()
        pool.release(session)
        // A server may hang up between two messages, so that was no attempt yet.
        if (!fresh && session.used > 1 && isHangUp(error)) {
          return this.#connect(name, address, safety, true)
        }
      }
      return this.#weigh(error as Error, place)
    }
  }

  /** The end, or one host less: what was said at MAIL or of the message is the domain's word. */
  #weigh(error: Error, place: Place): DomainAttempt | undefined {
    const is_last = error instanceof Unsendable || (error instanceof Refusal && isWord(error))
    if (is_last) return this.#judge(error, place)
    const passing = (one: Error) => !(one instanceof Refusal) || one.reply.code < 500
    if (!this.#refused || passing(error)) this.#refused = { error, place }
    return undefined
  }

  #judge(error: Error, place: Place): DomainAttempt {
    const all = (one: Judged) => this.#mail.to.map(() => one)
    if (error instanceof Unsendable) {
      const subtype = error.enhanced === "5.3.4" ? "MessageTooLarge" : "ContentRejected"
      const found = judged(bounced(subtype), `${error.enhanced} ${error.message}`, place)
      const reply = { ...found.reply, enhanced_code: error.enhanced }
      return { judged: all({ ...found, reply }), report: "fine" }
    }
    if (error instanceof Refusal) {
      const one = replied(error.reply, error.phase, place)
      return { judged: all(one), report: reportOf([error.reply], error.phase !== "MAIL") }
    }
    const one = judged(RETRY, error.message, place)
    return { judged: all(one), report: { trouble: error.message } }
  }

  #settle({ recipients, end, trouble }: Transaction, place: Place): DomainAttempt {
    const lost = trouble?.message ?? "the server did not answer"
    const open = judged(RETRY, lost, place)
    const list = this.#mail.to.map((_, index): Judged => {
      const reply = recipients[index]
      if (reply instanceof Unsendable) {
        const words = `${reply.enhanced} ${reply.message}`
        const found = judged(bounced("ContentRejected"), words, place)
        return { ...found, reply: { ...found.reply, enhanced_code: reply.enhanced } }
      }
      if (reply && !isGood(reply)) return replied(reply, "RCPT", place)
      if (end && isGood(end)) return judge(SENT, null, { ...place, mx: place.mx ?? "" }, end)
      return end ? replied(end, "message", place) : open
    })
    const replies = [...recipients, end].filter((one) => one && !(one instanceof Unsendable))
    if (trouble) return { judged: list, report: { trouble: lost } }
    return { judged: list, report: reportOf(replies as SmtpReply[], false) }
  }
}

/** At MAIL it speaks of this message; before that any other host may be in a better mood. */
const isWord = ({ phase, reply }: Refusal) => phase === "MAIL" && reply.code !== 421

const isTlsTrouble = (error: Error | undefined) => error instanceof Trouble && error.kind === "tls"

function replied(reply: SmtpReply, phase: Phase, place: Place): Judged {
  const words = phase === "RCPT" || phase === "message" ? reply.text : `${phase}: ${reply.text}`
  const verdict = directVerdict(reply, phase)
  const found = judge(verdict, words, { ...place, mx: place.mx ?? "" }, reply)
  // The one thing that another provider, at another address, may do better.
  const is_ours = verdict.bounce_subtype === "InfrastructureRejected"
  return is_ours ? { ...found, fault: "infrastructure" } : found
}

/** A refusal before any message is trouble with the host, one after it mostly is not. */
function reportOf(replies: SmtpReply[], early: boolean): Report {
  const less = replies.find((reply) => asksForLess(reply) || early)
  return less ? { trouble: less.text } : "fine"
}
