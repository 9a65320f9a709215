import type { Blobs } from "../core/blobs"
import { ApiError, fail } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { idOf, isVerified } from "../domains/sending-domains"
import { unavailable } from "../http/envelope"
import type { Caller } from "../identity/caller"
import { comparable, domainOf, isBuiltIn, MAILBOX_DOMAIN, type Mailbox } from "../lib/address"
import type { SharedContent } from "../messages/contents"
import {
  type CategoryFields,
  categoryFields,
  findAudience,
  isBlocked,
  type KnownSubscribers,
} from "../messages/send-fields"
import { leavingOut, refuseSuppressed, suppressionsOf } from "../messages/suppressed"
import type { AttachmentRow, Envelope, NewMessage, Recipient } from "../messages/tables"
import type { Reader } from "../store/store"
import type { SuppressionRow } from "../suppressions/tables"
import { chosenTracking, trackingAtHost } from "../tracking/choice"
import { type AttachmentInput, type FileRules, fetchFiles } from "./attachments"
import type { SendEmail } from "./fields"
import type { EmailContent, SubmittedContent } from "./filed-content"
import * as filed from "./filed-content"
import { needsRendering, type RenderedEmail, type RenderRules, renderEmail } from "./render-email"

/** Decoded attachments, html and text together. */
const MAX_MESSAGE_BYTES = 10_485_760

/** From which senders and to which recipients this instance sends: the configuration as rules. */
export interface SendRules extends RenderRules {
  /** Knows the people of each project, its domains, and the addresses that it sends nothing to. */
  read: Reader
  /** From where attachments that are named by a URL may be fetched. */
  files: FileRules
  /** The first provider that a project configured; null: the instance's own. */
  providerOf: (project_id: string) => string | null | Promise<string | null>
  /** Domains that the operator vouches for, which stands in for verification. */
  sending_domains: Set<string>
  /** Mail goes to the embedded mailbox. */
  to_mailbox: boolean
  /** The mailbox takes mail for every address; under `serve` only for its own domain. */
  mailbox_takes_all: boolean
  /** The embedded mailbox runs, so that projects in the sandbox have somewhere to send to. */
  has_mailbox: boolean
  /** Where answers go to that name the message; undefined where no server takes them. */
  replyAddress?: ((message_id: string) => string) | undefined
}

export interface Sender {
  caller: Caller
  source: "api" | "smtp" | "inbound_reply"
  batch_id: string | null
  idempotency_key: string | null
  /** Of the conversation that the email goes on with. */
  thread_id?: string | null
  /** Those of the recipients' addresses, where they were asked for several messages at once. */
  suppressions?: SuppressionRow[]
  /** The subscribers, where they were looked up for several messages at once. */
  subscribers?: KnownSubscribers | undefined
  /** Aborted when the caller waits for the answer no more. */
  signal?: AbortSignal
}

/**
 * Everything that may be refused or must wait before the transaction: sender, domain, provider,
 * size; then the attachments are put on disk.
 */
