import { isHangUp, type Judged } from "../smtp/attempt"
import { Unsendable } from "../smtp/envelope"
import { isNamed, type KeptPolicy } from "../smtp/mta-sts"
import { isOfTheWay, isPassing, type MailRoutes, Unreached, Unroutable } from "../smtp/mx"
import type { Report } from "../smtp/permits"
import { PoolBusy } from "../smtp/pool"
import type { SmtpReply } from "../smtp/reply"
import { SmtpRefusal, type SmtpSession, type Transaction } from "../smtp/session"
import { SmtpConnectionError } from "../smtp/wire"
import type { Hosts, Safety } from "./direct-hosts"
import {
  NOWHERE,
  ofReply,
  ofRoute,
  ofTrouble,
  ofUnsendable,
  type Place,
  unreached,
  wordOf,
} from "./direct-judge"
import { asksForLess } from "./direct-verdict"
import type { OutgoingMail } from "./provider"

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

/** What is left to say where no further host does better. */
interface Left {
  judged: Judged
  report: Report
  /** The handshake failed: the same host may be asked without. */
  of_tls: boolean
}

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
  const turn = new Turn(ways, domain, mail, transcript)
  try {
    return await turn.run()
  } catch (error) {
    if (!isOfTheWay(error)) throw error
    const { message } = error
    transcript.push(`* ${message}`)
    const report: Report = isPassing(error) ? { trouble: message } : "nothing"
    const one = ofRoute(error)
    return { judged: mail.to.map(() => one), report }
  }
}

/** The way of one message through the hosts of one domain. */
class Turn {
  readonly #ways: Ways
  readonly #domain: string
  readonly #mail: OutgoingMail
  readonly #transcript: string[]
  #tries = 0
  /** The best that the hosts so far gave: a refusal that may pass outweighs one for good. */
  #left: Left | undefined
  /** A policy demands good TLS (MTA-STS) and did not get it: the message waits, it goes no other way. */
  #unproven = false
  /** Who has the word of a host already, and is not put to the next one. */
  readonly #said = new Map<string, Judged>()

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
      const words = `MTA-STS: the policy of ${this.#domain} does not name ${names.join(", ")}`
      this.#transcript.push(`* ${words}`)
      return this.#finish(ofTrouble(words, NOWHERE), { trouble: words })
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
    if (this.#left) {
      const { fault, ...rest } = this.#left.judged
      const other_way = fault !== undefined && !this.#unproven
      return this.#finish(other_way ? { ...rest, fault } : rest, this.#left.report)
    }
    if (implicit && unreachable instanceof Unroutable && unreachable.subtype === "General") {
      const words = `${this.#domain} has neither a mail server nor an address`
      throw new Unroutable("5.1.2", "NoEmail", words)
    }
    throw unreachable ?? new Unreached(`no mail server of ${this.#domain} could be reached`)
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
    const tls_failed = safety === "opportunistic" && this.#left?.of_tls === true
    if (done || !tls_failed) return done
    this.#transcript.push("* TLS did not work; trying again without TLS")
    this.#left = undefined
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
    let session: SmtpSession | undefined
    try {
      session = await pool.acquire(this.#transcript, { fresh })
      place.tls = session.tls
      const transaction = await session.deliver({ ...this.#mail, to: this.#open })
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
      return this.#weigh(error as Error, place, safety)
    }
  }

  get #open(): string[] {
    return this.#mail.to.filter((email) => !this.#said.has(email))
  }

  /** The end, or one host less: what was said at MAIL or of the message is the domain's word. */
  #weigh(error: Error, place: Place, safety: Safety): DomainAttempt | undefined {
    if (safety === "proven" && isOfTls(error)) this.#unproven = true
    if (error instanceof Unsendable) return this.#finish(ofUnsendable(error, place), "fine")
    if (error instanceof SmtpRefusal) {
      const one = ofReply(error.reply, error.phase, place)
      const report = reportOf([error.reply], error.phase !== "MAIL")
      return isWord(error) ? this.#finish(one, report) : this.#leave(one, report)
    }
    const one = ofTrouble(error.message, place)
    const report: Report = { trouble: error.message }
    // A fault of our own may come at any time, and then the message may be on its way.
    if (!(error instanceof SmtpConnectionError)) return this.#finish(one, report)
    const of_tls = error.kind === "tls"
    return this.#leave(unreached(one), report, of_tls)
  }

  /** The end, or one host less for who has no word yet; never that once the message travelled. */
  #settle(done: Transaction, place: Place): DomainAttempt | undefined {
    for (const [index, email] of this.#open.entries()) {
      const one = wordOf(done, index, place)
      if (one) this.#said.set(email, one)
    }
    const replies = [...done.recipients, done.end].flatMap((one) =>
      one === undefined || one instanceof Unsendable ? [] : [one],
    )
    const lost = done.trouble?.message ?? "the server did not answer"
    const report = done.trouble ? { trouble: lost } : reportOf(replies, false)
    if (done.handed || this.#open.length === 0) return this.#finish(ofTrouble(lost, place), report)
    const closing = replies.find(({ code }) => code === 421)
    const one = closing ? ofReply(closing, "RCPT", place) : unreached(ofTrouble(lost, place))
    return this.#leave(one, report)
  }

  /** The same for everybody who has no word of his own. */
  #finish(one: Judged, report: Report): DomainAttempt {
    return { judged: this.#mail.to.map((email) => this.#said.get(email) ?? one), report }
  }

  #leave(one: Judged, report: Report, of_tls = false): undefined {
    if (!this.#left || one.status === "retry") this.#left = { judged: one, report, of_tls }
  }
}

/** At MAIL it speaks of this message; before that any other host may be in a better mood. */
const isWord = ({ phase, reply }: SmtpRefusal) => phase === "MAIL" && reply.code !== 421

const isOfTls = (error: Error) =>
  (error instanceof SmtpConnectionError && error.kind === "tls") ||
  (error instanceof SmtpRefusal && error.phase === "STARTTLS")

/** A refusal before any message is trouble with the host, one after it mostly is not. */
function reportOf(replies: SmtpReply[], early: boolean): Report {
  const less = replies.find((reply) => asksForLess(reply) || early)
  return less ? { trouble: less.text } : "fine"
}
