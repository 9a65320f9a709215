import { createHash } from "node:crypto"
import type { Blobs } from "../core/blobs"
import { ApiError, Problems } from "../core/errors"
import { newId } from "../core/ids"
import type { Workers } from "../core/workers"
import { NOT_OFFERED, type SendEmail } from "../emails/fields"
import { prepare, type Sender, type SendRules } from "../emails/prepare"
import { prepareBytes } from "../emails/submitted"
import { AlreadyAnswered, type Claim, lookup, requireKeyForm, take } from "../http/idempotency"
import { refuseNotOffered } from "../http/validate"
import type { Caller } from "../identity/caller"
import { comparable, type Mailbox } from "../lib/address"
import { accept, entryOf, type MessageEntry, type SendBatcher } from "../messages/accept"
import {
  readMetadata,
  readTags,
  readTemplateFields,
  type TemplateFields,
} from "../messages/send-body"
import {
  isBlocked,
  readCategory,
  readScheduledAt,
  readSubscriberId,
  subscriberOf,
} from "../messages/send-fields"
import { refuseAllSuppressed } from "../messages/suppressed"
import type { NewMessage } from "../messages/tables"
import type { Store, Tx } from "../store/store"
import { type ReceivedMail, smtpRefusal } from "./mail-session"
import {
  type MailRefusal,
  type MailToRead,
  readSubmitted,
  type SubmittedMail,
} from "./submitted-mail"

export interface SubmitParts {
  store: Store
  blobs: Blobs
  workers: Workers
  intake: SendBatcher
  rules: SendRules
  /** The name of this instance in the `Received` header that it adds. */
  host: string
}

/**
 * Accepts one submitted mail: a message for each recipient, all or none, under one `batch_id`. Resolves
 * with their ids once they are on disk; a repetition within a day gets the ids of the first time.
 */
export async function submit(
  parts: SubmitParts,
  received: ReceivedMail,
  caller: Caller,
): Promise<string[]> {
  const id = newId()
  const { raw, smtputf8, received_at } = received
  const mail = await readMail(parts, { raw, smtputf8, received_at, id, host: parts.host })
  if ("refused" in mail) throw smtpRefusal(554, "5.6.0", "validation_error", mail.refused)
  const { template, ...options } = readOptions(mail)
  const { from, reply_to, idempotency_key } = mail
  const sender = { caller, source: "smtp" as const, batch_id: id, idempotency_key }
  const recipients = recipientsOf(received.to, mail.named)
  if (options.subscriber_id !== null && recipients.length > 1) refuseSeveral()
  const texts = { ...NO_TEXTS, ...template, ...options, from, reply_to }
  const messages = template
    ? await prepareTemplate(texts, recipients, sender, parts)
    : await prepareBytes({ ...mail, ...options }, recipients, sender, parts.rules, parts.blobs)
  const entries = messages.map((message) => submissionEntry(message, caller, mail))
  return untilAnswered(() => enterAll(parts, entries))
}

/** The template takes their place. */
const NO_TEXTS = {
  subject: "",
  html: null,
  text: null,
  headers: {},
  attachments: [],
  cc: [],
  bcc: [],
}

/** Each recipient gets a message of its own, and a subscriber is one person. */
function refuseSeveral(): never {
  const text = "X-Svc-Subscriber-Id needs a mail to one recipient. Send one mail to each recipient."
  throw smtpRefusal(501, "5.5.4", "validation_error", text)
}

/** Larger mail is read in a worker; for smaller mail the way there would cost more. */
const MAX_READ_HERE = 32 * 1024
const READ_DEADLINE_MS = 10_000

async function readMail(
  { workers }: SubmitParts,
  mail: MailToRead,
): Promise<SubmittedMail | MailRefusal> {
  const { raw } = mail
  if (raw.length <= MAX_READ_HERE) return readSubmitted(mail)
  const { buffer } = raw
  const is_own = buffer instanceof ArrayBuffer && buffer.byteLength === raw.byteLength
  const options = { deadline_ms: READ_DEADLINE_MS, transfer: is_own ? [buffer] : [] }
  return workers.run("read-submitted", mail, options)
}

