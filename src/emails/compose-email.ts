import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { ApiError } from "../core/errors"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import { EMAIL_ID_HEADER, emailIdHeader, readLocalPart } from "../core/mail-token"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import { type OpenedKey, signingKeys } from "../domains/keys"
import { DeferredError } from "../jobs/work-item"
import { isBuiltIn } from "../lib/address"
import { textField } from "../lib/mime"
import type { Ready } from "../messages/channel"
import { isShared, type SharedContent } from "../messages/contents"
import { isSealed, openContent } from "../messages/sealed-contents"
import { type Message, OWN_SOURCE, wantedSince } from "../messages/status-changes"
import { messageRaws, type Recipient } from "../messages/tables"
import { firstProvider } from "../providers/routing"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { trackingFor } from "../tracking/choice"
import type { ComposedMail, MailToCompose, MailToMake, MailToSign } from "./compose-task"
import {
  type EmailContent,
  type FiledContent,
  isFiled,
  isSubmitted,
  type SubmittedContent,
} from "./filed-content"
import { mailer } from "./mailer"
import { MailNotMade } from "./mailer-orders"
import type { SendRules } from "./prepare"
import type { EmailProvider, UnsentMail } from "./providers/provider"
import { ChangedBytes, type KeptRecipe, type Recipe, recipeIn, rowOfRecipe } from "./recipe"
import { isRendered, type NoBytes, renderShared, type SharedRules } from "./shared-email"
import { keptBytes, placeOf } from "./submitted"

export interface ComposeParts {
  store: Store
  secrets: Secrets
  workers: Workers
  blobs: Blobs
  /** The instance's own. A project may have another one. */
  provider: EmailProvider
  rules: Pick<SendRules, "sending_domains" | "unsubscribe" | "templates" | "publicAddress">
}

interface ToCompose {
  /** As it is stored: EmailContent, its texts in a file, sealed, or bytes. */
  content: unknown
  attempt: number
  warnUnsigned: UnsignedWarner
}

/**
 * The message as it leaves, composed at each attempt. What makes the same bytes again is kept with the outcome of
 * the first one: should that never be written, the next attempt composes them from the same row. Nothing is kept
 * of what is sealed, since signatures must not lie open beside it.
 */
export async function bytesOf(
  parts: ComposeParts,
  message: Message,
  { content, attempt, warnUnsigned }: ToCompose,
): Promise<Ready & { content: ReadyMail | NoBytes }> {
  const { store, secrets, workers, rules } = parts
  const is_sealed = isSealed(content)
  const is_new = is_sealed || attempt === 1
  const [kept] = is_new ? [] : await findRaw(store.read, { message_id: message.id })
  const dkim = await keysOf({ store, secrets }, message)
  if (kept) {
    const again = await mailAgain(parts, message, content as StoredContent, kept.raw)
    if ("reason" in again) return { content: again }
    const signing = { dkim, created_at: wantedSince(message) }
    if (again instanceof Uint8Array) return { content: { raw: again, signing } }
    return { content: await readied(workers, { ...again, dkim }) }
  }
  const opened = is_sealed ? openContent<SealedEmail>(secrets, message.id, content) : content
  const address = await addressFor(rules, message)
  const mail = await mailOf({ ...parts, address }, message, opened as StoredContent)
  if ("reason" in mail) return { content: mail }
  // Before another wait: the master key may be replaced meanwhile.
  const settings = { mail_host: rules.unsubscribe.mail_host, key_id: secrets.keys.macKeyId() }
  await warnUnsigned(message, dkim)
  const ready = await readied(workers, { ...mail, dkim })
  if (is_sealed || "reason" in ready) return { content: ready }
  const keep = () => {
    const { recipe } = ready.raw instanceof Uint8Array ? ready : ready.raw
    return recipe && rowOfRecipe(recipe, { address, settings })
  }
  return { content: ready, keep }
}

