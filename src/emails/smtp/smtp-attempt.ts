import type { UnsentMail } from "../providers/provider"
import type { DestinationFeedback } from "./destination-limits"
import { isNamed, type KeptPolicy } from "./mta-sts"
import { isRoutingError, isTemporary, type MailRoutes, Unreached, Unroutable } from "./mx"
import {
  type AnsweringServer,
  asksForLess,
  impossible,
  NOWHERE,
  RECEIVER_POLICY,
  type RecipientResult,
  type ReplyPolicy,
  refused,
  replied,
  unanswered,
  unreached,
  unrouted,
  unsendable,
} from "./outcome"
import {
  isTaken,
  MOST_TRANSCRIPT_LINES,
  mistakeIn,
  SmtpRefusal,
  type Transaction,
  Unsendable,
} from "./session"
import type { MailHosts, SmtpClient } from "./smtp-client"
import { isGood, SmtpConnectionError, type SmtpReply } from "./wire"

/** Connections tried for one domain in one attempt, however many hosts it has. */
const MOST_TRIES = 6

interface RefusedTransaction {
  is_at_mail: boolean
  replies: SmtpReply[]
}

export interface SmtpAttemptResult {
  /** One a recipient, in the order of `mail.to`. */
  results: RecipientResult[]
  /** What the per-destination limit learns from it. */
  feedback: DestinationFeedback
  /** The server refused the whole transaction, for whatever reason. */
  refused?: RefusedTransaction | undefined
}

/** The envelope sender, wherever we may choose it: the one place that does. */
export const reportsTo = async ({ from, reports_to }: UnsentMail): Promise<string> =>
  from === "" ? "" : ((await reports_to?.()) ?? from)

/** One attempt at a relay. Rejects with PoolBusy, or without bytes: then there was no attempt. */
export async function attemptRelay(
  { host, client, policy }: { host: string; client: SmtpClient; policy: ReplyPolicy },
  mail: UnsentMail,
  transcript: string[],
): Promise<SmtpAttemptResult> {
  const attempt = new SmtpAttempt(policy, mail, transcript)
  const mistake = await mistakeIn(mail)
  if (mistake) return attempt.finish(impossible(mistake, host), "nothing")
  return (await attempt.ask(host, client)) ?? attempt.end()
}

export interface MailNetwork {
  routes: MailRoutes
  hosts: MailHosts
  policyOf(domain: string): Promise<KeptPolicy | undefined>
}

/**
 * One attempt at the mail servers of a domain (RFC 5321, 5.1), all its recipients in one transaction.
 * The next host is asked while nothing was handed over. Once the message was, its answer or the lack
 * of one is the end. Rejects as `SmtpClient.send` does.
 */
export async function attemptDomain(
  network: MailNetwork,
  domain: string,
  mail: UnsentMail,
  transcript: string[],
): Promise<SmtpAttemptResult> {
  const attempt = new SmtpAttempt(RECEIVER_POLICY, mail, transcript)
  const mistake = await mistakeIn(mail)
  if (mistake) return attempt.finish(impossible(mistake, null), "nothing")
  try {
    return await askHosts(attempt, network, domain)
  } catch (error) {
    if (!isRoutingError(error)) throw error
    attempt.note(error.message)
    const feedback = isTemporary(error) ? { slow_down: error.message } : "nothing"
    return attempt.finish(unrouted(error), feedback)
  }
}

async function askHosts(attempt: SmtpAttempt, network: MailNetwork, domain: string) {
  const { names, implicit } = await network.routes.hostsOf(domain)
  const policy = await network.policyOf(domain)
  const is_enforced = policy?.mode === "enforce"
  const hosts = is_enforced ? names.filter((name) => isNamed(name, policy)) : names
  if (hosts.length === 0) {
    const words = `MTA-STS: the policy of ${domain} does not name ${names.join(", ")}`
    attempt.note(words)
    return attempt.finish(unanswered(words, NOWHERE), { slow_down: words })
  }
  let unreachable: Error | undefined
  for (const host of hosts) {
    try {
      for (const address of await network.routes.addressesOf(host)) {
        if (attempt.tries >= MOST_TRIES) break
        const done = is_enforced
          ? await attempt.ask(host, network.hosts.client(host, address, "proven"))
          : await askWithTlsOrWithout(attempt, network.hosts, host, address)
        if (done) return done
      }
    } catch (error) {
      if (!isRoutingError(error)) throw error
      attempt.note(error.message)
      // What may pass outweighs what will not: another host may be found another time.
      if (!unreachable || isTemporary(error)) unreachable = error
    }
  }
  if (attempt.has_asked) return attempt.end({ is_enforced })
  if (implicit && unreachable instanceof Unroutable && unreachable.subtype === "General") {
    const words = `${domain} has neither a mail server nor an address`
    throw new Unroutable("5.1.2", "NoEmail", words)
  }
  throw unreachable ?? new Unreached(`no mail server of ${domain} could be reached`)
}