/** Of two that differ, either one may be meant. */
const ONCE = new Set(
  "category subscriber_id scheduled_at template_id variables track_opens track_clicks".split(" "),
)

const TEMPLATE = "X-Svc-Template-Id"
const VARIABLES = "X-Svc-Variables"

const TWICE = "The message has this header more than once. Give it once."

/** What the option headers say. One that cannot be obeyed is a refusal, as in the body of a request. */
function readOptions({ options, idempotency_key, files }: SubmittedMail) {
  const problems = new Problems()
  const given = new Map<string, [name: string, value: string]>()
  const read = <Value>(
    field: string,
    reader: (value: unknown, path: string, problems: Problems) => Value,
  ): Value => {
    const [name, value] = given.get(field) ?? [field, undefined]
    return reader(value, name, problems)
  }
  for (const [name, value] of options.others) {
    const field = name.slice("X-Svc-".length).toLowerCase().replaceAll("-", "_")
    if (given.has(field) && ONCE.has(field)) problems.add(name, "invalid", TWICE)
    if (NOT_OFFERED.includes(field)) refuseNotOffered(name, value, problems)
    given.set(field, [name, value])
  }
  const found = {
    category: read("category", readCategory),
    subscriber_id: read("subscriber_id", readSubscriberId),
    scheduled_at: read("scheduled_at", readScheduledAt),
    track_opens: read("track_opens", readSwitch),
    track_clicks: read("track_clicks", readSwitch),
    template: readTemplate(given, files.length > 0, problems),
    tags: readTags(options.tags, problems),
    metadata: readMetadata(options.metadata, problems),
  }
  try {
    problems.throwIfAny()
    if (idempotency_key !== null) requireKeyForm(idempotency_key)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw smtpRefusal(501, "5.5.4", "validation_error", error.message)
  }
  return found
}
/** `true` or `false`, in any case. */
function readSwitch(value: unknown, name: string, problems: Problems): boolean | null {
  if (value === undefined) return null
  const word = String(value).trim().toLowerCase()
  if (word === "true" || word === "false") return word === "true"
  return problems.add(name, "invalid", "The value must be true or false.") ?? null
}

/** What the headers say of a template (contract 22, section 1); undefined where they say nothing. */
function readTemplate(
  given: Map<string, [name: string, value: string]>,
  has_files: boolean,
  problems: Problems,
): TemplateFields | undefined {
  const [, template_id] = given.get("template_id") ?? []
  const [, text] = given.get("variables") ?? []
  if (template_id === undefined && text === undefined) return undefined
  if (template_id === undefined) {
    problems.add(VARIABLES, "invalid", `${VARIABLES} needs ${TEMPLATE} beside it.`)
  }
  if (has_files) {
    const hint = "The template replaces the whole message. Leave the attachments out."
    problems.add(TEMPLATE, "invalid", hint)
  }
  const variables = text === undefined ? undefined : parsed(text, problems)
  return readTemplateFields({ template_id, variables }, problems)
}

function parsed(value: string, problems: Problems): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return problems.add(VARIABLES, "invalid", "The value must be a JSON object.")
  }
}

/**
 * One message for each recipient, with the texts of the template in the place of the submitted ones. As
 * for submitted bytes, a suppressed recipient beside others fails alone, before its message leaves.
 */
async function prepareTemplate(
  email: Omit<SendEmail, "to">,
  recipients: Mailbox[],
  sender: Sender,
  { rules, blobs }: SubmitParts,
): Promise<NewMessage[]> {
  const messages: NewMessage[] = []
  for (const to of recipients) {
    messages.push(await prepare({ ...email, to }, { ...sender, suppressions: [] }, rules, blobs))
  }
  const of = { project_id: sender.caller.project_id, channel: "email" } as const
  const [first] = messages // a mail to a subscriber has one recipient
  const subscriber = first ? await subscriberOf(rules.read, first) : null
  if (!isBlocked({ subscriber })) await refuseAllSuppressed(rules.read, of, recipients, email)
  return messages
}