/** A mail that can be sent: small mail is made by the thread that sends it. */
export interface ReadyMail extends Pick<UnsentMail, "raw" | "signing"> {
  /** Of bytes that were made just now. */
  recipe?: Required<Recipe>
}

async function readied(workers: Workers, mail: MailToMake): Promise<ReadyMail | NoBytes> {
  if (isSmall(mail)) return { raw: { mail, recipe: undefined } }
  const made = await composed(workers, mail)
  return "reason" in made ? made : { ...made, signing: mail }
}

/** The content of a mail, as reads find it. */
export type StoredContent = EmailContent | FiledContent | SubmittedContent | SharedContent

/** The bytes that a mail left with, from what is kept of them. Rejects with ChangedBytes where these are not made again. */
export async function bytesAgain(
  parts: SharedParts,
  message: Message,
  content: StoredContent,
  row: Buffer,
): Promise<Uint8Array | NoBytes> {
  const again = await mailAgain(parts, message, content, row)
  if (again instanceof Uint8Array || "reason" in again) return again
  return madeAgain(parts, { ...again, dkim: [] })
}

/** The same before it is composed. Older versions of Belfry kept the bytes themselves. */
async function mailAgain(
  parts: SharedParts,
  message: Message,
  content: StoredContent,
  row: Buffer,
): Promise<Uint8Array | Omit<MailToCompose, "dkim"> | Omit<MailToSign, "dkim"> | NoBytes> {
  const kept = recipeIn(row, isShared(content))
  if (!kept) return keptBytes(message, row, parts.blobs)
  const { address, settings, recipe } = kept
  const secrets = settings ? parts.secrets.keys.macsOf(settings.key_id) : parts.secrets
  if (!secrets) throw new ChangedBytes("the master key of the time when the mail left is not known")
  const rules = rulesThen(parts.rules, kept)
  const mail = await mailOf({ ...parts, secrets, rules, address }, message, content)
  return "reason" in mail ? mail : { ...mail, recipe }
}

async function madeAgain(
  { workers }: SharedParts,
  mail: MailToMake,
): Promise<Uint8Array | NoBytes> {
  const made = await composed(workers, mail)
  return "raw" in made ? made.raw : made
}

/** The links of a mail lead where they led when it left first, whatever the settings say now. */
export const rulesThen = (rules: SharedRules, { settings }: Pick<KeptRecipe, "settings"> = {}) =>
  settings ? { ...rules, unsubscribe: rules.unsubscribe.at(settings.mail_host) } : rules

/** All of a mail but its signatures. */
async function mailOf(
  parts: WritingParts,
  message: Message,
  content: StoredContent,
): Promise<Omit<MailToCompose, "dkim"> | Omit<MailToSign, "dkim"> | NoBytes> {
  if (isSubmitted(content)) return toSign(message, content, parts)
  if (!isShared(content)) return toCompose(withSubject(message, content), content, parts)
  const rendered = await requireRendered(parts, message, content, parts.address)
  return isRendered(rendered) ? toCompose(message, rendered, parts) : rendered
}

/** The subject of the message shows no code, so the real one is sealed with the content. */
export interface SealedEmail extends EmailContent {
  subject?: string
}

const withSubject = (message: Message, content: EmailContent | FiledContent): Message =>
  "subject" in content ? { ...message, subject: content.subject as string } : message

/** Asked only where the mail has links of ours. */
const addressFor = (
  { publicAddress }: Pick<SharedRules, "publicAddress">,
  { project_id, sender_domain, envelope }: Message,
) =>
  envelope?.track || envelope?.unsubscribe
    ? publicAddress(project_id, sender_domain)
    : Promise.resolve(undefined)

export type SharedParts = Pick<ComposeParts, "secrets" | "workers" | "blobs"> & {
  rules: SharedRules
}

/** What of a sign-in mail may be shown, as a message. */
export const shownAgain = (parts: SharedParts, message: Message, content: EmailContent) =>
  madeAgain(parts, { ...toCompose(message, content, { ...parts, address: undefined }), dkim: [] })

