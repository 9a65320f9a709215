import type { Blobs } from "../core/blobs"
import { ApiError, conflict, fail, type Problems } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import type { Workers } from "../core/workers"
import { readResend } from "../emails/fields"
import { isSubmitted } from "../emails/filed-content"
import { requireSendable, type Sender, type SendRules } from "../emails/prepare"
import { NO_COPIES, SHOWN_MASKED } from "../emails/resend-email"
import { prepareBytes, renamed } from "../emails/submitted"
import { unavailable } from "../http/envelope"
import type { Caller } from "../identity/caller"
import { comparable, domainOf, type Mailbox } from "../lib/address"
import { lookupIn } from "../messages/message-list"
import { AUTH_SOURCE } from "../messages/status-changes"
import type { NewMessage } from "../messages/tables"
import * as configs from "../providers/configs"
import { isOwn, routing } from "../providers/routing"
import type { ConfigRow } from "../providers/tables"
import type { MailRefusal, MailToRead, SubmittedMail } from "../smtp/submitted-mail"
import type { Reader, Store } from "../store/store"
import { find, type MailboxMail } from "./mailbox"

const EMAIL = "email_provider" as const
const READ_DEADLINE_MS = 10_000

export interface ReleaseParts {
  store: Store
  blobs: Blobs
  workers: Workers
  rules: SendRules
}

export interface ReleaseWish {
  to: Mailbox | undefined
  /** The id of a configuration. */
  provider: string | undefined
}

/** Reads the body of a release. */
export function readRelease(body: unknown, problems: Problems): ReleaseWish {
  const { to } = readResend(body, problems)
  const provider = (body as { provider?: unknown } | null)?.provider ?? undefined
  if (provider === undefined || typeof provider === "string") return { to, provider }
  problems.add("provider", "invalid", "The value must be the id of a provider configuration.")
  return { to, provider: undefined }
}

/** The caller of a release: a sandbox holds back what is sent, not what is released from it. */
export const releasing = (caller: Caller): Caller => ({
  ...caller,
  project_settings: { ...caller.project_settings, sandbox: false },
})

/**
 * A caught mail as a message for a real provider: its bytes as they stand, under a Message-ID and a
 * signature of their own. Throws as a send does; `not_found` for the mail and the provider, and 503
 * `no_provider` where the project has no other provider than the mailbox.
 */
export async function release(
  parts: ReleaseParts,
  mail_id: string,
  wish: ReleaseWish,
  sender: Pick<Sender, "caller" | "idempotency_key" | "signal">,
): Promise<NewMessage> {
  const { store, blobs, workers, rules } = parts
  const { project_id } = sender.caller
  const mail = await find(parts, project_id, mail_id)
  await requireCopyable(store.read, mail)
  const config = await realProvider(store.read, project_id, wish.provider)
  const read = await readWhole(workers, mail)
  const email = {
    ...{ ...read, has_html: false, category: null, tags: [], metadata: {} },
    ...{ track_opens: false, track_clicks: false },
  }
  const to = wish.to ?? recipientOf(mail, read)
  const there: SendRules = { ...rules, providerOf: async () => config.provider }
  const origin = { source: "api", batch_id: null } as const
  const [message] = await prepareBytes(email, [to], { ...sender, ...origin }, there, blobs)
  if (!message || !isSubmitted(message.content)) throw new Error("a release made no message")
  const rfc_message_id = `<${message.id}@${message.sender_domain}>`
  const stored = await renamed(message, message.content, rfc_message_id, blobs)
  const pinned = isOwn([config]) ? {} : { released_to: config.id }
  const { envelope } = message
  return {
    ...message,
    rfc_message_id,
    content: stored.content,
    envelope: envelope && { ...envelope, ...pinned, submitted: stored.submitted },
  }
}

/** What is released is an email like any other, whose reads show what it says. */
async function requireCopyable(
  db: Reader,
  { project_id, email_id }: Pick<MailboxMail, "project_id" | "email_id">,
): Promise<void> {
  const email = email_id && (await lookupIn(db, { project_id, channel: "email" }, email_id))
  if (email && email.source === AUTH_SOURCE) conflict(SHOWN_MASKED, email.id, NO_COPIES)
}

/**
 * Why a release of a mail with this sender would be refused for any recipient: `no_provider`, or the code of the error.
 * Null where nothing speaks against it.
 */
export async function releaseRefusal(
  { store, rules }: Pick<ReleaseParts, "store" | "rules">,
  caller: Caller,
  mail: Pick<MailboxMail, "project_id" | "email_id" | "from_address">,
): Promise<string | null> {
  try {
    await requireCopyable(store.read, mail)
    const { provider } = await realProvider(store.read, caller.project_id, undefined)
    const there: SendRules = { ...rules, providerOf: async () => provider }
    await requireSendable(there, releasing(caller), domainOf(mail.from_address), [])
    return null
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.code === "service_unavailable" ? "no_provider" : error.code
  }
}

/** The one that is wanted, or the first that is no mailbox. */
async function realProvider(
  db: Reader,
  project_id: string,
  wanted: string | undefined,
): Promise<ConfigRow> {
  if (wanted !== undefined) {
    const row = await configs.find(db, project_id, { kind: EMAIL, id: wanted })
    if (row.enabled && row.provider !== "mailbox") return row
    const why = row.enabled ? "is the embedded mailbox" : "is not enabled"
    return fail("not_found", `The provider ${row.name} ${why}. Name another one.`)
  }
  const rows = await routing(db, EMAIL, project_id)
  const found = rows.find(({ provider }) => provider !== "mailbox")
  if (found) return found
  const message =
    "This project has no provider but the embedded mailbox. Set delivery.provider to a relay, or add one with `belfry providers set smtp`."
  throw unavailable(message, "no_provider", 60)
}

/** What the bytes say. Fields that only the first delivery needed are taken out. */
async function readWhole(workers: Workers, { raw }: MailboxMail): Promise<SubmittedMail> {
  const about = { id: newId(), host: "localhost", received_at: now() }
  const mail: MailToRead = { raw: new Uint8Array(raw), smtputf8: true, ...about }
  const options = { deadline_ms: READ_DEADLINE_MS }
  const read = await workers.run<SubmittedMail | MailRefusal>("read-submitted", mail, options)
  if ("refused" in read) return fail("validation_error", read.refused)
  return { ...read, raw: withoutTrace(read.raw) }
}

/** The field `Received` that reading adds: the mail was not submitted here. */
function withoutTrace(raw: Uint8Array): Uint8Array {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const [trace = ""] =
    /^Received:.*\r\n(?:[ \t].*\r\n)*/i.exec(bytes.toString("latin1", 0, 1024)) ?? []
  return bytes.subarray(trace.length)
}

/** Under the name that the header gives. */
function recipientOf({ to_address, recipients }: MailboxMail, { named }: SubmittedMail): Mailbox {
  const email = recipients[0] ?? to_address
  const name = named.find((one) => comparable(one.email) === comparable(email))?.name ?? null
  return { email, name }
}