/** Each address once, with the name that To or Cc give it. */
function recipientsOf(to: string[], named: Mailbox[]): Mailbox[] {
  const names = new Map(named.map(({ email, name }) => [comparable(email), name]))
  const once = new Map(to.map((email) => [comparable(email), email]))
  return [...once].map(([key, email]) => ({ email, name: names.get(key) ?? null }))
}

interface SubmissionEntry extends MessageEntry {
  claim: Claim | undefined
}

const submissionEntry = (
  message: NewMessage,
  caller: Caller,
  mail: SubmittedMail,
): SubmissionEntry => ({
  ...entryOf(message, caller),
  claim: claimOf(mail, caller, message.address),
})

/**
 * A claim for each recipient: a relay that repeats a mail may put other recipients together, and one
 * with many recipients sends the same mail several times. Some programs give every mail the same Message-ID, so
 * that it is a repetition only with the same content. Without Message-ID and Idempotency-Key a
 * mail says nothing of being a repetition.
 */
function claimOf(
  { idempotency_key, given_message_id, content_hash }: SubmittedMail,
  { project_id, key_id }: Caller,
  recipient: string,
): Claim | undefined {
  const key = idempotency_key ?? given_message_id
  if (key === null) return undefined
  const by_id = ["message-id", key_id, key, content_hash]
  const named = idempotency_key === null ? by_id : ["key", key]
  const digest = createHash("sha256")
    .update(JSON.stringify([...named, recipient]))
    .digest("hex")
  const request = `${project_id} SMTP DATA ${digest}`
  return { request, project_id, key, body_hash: "", status: 201, secrets: undefined }
}

/** So often another session may have been faster with the same mail, or a claim of yesterday is renewed. */
const MOST_TRIES = 3

async function untilAnswered(enter: () => Promise<string[]>): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await enter()
    } catch (error) {
      if (!(error instanceof AlreadyAnswered) || tries === MOST_TRIES) throw error
    }
  }
}

const NEVER = new AbortController().signal

/** One message enters with those of other sessions; several enter together or not at all. */
async function enterAll(parts: SubmitParts, entries: SubmissionEntry[]): Promise<string[]> {
  const { store, intake } = parts
  const [first, ...others] = entries
  if (!first || others.length > 0)
    return store.tx((tx) => enterTogether(tx, entries), first?.message.project_id)
  const { claim, message } = first
  try {
    await intake.submit(first, { claim, signal: NEVER }, () => answerOf(message.id))
    return [message.id]
  } catch (error) {
    if (!(error instanceof AlreadyAnswered)) throw error
    const known = await lookup(store.read, error.claim)
    if (known) return [idOf(known)]
    throw error // the claim knows now that it takes the place of an old one
  }
}

const answerOf = (id: string) => ({ data: { id } })
const idOf = ({ data }: { data: unknown }) => (data as { id: string }).id

async function enterTogether(tx: Tx, entries: SubmissionEntry[]): Promise<string[]> {
  const ids = new Map<SubmissionEntry, string>()
  const fresh: SubmissionEntry[] = []
  for (const entry of entries) {
    const known = entry.claim && (await lookup(tx, entry.claim))
    if (known) ids.set(entry, idOf(known))
    else fresh.push(entry)
  }
  await takeClaims(tx, fresh)
  const answers = fresh.length > 0 ? await accept(tx, fresh, "strict") : []
  for (const [at, answer] of answers.entries()) {
    if (answer instanceof ApiError) throw answer
    const entry = fresh[at]
    if (entry) ids.set(entry, answer.id)
  }
  return entries.map((entry) => ids.get(entry) ?? "")
}

/** In one order everywhere, so that no two transactions wait for each other's rows. */
async function takeClaims(tx: Tx, entries: SubmissionEntry[]) {
  const claims = entries.flatMap(({ claim, message }) => {
    const stored = { status: 201, answer: JSON.stringify(answerOf(message.id)) }
    return claim ? [{ claim, stored }] : []
  })
  claims.sort((one, other) => (one.claim.request < other.claim.request ? -1 : 1))
  const taken = await take(tx, claims)
  const lost = claims.find(({ claim }) => !taken.has(claim.request))
  if (lost) throw new AlreadyAnswered(lost.claim)
}