/** RFC 7435: mail goes with any certificate rather than without TLS, and without rather than not. */
async function askWithTlsOrWithout(
  attempt: SmtpAttempt,
  hosts: MailHosts,
  host: string,
  address: string,
): Promise<SmtpAttemptResult | undefined> {
  if (hosts.hasTlsFailed(address)) return attempt.ask(host, hosts.client(host, address, "none"))
  const done = await attempt.ask(host, hosts.client(host, address, "opportunistic"))
  if (done || !attempt.forgetTlsFailure()) return done
  attempt.note("TLS did not work; trying again without TLS")
  const plain = await attempt.ask(host, hosts.client(host, address, "none"))
  if (plain) hosts.rememberTlsFailure(address)
  return plain
}

/** What is left to say where no further server does better. */
interface LastResult {
  result: RecipientResult
  feedback: DestinationFeedback
  /** The handshake failed, so the same server may be asked without TLS. */
  is_of_tls: boolean
}

/** One message on its way from server to server. */
class SmtpAttempt {
  tries = 0
  readonly #policy: ReplyPolicy
  readonly #mail: UnsentMail
  readonly #transcript: string[]
  /** The best that the servers so far gave: a refusal that may pass outweighs one for good. */
  #last: LastResult | undefined
  #has_tls_failed = false
  #refused: RefusedTransaction | undefined
  /** Recipients that a server has answered. The next one is not asked for them. */
  readonly #answered = new Map<string, RecipientResult>()

  constructor(policy: ReplyPolicy, mail: UnsentMail, transcript: string[]) {
    this.#policy = policy
    this.#mail = mail
    this.#transcript = transcript
  }

  get has_asked(): boolean {
    return this.#last !== undefined
  }

  note(words: string): void {
    this.#transcript.push(`* ${words}`)
  }