export async function prepare(
  email: SendEmail,
  sender: Sender,
  rules: SendRules,
  blobs: Blobs,
): Promise<NewMessage> {
  const { caller, signal, suppressions, subscribers, ...origin } = sender
  const { account_id, project_id, key_id } = caller
  const { default_reply_to, reply_tracking, sandbox } = caller.project_settings
  const audience = await findAudience(rules.read, project_id, email, subscribers)
  const { subscriber, is_endable } = audience
  const from = senderOf(email, caller)
  const recipients = [email.to, ...email.cc, ...email.bcc]
  const own = await requireSendable(rules, caller, domainOf(from.email), recipients)
  const rendered: SendEmail & RenderedEmail = needsRendering(email)
    ? { ...email, ...(await renderEmail(rules, caller, email, audience)) }
    : email
  const of = { project_id, channel: "email" } as const
  const known = suppressions ?? (await suppressionsOf(rules.read, of, () => recipients))
  const suppressed = isBlocked(audience)
    ? new Map()
    : refuseSuppressed(known, email.to, { category: email.category })
  const has_files = email.attachments.length > 0
  const files = has_files
    ? await fetchFiles(email.attachments, { project_id, rules: rules.files, signal })
    : []
  refuseSize(sizeOf(rendered, files))
  const recipient = { project_id, address: email.to.email }
  const replyAddress = reply_tracking ? rules.replyAddress : undefined
  const is_untracked = default_reply_to !== null && !replyAddress
  const fallback = is_untracked ? [{ email: default_reply_to, name: null }] : []
  const { html, text, used, headers, category } = rendered
  const chosen = html ? chosenTracking(rendered, caller) : undefined
  const track = chosen && (await trackingAtHost(chosen, caller, own, rules))
  const message = newEmail({
    ...origin,
    account_id,
    project_id,
    api_key_id: key_id,
    sandbox,
    from,
    to: email.to,
    cc: email.cc,
    bcc: email.bcc,
    subject: rendered.subject,
    tags: email.tags,
    metadata: email.metadata,
    scheduled_at: email.scheduled_at ?? null,
    reply_to: email.reply_to.length > 0 ? email.reply_to : fallback,
    replyAddress,
    kind: {
      ...categoryFields(category, recipient, rules.unsubscribe, is_endable),
      ...(used && { template: used }),
    },
    template_id: used?.id ?? null,
    subscriber_id: subscriber?.id ?? null,
    attachments: has_files ? await store(files, blobs) : [],
    content: await filed.stored({ html, text, headers }, blobs),
    track,
    stream: "transactional",
  })
  return leavingOut(message, suppressed)
}

/** The mailbox in From: the mail's own or the project's. Throws `sender_not_configured`. */
export const senderOf = ({ from }: SendEmail, { project_settings }: Caller): Mailbox =>
  from ??
  project_settings.default_from ??
  fail("sender_not_configured", NO_SENDER, { channel: "email" })

const NO_SENDER =
  "The project has no default sender. Give `from`, or set default_from of the project."

/**
 * The project may send from this domain to these recipients; throws what a send does. Resolves with the domain where it
 * is the project's own, and null where it needs no verification.
 */
export async function requireSendable(
  rules: SendRules,
  caller: Caller,
  domain: string,
  recipients: Mailbox[],
): Promise<string | null> {
  const sendable = await rulesFor(rules, caller.project_id, caller.project_settings.sandbox)
  const is_trusted = isTrusted(domain, sendable)
  if (is_trusted && caller.domain_id === null) refuseUnreachable(recipients, sendable)
  else await refuseUnsendable(caller, domain, recipients, sendable)
  return is_trusted ? null : domain
}

/** The rules of one project: what it configured counts, and the sandbox more than that. */
export function rulesFor(
  rules: SendRules,
  project_id: string,
  sandbox: boolean,
): SendRules | Promise<SendRules> {
  if (sandbox) return inSandbox(rules)
  const provider = rules.providerOf(project_id)
  if (provider instanceof Promise) return provider.then((name) => rulesOf(rules, name))
  return rulesOf(rules, provider)
}

function rulesOf(rules: SendRules, provider: string | null): SendRules {
  if (provider === null) return rules
  const to_mailbox = provider === "mailbox"
  return { ...rules, to_mailbox, mailbox_takes_all: to_mailbox }
}

/** Mail of a project in the sandbox goes to the embedded mailbox; its providers are ignored. */
function inSandbox(rules: SendRules): SendRules {
  if (rules.has_mailbox) return { ...rules, to_mailbox: true, mailbox_takes_all: true }
  const message =
    "The project is in the sandbox, but the embedded mailbox does not run here. Set mailbox.enabled, or leave the sandbox."
  throw unavailable(message, "no_mailbox", 60)
}

type SendingCaller = Pick<Caller, "project_id" | "project_settings" | "domain_id">

