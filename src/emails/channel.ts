import { localPartFor } from "../core/mail-token"
import type { Secrets } from "../core/secrets"
import { isVerified, returnPathHost, senderReadiness } from "../domains/sending-domains"
import { type QueuePauses, queueOfDomain } from "../jobs/holds"
import { DeferredError, type Hold, type RetrySchedule } from "../jobs/work-item"
import { domainOf, isBuiltIn, needsSmtputf8 } from "../lib/address"
import { Semaphore } from "../lib/semaphore"
import type { AcceptedMessage } from "../messages/accept"
import type { Channel } from "../messages/channel"
import { asksAudience } from "../messages/send-fields"
import { expiredLife, signInOutcome } from "../messages/short-lived"
import {
  AUTH_SOURCE,
  addressOf,
  isOpen,
  type Message,
  OWN_SOURCE,
} from "../messages/status-changes"
import { audienceObstacle, forOpen, suppressedMeanwhile } from "../messages/suppressed"
import { NO_REPLY, type Outcome, type RecipientOutcome } from "../providers/provider"
import { requireReleased } from "../reputation/gate"
import type { Reader, Store } from "../store/store"
import {
  bytesOf,
  type ComposeParts,
  type ReadyMail,
  unsignedWarner,
  withoutComposing,
} from "./compose-email"
import { MailNotMade } from "./mailer-orders"
import type { SendRules } from "./prepare"
import { handOver } from "./providers/hand-over"
import type { EmailProvider } from "./providers/provider"
import type { NoBytes } from "./shared-email"
import { outcomeOf } from "./smtp/outcome"

export interface EmailChannelParts extends ComposeParts {
  /** What an operator paused. */
  queues: Pick<QueuePauses, "holdOf">
  /** Messages that are delivered at the same time. */
  concurrency: number
  /** For projects in the sandbox; undefined where the embedded mailbox does not run. */
  sandbox: EmailProvider | undefined
}

/** Keeps what makes the bytes of a mail again, and hands them to the provider for every recipient that is open. */
export function emailChannel(parts: EmailChannelParts): Channel {
  const { store, secrets, queues } = parts
  const permits = new Semaphore(parts.concurrency)
  const warnUnsigned = unsignedWarner(parts)
  const providerOf = ({ sandbox }: Message) => (sandbox ? parts.sandbox : parts.provider)
  return {
    /** DeferredError where complaints hold a tag, the domains are paused, or there is no permit. */
    async prepare(message, content, attempt) {
      const { id, stream, source, project_id, sandbox, envelope } = message
      if (!sandbox && source !== AUTH_SOURCE) await requireReleased(store.read, message)
      const { to } = triedNow(queues, message)
      const is_urgent = stream === "auth"
      const only = { config_id: envelope?.released_to }
      await providerOf(message)?.admit?.(id, to, is_urgent, project_id, only)
      return bytesOf(parts, message, { content, attempt, warnUnsigned })
    },
    release: (message_id) => parts.provider.dismiss?.(message_id),
    permit: () => permits.acquire(),
    async deliver(message, content) {
      const ready = content as ReadyMail | NoBytes
      const provider = providerOf(message)
      if (!provider) return withoutBytes(parts.provider, message, { reason: NO_SANDBOX })
      const obstacle = await senderObstacle(parts, message, provider.name)
      if (obstacle) return signInOutcome(message, obstacle, AUTH_SECONDS_APART)
      if ("reason" in ready) return withoutBytes(provider, message, ready)
      const excluded = asksAudience(message)
        ? await audienceObstacle(store.read, message)
        : undefined
      const { name, schedule } = provider
      const over = excluded ?? expiredLife(message)
      if (over) return outcomeOf(over, { provider: name, schedule })
      const stopped = await suppressedMeanwhile(store.read, message)
      const { to, held } = triedNow(queues, without(message, stopped))
      if (to.length === 0) return outcomeOf(stopped, { provider: name, schedule })
      const { raw, signing } = ready
      const sending = handOver(provider, {
        message_id: message.id,
        project_id: message.project_id,
        from: message.envelope?.from?.email ?? "",
        reports_to: () => returnPathOf(store.read, secrets, message),
        to,
        config_id: message.envelope?.released_to,
        raw,
        smtputf8: isWide(message),
        ...(signing && { signing }),
      })
      const outcome = await sending.catch((error) => {
        if (!(error instanceof MailNotMade)) throw error
        return withoutBytes(provider, message, withoutComposing(message.id, error.cause))
      })
      const others = [...outcome.others, ...stopped]
      const whole = stopped.length > 0 ? { ...outcome, others } : outcome
      return withHeld(signInOutcome(message, whole, AUTH_SECONDS_APART), held)
    },
  }
}

/** Codes and links that a server deferred are tried again after so long (contract 20, section 3). */
const AUTH_SECONDS_APART = 30

const NO_SANDBOX = "The sandbox sends to the embedded mailbox, but the mailbox does not run."

/** A busy machine is slow: what took too long is made again at so many attempts before it fails. */
const MOST_LATE_ATTEMPTS = 5

/** In seconds. The age of the message does not count, because no server was asked. */
const LATE_SCHEDULE: RetrySchedule = (attempt) => 5 * attempt

