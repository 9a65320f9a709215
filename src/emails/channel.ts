import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import { signingKeys } from "../domains/signing"
import { needsSmtputf8 } from "../lib/address"
import { unpack } from "../lib/compression"
import { Turns } from "../lib/permits"
import type { Channel, Ready } from "../messages/channel"
import { isOpen, type Message, OWN_SOURCE } from "../messages/facts"
import { messageRaws, type Recipient } from "../messages/tables"
import { NO_REPLY, type Outcome, outcomeOf } from "../providers/provider"
import { prepared } from "../store/statements"
import type { Reader, Store } from "../store/store"
import { admit, type Pauses, parted, withHeld } from "./admission"
import { compose } from "./compose"
import type { ComposedMail } from "./compose-batches"
import { envelopeSender } from "./envelope-sender"
import { isUncomposable, type MailToCompose } from "./mail-to-compose"
import type { EmailContent, SendRules } from "./prepare"
import type { EmailProvider } from "./providers/provider"
import { repliesOf } from "./reply-to"
import { isSealed, openContent, type SealedContent } from "./sealed"
import { senderObstacle } from "./sender-obstacle"
import { type TellUnsigned, unsignedWarner } from "./unsigned"

export interface EmailChannelParts {
  store: Store
  secrets: Secrets
  workers: Workers
  blobs: Blobs
  provider: EmailProvider
  rules: Pick<SendRules, "sending_domains">
  /** What an operator paused. */
  queues: Pauses
  /** Messages that are delivered at the same time. */
  concurrency: number
  /** For projects in the sandbox; undefined where the embedded mailbox does not run. */
  sandbox: EmailProvider | undefined
}

/** Composes once, keeps the bytes, and hands them to the provider for everybody still open. */
export function emailChannel(parts: EmailChannelParts): Channel {
  const turns = new Turns(parts.concurrency)
  const tellUnsigned = unsignedWarner(parts)
  return {
    async prepare(message, content, attempt) {
      const provider = message.sandbox ? parts.sandbox : parts.provider
      if (provider) await admit(parts.queues, provider, message)
      return rawOf(parts, message, { content: content as Content, attempt, tellUnsigned })
    },
    leave: (message_id) => parts.provider.dismiss?.(message_id),
    turn: () => turns.take(),
    async deliver(message, content) {
      const raw = content as Raw
      const open = message.recipients.filter(({ status }) => isOpen(status))
      const provider = message.sandbox ? parts.sandbox : parts.provider
      if (!provider) return failed(parts.provider, open, NO_SANDBOX)
      const obstacle = await senderObstacle(parts, message, provider.name)
      if (obstacle) return obstacle
      if (!(raw instanceof Uint8Array)) return failed(provider, open, raw.reason)
      const { to, held } = parted(parts.queues, message)
      const outcome = await provider.send({
        message_id: message.id,
        project_id: message.project_id,
        from: message.envelope?.from.email ?? "",
        reports_to: () => envelopeSender(parts.store.read, parts.secrets, message),
        to,
        raw,
        smtputf8: namedInHeader(message).some(needsSmtputf8),
      })
      return withHeld(outcome, held)
    },
  }
}

/** The message, or why there can be none. */
type Raw = Uint8Array | { reason: string }

const NO_SANDBOX = "The sandbox sends to the embedded mailbox, but the mailbox does not run."

type Content = EmailContent | SealedContent

interface Source {
  content: Content
  attempt: number
  tellUnsigned: TellUnsigned
}

/**
 * The bytes of the attempts before, or new ones. These are kept with what comes of them: should that
 * never be written, the next attempt composes the same bytes from the same row. What is sealed is
 * composed at each attempt, since the bytes must not lie open beside it.
 */
async function rawOf(
  { store, secrets, workers, blobs }: EmailChannelParts,
  message: Message,
  { content, attempt, tellUnsigned }: Source,
): Promise<Ready> {
  const sealed = isSealed(content)
  const kept = sealed || attempt === 1 ? undefined : await keptRaw(store, message.id)
  if (kept) return { content: kept }
  const opened = sealed ? openContent(secrets, message.id, content) : content
  const dkim = await signingKeys(store.read, secrets, ownerOf(message), message.sender_domain ?? "")
  await tellUnsigned(message, dkim)
  const made = await composed(workers, { ...composable(message, opened, blobs), dkim })
  if (!("raw" in made)) return { content: made }
  const { raw, packed } = made
  if (sealed) return { content: raw }
  return { content: raw, keep: Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength) }
}

async function keptRaw(store: Store, message_id: string): Promise<Uint8Array | undefined> {
  const [kept] = await findRaw(store.read, { message_id })
  return kept && unpack(kept.raw)
}

/** Whose keys sign it: the instance, which writes in the name of a hidden project, has none there. */
const ownerOf = ({ source, project_id }: Message) => (source === OWN_SOURCE ? null : project_id)

/** A fault of this machine, a file of another node's: thrown, because the job comes again. */
async function composed(
  workers: Workers,
  mail: MailToCompose,
): Promise<ComposedMail | { reason: string }> {
  const { message_id } = mail
  try {
    return await compose(workers, mail)
  } catch (error) {
    if (isUncomposable(error)) {
      log.error("a message could not be composed", { message_id, error })
      return { reason: "The message could not be composed. The log has the reason." }
    }
    if (codeOf(error) === "ENOENT") {
      const where = "storage.blobs.dir must be one folder that all nodes share"
      log.error(`an attachment is not on this node: ${where}`, { message_id, error })
    }
    throw error
  }
}

function composable(
  message: Message,
  { html, text, headers }: EmailContent,
  blobs: Blobs,
): Omit<MailToCompose, "dkim"> {
  const { id, created_at, subject, sender_domain, envelope, recipients } = message
  const named = (kind: Recipient["kind"]) =>
    recipients.filter((one) => one.kind === kind).map(({ email, name }) => ({ email, name }))
  const [to] = named("to")
  if (!envelope || !to) throw new Error("the message has no sender or no recipient")
  return {
    message_id: id,
    domain: sender_domain ?? "",
    created_at,
    from: envelope.from,
    to,
    cc: named("cc"),
    reply_to: repliesOf(envelope),
    subject: subject ?? "",
    text,
    html,
    headers,
    attachments: envelope.attachments.map(({ sha256, filename, content_type, content_id }) => ({
      filename,
      content_type,
      content_id,
      path: blobs.path(sha256),
    })),
  }
}

function failed(provider: EmailProvider, open: Recipient[], reason: string): Outcome {
  const all = open.map(({ email }) => ({
    email,
    status: "failed" as const,
    reason,
    bounce_subtype: null,
    code: "internal_error",
    reply: NO_REPLY,
  }))
  return outcomeOf(all, { provider: provider.name, schedule: provider.schedule })
}

/** Nobody reads of a bcc, so his address is a matter of his own RCPT only. */
function namedInHeader({ envelope, recipients }: Message): string[] {
  const shown = recipients.filter(({ kind }) => kind !== "bcc").map(({ email }) => email)
  const replies = repliesOf(envelope).map(({ email }) => email)
  return [envelope?.from.email, ...replies, ...shown].filter((one) => one !== undefined)
}

const findRaw = prepared({ message_id: messageRaws.message_id }, (db: Reader, slot) =>
  db.select().from(messageRaws).where(eq(messageRaws.message_id, slot.message_id)),
)