/** The domain may be sent from, and something can deliver to every recipient. */
export async function refuseUnsendable(
  caller: SendingCaller,
  domain: string,
  recipients: Mailbox[],
  rules: SendRules,
) {
  if (!isTrusted(domain, rules)) await refuseUnverified(caller, domain, rules)
  if (caller.domain_id !== null) await refuseOtherDomain(caller, domain, rules)
  refuseUnreachable(recipients, rules)
}

/** Without a question to the database. */
const isTrusted = (domain: string, { sending_domains, to_mailbox }: SendRules) =>
  sending_domains.has(domain) || (to_mailbox && isBuiltIn(domain))

/** Whether the project may send from this domain, by the rules of the project (see `rulesFor`). */
export const maySendFrom = async (
  domain: string,
  { project_id, project_settings }: Pick<Caller, "project_id" | "project_settings">,
  rules: SendRules,
): Promise<boolean> =>
  isTrusted(domain, rules) ||
  isVerified(rules.read, project_id, domain, project_settings.allow_subdomains)

async function refuseUnverified(
  { project_id, project_settings }: SendingCaller,
  domain: string,
  { read, to_mailbox }: SendRules,
) {
  if (await isVerified(read, project_id, domain, project_settings.allow_subdomains)) return
  const domain_id = await idOf(read, project_id, domain)
  const hint = to_mailbox ? ` For a first try, send from an address at ${MAILBOX_DOMAIN}.` : ""
  const message = `The domain ${domain} is not verified for sending.${hint}`
  fail("domain_not_verified", message, { domain, domain_id })
}

/** A key that is bound to a domain sends from that name alone, not from below it. */
async function refuseOtherDomain(caller: SendingCaller, domain: string, { read }: SendRules) {
  const own = await idOf(read, caller.project_id, domain)
  if (own !== null && own === caller.domain_id) return
  const message = `This API key may not send from ${domain}, because it is bound to another domain.`
  fail("forbidden", message, { reason: "domain_not_allowed", domain, domain_id: caller.domain_id })
}

/** Nothing is accepted that nothing can deliver. */
function refuseUnreachable(recipients: Mailbox[], rules: SendRules) {
  const outside = recipients.find(({ email }) => !isReachable(email, rules))
  if (!outside) return
  const message = `No provider is configured that can deliver to ${outside.email}. Set delivery.provider, or add a provider to the project.`
  throw unavailable(message, "no_provider", 60)
}

/** Something can deliver to this address, by the rules of its project (see `rulesFor`). */
export const isReachable = (
  email: string,
  { to_mailbox, mailbox_takes_all }: Pick<SendRules, "to_mailbox" | "mailbox_takes_all">,
): boolean => !to_mailbox || mailbox_takes_all || domainOf(email) === MAILBOX_DOMAIN

/** Decoded attachments, html and text together. */
export function sizeOf(
  { html, text }: Pick<SendEmail, "html" | "text">,
  attachments: AttachmentInput[],
): number {
  const bodies = Buffer.byteLength(html ?? "") + Buffer.byteLength(text ?? "")
  return bodies + attachments.reduce((sum, { bytes }) => sum + bytes.length, 0)
}

/** Throws 413 where bodies and files together are too much. */
export function refuseSize(received_bytes: number) {
  if (received_bytes <= MAX_MESSAGE_BYTES) return
  throw new ApiError(
    "payload_too_large",
    `The message has ${received_bytes} bytes, but at most ${MAX_MESSAGE_BYTES} are allowed.`,
    { limit_bytes: MAX_MESSAGE_BYTES, received_bytes },
  )
}

async function store(attachments: AttachmentInput[], blobs: Blobs): Promise<AttachmentRow[]> {
  const rows: AttachmentRow[] = []
  for (const { bytes, ...file } of attachments) {
    rows.push({ id: newId(), ...file, ...(await blobs.put(bytes)) })
  }
  return rows
}