  /** One server, over a new connection if `fresh`. Undefined: the next server may do better. */
  async ask(
    host: string,
    client: SmtpClient,
    { fresh = false } = {},
  ): Promise<SmtpAttemptResult | undefined> {
    this.tries++
    const mail = { ...this.#mail, to: this.#open }
    const { tls, used, transcript, transaction, error } = await client.send(mail, fresh)
    for (const line of transcript) this.#say(line)
    const server: AnsweringServer = { mx: host, tls }
    if (transaction) return this.#settle(transaction, server)
    const failure = error ?? new Error("the mailer gave no answer")
    this.note(failure.message)
    // A server may hang up between two messages, so that was no attempt yet.
    if (!fresh && used > 1 && isHangUp(failure)) return this.ask(host, client, { fresh: true })
    return this.#settleError(failure, server)
  }

  #say(line: string) {
    if (this.#transcript.length < MOST_TRANSCRIPT_LINES) this.#transcript.push(line)
  }

  /** Whether TLS failed at the last server. That counts no more, because it is asked without. */
  forgetTlsFailure(): boolean {
    if (!this.#last?.is_of_tls) return false
    this.#last = undefined
    return true
  }

  /** Every server was asked in vain. */
  end({ is_enforced = false } = {}): SmtpAttemptResult {
    if (!this.#last) throw new Error("no server was asked")
    const { result, feedback } = this.#last
    const { fault, ...rest } = result
    // A policy demands good TLS and did not get it: the message waits and goes no other way.
    const is_bound = is_enforced && this.#has_tls_failed
    return this.finish(fault === undefined || is_bound ? rest : result, feedback)
  }

  /** The result of every recipient that no server has answered. */
  finish(result: RecipientResult, feedback: DestinationFeedback): SmtpAttemptResult {
    const results = this.#mail.to.map((email) => this.#answered.get(email) ?? result)
    return { results, feedback, refused: this.#refused }
  }

  get #open(): string[] {
    return this.#mail.to.filter((email) => !this.#answered.has(email))
  }

  /** What is said at MAIL or of the message is final. A word before that is the server's alone. */
  #settleError(error: Error, server: AnsweringServer): SmtpAttemptResult | undefined {
    this.#has_tls_failed ||= isOfTls(error)
    if (error instanceof Unsendable) return this.finish(unsendable(error, server), "fine")
    if (error instanceof SmtpRefusal) {
      const { phase, reply } = error
      const result = refused(this.#policy, error, server)
      const feedback = feedbackOf([reply], phase !== "MAIL")
      const is_final = phase === "MAIL" && reply.code !== 421
      if (is_final) this.#refused = { is_at_mail: true, replies: [reply] }
      return is_final ? this.finish(result, feedback) : this.#keep(result, feedback)
    }
    // A fault of our own may come at any time, and then the message may be on its way.
    if (!(error instanceof SmtpConnectionError))
      return this.finish(unanswered(error.message, server), "nothing")
    const feedback = { slow_down: error.message }
    return this.#keep(unreached(error.message, server), feedback, error.kind === "tls")
  }

  /** Once the message travelled it is the end. Before that it is for recipients with an answer. */
  #settle(done: Transaction, server: AnsweringServer): SmtpAttemptResult | undefined {
    for (const [index, email] of this.#open.entries()) {
      const result = this.#answerFor(done, index, server)
      if (result) this.#answered.set(email, result)
    }
    const replies = [...done.recipients, done.end].flatMap((one) =>
      one === undefined || one instanceof Unsendable ? [] : [one],
    )
    const refusals = refusalsOf(done)
    if (refusals.length > 0) this.#refused = { is_at_mail: false, replies: refusals }
    const lost = done.failure?.message ?? "the server did not answer"
    const feedback = done.failure ? { slow_down: lost } : feedbackOf(replies, false)
    if (done.handed || this.#open.length === 0) {
      return this.finish(unanswered(lost, server), feedback)
    }
    const closing = replies.find(({ code }) => code === 421)
    const result = closing
      ? replied(this.#policy, closing, "RCPT", server)
      : unreached(lost, server)
    return this.#keep(result, feedback)
  }

  /** Undefined: the connection was lost, or closed (421), before the message began to travel. */
  #answerFor(
    { recipients, end, handed }: Transaction,
    index: number,
    server: AnsweringServer,
  ): RecipientResult | undefined {
    const reply = recipients[index]
    if (reply instanceof Unsendable) return unsendable(reply, server)
    const said = reply && !isGood(reply) ? reply : end
    if (!said || (said.code === 421 && !handed)) return undefined
    if (said !== end) return replied(this.#policy, said, "RCPT", server)
    // One word about all of them names none of them.
    const is_of_one = handed && recipients.filter(isTaken).length === 1
    return replied(this.#policy, said, is_of_one ? "message" : "DATA", server)
  }

  #keep(result: RecipientResult, feedback: DestinationFeedback, is_of_tls = false): undefined {
    if (this.#last && result.status !== "retry") return
    this.#last = { result, feedback, is_of_tls }
  }
}

/** The replies by which the server took the message for no recipient; none where it took it, or was lost. */
function refusalsOf({ recipients, end, failure }: Transaction): SmtpReply[] {
  if (failure) return []
  const replies = recipients.flatMap((one) => (one instanceof Unsendable ? [] : [one]))
  if (!replies.some(isGood)) return replies
  return end && !isGood(end) ? [end] : []
}

const isHangUp = (error: unknown) =>
  (error instanceof SmtpConnectionError && error.kind === "connection") ||
  (error instanceof SmtpRefusal && error.reply.code === 421)

const isOfTls = (error: Error) =>
  (error instanceof SmtpConnectionError && error.kind === "tls") ||
  (error instanceof SmtpRefusal && error.phase === "STARTTLS")

/** A refusal before any message slows the destination down. One after it mostly does not. */
function feedbackOf(replies: SmtpReply[], is_early: boolean): DestinationFeedback {
  const less = replies.find((reply) => asksForLess(reply) || is_early)
  return less ? { slow_down: less.text } : "fine"
}