/** The message waits while too many templates do. */
async function requireRendered(
  { rules }: Pick<SharedParts, "rules">,
  message: Message,
  content: SharedContent,
  address: string | undefined,
) {
  try {
    return await renderShared(rules, message, content, address)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new DeferredError(error.message, 1)
  }
}

/**
 * The instance, which writes in the name of a hidden project, has no keys there. The domain of the embedded mailbox is
 * everybody's, so nobody has keys for it.
 */
async function keysOf(
  { store, secrets }: Pick<ComposeParts, "store" | "secrets">,
  { source, project_id, sender_domain: domain }: Message,
): Promise<OpenedKey[]> {
  if (domain === null || isBuiltIn(domain)) return []
  return signingKeys(store.read, secrets, source === OWN_SOURCE ? null : project_id, domain)
}

/** What is kept of a mail that left; an empty list for any other. */
export const findRaw = prepared({ message_id: messageRaws.message_id }, (db: Reader, slot) =>
  db.select().from(messageRaws).where(eq(messageRaws.message_id, slot.message_id)),
)

function toSign(
  message: Message,
  content: SubmittedContent,
  { secrets, blobs, rules, address }: WritingParts,
): Omit<MailToSign, "dkim"> {
  const { id, envelope } = message
  return {
    message_id: id,
    created_at: wantedSince(message),
    bytes: placeOf(message, content, blobs),
    track: envelope?.track && trackingFor(secrets, id, envelope.track, {}, address),
    fields: [
      `${EMAIL_ID_HEADER}: ${emailIdHeader(secrets, id)}\r\n`,
      trackedReplies(secrets, message),
      ...Object.entries(unsubscribeFields(message, rules, address)).map(([name, value]) =>
        textField(name, value),
      ),
    ].join(""),
  }
}

type WritingParts = Pick<SharedParts, "blobs" | "rules"> & {
  secrets: Pick<Secrets, "mac">
  /** The public address of this server, for this mail. */
  address: string | undefined
}

/** None on mail without a category. */
function unsubscribeFields(
  { envelope }: Message,
  { unsubscribe }: Pick<SharedRules, "unsubscribe">,
  address: string | undefined,
) {
  const token = envelope?.unsubscribe
  return token === undefined ? {} : unsubscribe.headersOf(token, address)
}

/** What was submitted has no Reply-To then: the address was made for the message. */
function trackedReplies(secrets: Pick<Secrets, "mac">, { id, envelope }: Message): string {
  const [first] = envelope?.reply_to ?? []
  const token = first && readLocalPart(secrets, first.email.split("@", 1)[0] ?? "")
  const made = token?.kind === "r" && token.message_id === id ? first : undefined
  return made ? `Reply-To: ${made.email}\r\n` : ""
}

function toCompose(
  message: Message,
  content: EmailContent | FiledContent,
  { secrets, blobs, rules, address }: WritingParts,
): Omit<MailToCompose, "dkim"> {
  const { id, subject, sender_domain, envelope, recipients } = message
  const { headers } = content
  const texts = isFiled(content)
    ? { html: null, text: null, texts_path: blobs.path(content.file) }
    : { html: content.html, text: content.text }
  const [to] = named(recipients, "to")
  const { from, reply_to = [], attachments = [] } = envelope ?? {}
  if (!envelope || !from || !to) throw new Error("the message has no sender or no recipient")
  return {
    message_id: id,
    domain: sender_domain ?? "",
    created_at: wantedSince(message),
    from,
    to,
    cc: named(recipients, "cc"),
    reply_to,
    subject: subject ?? "",
    ...texts,
    track: envelope.track && trackingFor(secrets, id, envelope.track, headers, address),
    headers: {
      ...withoutMark(headers),
      [EMAIL_ID_HEADER]: emailIdHeader(secrets, id),
      ...unsubscribeFields(message, rules, address),
    },
    attachments: attachments.map(({ sha256, filename, content_type, content_id }) => ({
      filename,
      content_type,
      content_id,
      path: blobs.path(sha256),
    })),
  }
}