type Derived =
  | "id"
  | "thread_id"
  | "channel"
  | "address"
  | "recipients"
  | "sender"
  | "sender_domain"

type Defaulted = "batch_id" | "idempotency_key" | "api_key_id" | "tags" | "metadata"

/** What an email is made of, beside what follows from it. */
interface NewEmail
  extends Omit<NewMessage, Derived | Defaulted | "envelope" | "rfc_message_id" | "created_at">,
    Partial<Pick<NewMessage, Defaulted>>,
    Partial<Pick<SendEmail, "cc" | "bcc">>,
    Pick<SendEmail, "to" | "reply_to"> {
  from: Mailbox
  attachments?: AttachmentRow[]
  content: EmailContent | filed.FiledContent | SubmittedContent | SharedContent
  submitted?: Envelope["submitted"]
  kind?: CategoryFields & Pick<Envelope, "template" | "decision" | "lasts_seconds">
  track?: Envelope["track"]
  /** As the author gave it; else it is made of the message's own id. */
  rfc_message_id?: string
  /** Of the conversation that the email goes on with. */
  thread_id?: string | null
  /** Where answers go to when `reply_to` is empty. */
  replyAddress?: ((message_id: string) => string) | undefined
}

/**
 * The message as it can be accepted. Its id is made here, and the Message-ID follows from it. Its fields are
 * named one by one, because copies of copies would be most of the garbage of a publish.
 */
export function newEmail(email: NewEmail): NewMessage {
  const { from, attachments = [], submitted, kind, track, replyAddress } = email
  const id = newId()
  const tracked = replyAddress ? [{ email: replyAddress(id), name: null }] : []
  const reply_to = email.reply_to.length > 0 ? email.reply_to : tracked
  const sender_domain = domainOf(from.email)
  return {
    id,
    account_id: email.account_id,
    project_id: email.project_id,
    channel: "email",
    address: comparable(email.to.email),
    sender: comparable(from.email),
    sender_domain,
    subject: email.subject,
    recipients: recipientsOf(email),
    envelope: {
      from,
      reply_to,
      attachments,
      ...(submitted && { submitted }),
      ...(track && { track }),
      ...kind,
    },
    batch_id: email.batch_id ?? null,
    stream: email.stream,
    source: email.source,
    tags: email.tags ?? [],
    metadata: email.metadata ?? {},
    api_key_id: email.api_key_id ?? null,
    idempotency_key: email.idempotency_key ?? null,
    rfc_message_id: email.rfc_message_id ?? `<${id}@${sender_domain}>`,
    thread_id: email.thread_id ?? null,
    sandbox: email.sandbox,
    scheduled_at: email.scheduled_at ?? null,
    template_id: email.template_id ?? null,
    subscriber_id: email.subscriber_id ?? null,
    category: email.category ?? null,
    fan_out_id: email.fan_out_id ?? null,
    content: email.content,
    created_at: now(),
    ...(email.refused && { refused: email.refused }),
  }
}

const NO_COPIES: Mailbox[] = []

/** Each address once, in the most visible place it was named. */
function recipientsOf({ to, cc = NO_COPIES, bcc = NO_COPIES }: NewEmail): Recipient[] {
  if (cc.length === 0 && bcc.length === 0) return [recipientOf(to, "to")]
  const found = new Map<string, Recipient>()
  for (const [kind, mailboxes] of [
    ["to", [to]],
    ["cc", cc],
    ["bcc", bcc],
  ] as const) {
    for (const mailbox of mailboxes) {
      const key = comparable(mailbox.email)
      if (!found.has(key)) found.set(key, recipientOf(mailbox, kind))
    }
  }
  return [...found.values()]
}

const recipientOf = ({ email, name }: Mailbox, kind: Recipient["kind"]): Recipient => ({
  email,
  name,
  kind,
  status: "queued",
  status_reason: null,
})