function withoutBytes(
  { name: provider, schedule }: EmailProvider,
  message: Message,
  { reason, code = "internal_error", is_late }: NoBytes,
): Outcome {
  if (is_late && message.attempt < MOST_LATE_ATTEMPTS) {
    const late = forOpen(message, { status: "retry", code: null, reason })
    return outcomeOf(late, { provider, schedule: LATE_SCHEDULE })
  }
  return outcomeOf(forOpen(message, { status: "failed", code, reason }), { provider, schedule })
}

/** What was submitted as bytes was asked when it came. */
const isWide = (message: Message): boolean =>
  message.envelope?.submitted?.wide ?? namedInHeader(message).some(needsSmtputf8)

/** No header names a bcc, so its address is a matter of its own RCPT only. */
function namedInHeader({ envelope, recipients }: Message): string[] {
  const shown = recipients.filter(({ kind }) => kind !== "bcc").map(({ email }) => email)
  const replies = envelope?.reply_to?.map(({ email }) => email) ?? []
  return [envelope?.from?.email, ...replies, ...shown].filter((one) => one !== undefined)
}

/** The message without these recipients; without any, the message itself. */
function without(message: Message, stopped: RecipientOutcome[]): Message {
  if (stopped.length === 0) return message
  const addresses = new Set(stopped.map(({ address }) => address))
  const left = message.recipients.filter((one) => !addresses.has(addressOf(one)))
  return { ...message, recipients: left }
}

/** The operator paused the recipient's domain. */
interface HeldRecipient {
  address: string
  hold: Hold
}

/** The open recipients that may be tried. Throws DeferredError where the operator holds all of them. */
function triedNow(
  queues: EmailChannelParts["queues"],
  message: Message,
): { to: string[]; held: HeldRecipient[] } {
  const to: string[] = []
  const held: HeldRecipient[] = []
  for (const { email: address, status } of message.recipients) {
    if (!isOpen(status)) continue
    const hold = queues.holdOf(queueOfDomain(domainOf(address)))
    if (hold) held.push({ address, hold })
    else to.push(address)
  }
  const [first] = held
  if (to.length === 0 && first) throw new DeferredError(first.hold.reason, null, first.hold.by)
  return { to, held }
}

/** Until held recipients are looked at again, where no other recipient waits. */
const HELD_SECONDS = 60

/** What came of the attempt, with the recipients that were left out of it. */
function withHeld(outcome: Outcome, held: HeldRecipient[]): Outcome {
  if (held.length === 0) return outcome
  const left_out = held.map(({ address, hold: { reason } }): RecipientOutcome => {
    const nothing = { bounce_subtype: null, code: null, reply: NO_REPLY }
    return { address, status: "retry", held: true, reason, ...nothing }
  })
  const is_tried_again = [outcome, ...outcome.others].some(({ status }) => status === "retry")
  const schedule = is_tried_again ? outcome.schedule : () => HELD_SECONDS
  return { ...outcome, others: [...outcome.others, ...left_out], schedule }
}

const MINUTE = 60
const LONGEST_WAIT = 60 * MINUTE

/**
 * Why a message that was accepted may not leave now: its domain lost its records meanwhile, then it
 * waits; or it was deleted, then it fails. Undefined where nothing stands in the way.
 */
export async function senderObstacle(
  { store, rules }: { store: Pick<Store, "read">; rules: Pick<SendRules, "sending_domains"> },
  message: Message,
  provider: string,
): Promise<Outcome | undefined> {
  const { project_id, sender_domain: domain, source } = message
  if (domain === null || source === OWN_SOURCE || isBuiltIn(domain)) return undefined
  if (rules.sending_domains.has(domain)) return undefined
  if (await isVerified(store.read, project_id, domain, true)) return undefined
  const readiness = await senderReadiness(store.read, project_id, domain)
  if (readiness === "verified") return undefined
  const code = "domain_not_verified"
  const reason =
    readiness === "waiting"
      ? `The domain ${domain} lost its DNS records. The message waits until they are back.`
      : `The domain ${domain} is no longer verified.`
  const status = readiness === "waiting" ? "retry" : "failed"
  return outcomeOf(forOpen(message, { status, code, reason }), { provider, schedule })
}

/** Looked at again soon at first, then every hour, for as long as the domain is waited for. */
const schedule: RetrySchedule = (attempt) => Math.min(5 * MINUTE * attempt, LONGEST_WAIT)

/** The address of its own (VERP) for reports about a message; undefined where no host takes any. */
export async function returnPathOf(
  db: Reader,
  secrets: Secrets,
  { id, project_id, sender_domain }: Pick<Message, "id" | "project_id" | "sender_domain">,
): Promise<string | undefined> {
  const own = sender_domain !== null && isBuiltIn(sender_domain) ? null : sender_domain
  const host = await returnPathHost(db, project_id, own)
  return host && `${localPartFor(secrets, "b", id)}@${host}`
}

/** The reply to a send that repeats an earlier one: it names all recipients. */
export function resentReply(message: AcceptedMessage) {
  const { top, data } = reply(message)
  const recipients = message.recipients.map(({ email, kind }) => ({ email, kind }))
  return { top, data: { ...data, recipients } }
}

/** The reply to a send, and what a repetition of the request is answered. */
export function reply(message: AcceptedMessage) {
  const { id, rfc_message_id, recipients, scheduled_at, created_at } = message
  const [to] = recipients
  const data = {
    id,
    status: "queued" as const,
    rfc_message_id: rfc_message_id as string,
    to: { email: to?.email ?? "", name: to?.name ?? null },
    scheduled_at: scheduled_at ?? null,
    created_at,
  }
  return { top: { id }, data }
}