/** Only we say which message it is. */
const withoutMark = (headers: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => name.toLowerCase() !== EMAIL_ID_HEADER.toLowerCase(),
    ),
  )

/** The recipients of one kind, as mailboxes. */
export const named = (recipients: Recipient[], kind: Recipient["kind"]) =>
  recipients.filter((one) => one.kind === kind).map(({ email, name }) => ({ email, name }))

/** Throws for a fault of this machine or a file of another node, because the job comes again. */
async function composed(workers: Workers, mail: MailToMake): Promise<ComposedMail | NoBytes> {
  try {
    return await compose(workers, mail)
  } catch (error) {
    return withoutComposing(mail.message_id, error)
  }
}

/** Why a mail has no bytes. Throws as `composed`. */
export function withoutComposing(message_id: string, error: unknown): NoBytes {
  if (isUncomposable(error)) {
    log.error("a message could not be composed", { message_id, error })
    return { reason: "The message could not be composed. The log has the reason." }
  }
  if (codeOf(error) === "ENOENT") {
    const where = "storage.blobs.dir must be one folder that all nodes share"
    log.error(`a file of the message is not on this node: ${where}`, { message_id, error })
  }
  throw error
}

export const isUncomposable = (error: unknown) =>
  error instanceof Error && error.name === "Uncomposable"

/** Long enough for 10 MB of attachments on a slow machine, short enough not to hold a worker. */
const COMPOSE_DEADLINE_MS = 10_000

/**
 * The message as it is stored, counted and sent: CRLF, no bare CR, LF or NUL, and the same bytes
 * every time, because boundary, date, Message-ID and time of signing come from the message's own
 * row. Rejects with WorkerTimeout after ten seconds, with Uncomposable where the input cannot
 * become a message, and with the original error otherwise (a missing file has the code ENOENT).
 */
export async function compose(workers: Workers, mail: MailToMake): Promise<ComposedMail> {
  if (!isSmall(mail))
    return workers.run<ComposedMail>("compose", mail, { deadline_ms: COMPOSE_DEADLINE_MS })
  return mailer.make(mail).catch((error) => {
    throw error instanceof MailNotMade ? error.cause : error
  })
}

/** Characters of text and html. Larger mail, and mail with files, would hold the connections of the mailer. */
const MAX_SMALL = 64 * 1024

/** Whether a mail is so small that the way to a thread counts. */
function isSmall(mail: MailToMake): boolean {
  if ("bytes" in mail) return mail.bytes.length <= MAX_SMALL && typeof mail.bytes !== "string"
  const { html, text, texts_path, attachments } = mail
  if (texts_path !== undefined) return false
  return attachments.length === 0 && (html?.length ?? 0) + (text?.length ?? 0) <= MAX_SMALL
}

/** Tells the log of a message that is composed with these keys. */
type UnsignedWarner = (message: Message, keys: OpenedKey[]) => Promise<void>

/**
 * The operator's word lets mail of `sending_domains` out without DNS, and so without a key that signs
 * it. Many receivers call that spam, so the log says it, once for each domain until the next start.
 * Mail to the embedded mailbox reaches no receiver, so it needs no warning.
 */
export function unsignedWarner({ store, provider, rules }: ComposeParts): UnsignedWarner {
  const told = new Set<string>()
  return async ({ sender_domain: domain, project_id, sandbox }, keys) => {
    if (keys.length > 0 || sandbox || domain === null || told.has(domain)) return
    if (!rules.sending_domains.has(domain)) return
    const delivering =
      (await firstProvider(store.read, "email_provider", project_id)) ?? provider.name
    if (delivering === "mailbox" || told.has(domain)) return
    told.add(domain)
    log.warn(UNSIGNED, { domain, next: `belfry domains add ${domain}` })
  }
}

const UNSIGNED =
  "Belfry sends mail from this domain without a DKIM signature. sending_domains allows the domain, but no verified " +
  "domain has a key for it. Add the domain and its DNS records."
