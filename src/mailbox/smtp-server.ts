import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { hostAndPort, type Settings } from "../core/config"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now, sleep } from "../core/time"
import { projects } from "../identity/tables"
import { comparable, MAILBOX_DOMAIN, parseMailbox } from "../lib/address"
import { fieldOf, headerFields } from "../lib/mail-text"
import { isFile, readTree } from "../lib/mail-tree"
import { Semaphore } from "../lib/semaphore"
import { keptForm } from "../messages/contents"
import { messages } from "../messages/tables"
import { openMailServer } from "../smtp/mail-servers"
import { type MailSession, type ReceivedMail, SmtpReplyError } from "../smtp/mail-session"
import type { Store } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { keep, type NewMailboxMail, sealRaw } from "./mailbox"
import {
  chaosOf,
  DEFERRED,
  deferOnce,
  type Mishap,
  mishapOf,
  plan,
  refusalOf,
  roleOf,
} from "./simulator"

const MOST_CLIENTS = 100
const MOST_RECIPIENTS = 1000
/** Our own deliveries keep their connections for the next mail. */
const SILENT_MS = 120_000

interface MailboxOptions extends MailReceiverOptions {
  listen: { host: string; port: number }
}

interface MailboxServer {
  port: number
  isListening(): boolean
  close(): Promise<void>
}

/**
 * The embedded sink: a real SMTP server that keeps what it gets, and answers 250 only once the
 * mail is on disk. Rejects where the port is taken. It listens without login and without TLS, so
 * it belongs on loopback.
 */
export async function openMailbox(options: MailboxOptions): Promise<MailboxServer> {
  const stopping = new AbortController()
  const receiver = new MailReceiver(options, stopping.signal)
  const { port, isListening, close } = await openMailServer({
    kind: "mailbox",
    host: MAILBOX_DOMAIN,
    listen: options.listen,
    certificate: NO_CERTIFICATE,
    limits: {
      size: MAX_MESSAGE_BYTES,
      recipients: MOST_RECIPIENTS,
      connections: MOST_CLIENTS,
      per_address: MOST_CLIENTS,
    },
    deadlines: { command: SILENT_MS },
    trusted_proxies: () => [],
    isReady: () => undefined,
    onSender: async ({ envid }, session) => receiver.begin(session, envid),
    onRecipient: (address, session) => receiver.admit(address, session),
    onMail: (mail, session) => receiver.receive(mail, session),
  })
  return {
    port,
    isListening,
    close() {
      stopping.abort()
      return close(0)
    },
  }
}

const NO_CERTIFICATE = { current: () => undefined, onChange: () => () => true }

interface MailboxGround {
  store: Store
  secrets: Secrets
  blobs: Blobs
  mode: "up" | "serve"
}

/** The share of a node's deliveries that mails may hold by waiting on purpose, where several projects share it. */
const WAITING_SHARE = 4

/** Starts the embedded mailbox where it is wanted; `undo` learns how to stop it. */
export async function startMailbox(
  settings: Settings,
  { store, secrets, blobs, mode }: MailboxGround,
  undo: (() => unknown)[],
) {
  if (!settings["mailbox.enabled"]) return undefined
  const share = Math.max(1, Math.floor(settings["delivery.concurrency"] / WAITING_SHARE))
  let fallback: string | undefined
  const server: MailboxServer = await openMailbox({
    store,
    secrets,
    blobs,
    listen: hostAndPort(settings["mailbox.listen"]),
    fallback_project: async () => {
      fallback ??= (await firstProject(store.read))[0]?.project_id // there may be none yet
      return fallback
    },
    complained: (message_id) => plan(store, message_id),
    most_waiting: mode === "serve" ? share : undefined,
  })
  undo.push(() => server.close())
  return server
}

/** The largest that may be submitted, and room for what is added to it: signatures and a trace. */
const MAX_MESSAGE_BYTES = 15_728_640 + 64 * 1024

const SLOW_MS = 20_000

interface MailReceiverOptions {
  store: Store
  secrets: Secrets
  blobs: Blobs
  /** Where mail goes that is not one of our messages. */
  fallback_project?: (() => string | undefined | Promise<string | undefined>) | undefined
  /** Called once a message to `complain@` is stored. It may run again for a repetition. */
  complained(message_id: string): Promise<void>
  /** How long `slow@` takes, in milliseconds. */
  slow_ms?: number
  /** Mails that wait on purpose at the same time. Further ones are answered at once. Absent: all wait. */
  most_waiting?: number | undefined
}

/** Whose mail it is, and what goes wrong there on purpose. */
type MailOwner = NonNullable<Awaited<ReturnType<typeof ownerOf>>>

/** The message that a session is about. With ENVID it is known before it is seen. */
class AnnouncedMessage {
  readonly id: string
  readonly #find: () => Promise<MailOwner | undefined>
  #owner: Promise<MailOwner | undefined> | undefined
  #delay: Promise<void> | undefined

  constructor(id: string, find: () => Promise<MailOwner | undefined>) {
    this.id = id
    this.#find = find
  }

  /** Asked for once. */
  owner(): Promise<MailOwner | undefined> {
    this.#owner ??= this.#find()
    return this.#owner
  }

  /** The delay that the project wants, once: before the first answer that decides something. */
  delay({ settings }: MailOwner, wait: (ms: number) => Promise<void>): Promise<void> {
    this.#delay ??= wait(chaosOf(settings).delay_ms)
    return this.#delay
  }
}

/** Decides what becomes of a mail that comes to the embedded mailbox, and keeps it. */
class MailReceiver {
  readonly #options: MailReceiverOptions
  readonly #stopping: AbortSignal
  readonly #isFirst = deferOnce()
  readonly #announced = new WeakMap<MailSession, AnnouncedMessage>()
  readonly #waiting: Semaphore

  constructor(options: MailReceiverOptions, stopping: AbortSignal) {
    this.#options = options
    this.#stopping = stopping
    this.#waiting = new Semaphore(options.most_waiting ?? Number.POSITIVE_INFINITY)
  }

  /** A new mail begins, of the message that `envid` names. */
  begin(session: MailSession, envid: string | null | undefined): void {
    if (envid) this.#announced.set(session, this.#messageNamed(envid))
    else this.#announced.delete(session)
  }

  /** The answer to RCPT: throws the refusal. */
  async admit(address: string, session: MailSession): Promise<void> {
    const message = this.#announced.get(session)
    const role = roleOf(address)
    if (role) {
      const deferred = role === "defer" && message && this.#isFirst(`${message.id} ${address}`)
      return refuse(deferred ? DEFERRED : refusalOf(role))
    }
    const owner = await message?.owner()
    if (!message || !owner) return
    const mishap = mishapOf(chaosOf(owner.settings), message.id, comparable(address))
    const refusal = this.#met(mishap, `${message.id} ${address}`)
    if (refusal) await message.delay(owner, this.#wait)
    refuse(refusal)
  }

  /** Answers with the words behind the 250; throws a refusal. */
  async receive(
    { raw, from, to }: Pick<ReceivedMail, "raw" | "from" | "to">,
    session: MailSession,
  ): Promise<string> {
    const roles = to.map(roleOf)
    const mail = describe(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), to, from)
    const announced = this.#announced.get(session)
    // Without ENVID no message is told from another before it is seen, so all recipients are deferred.
    if (!announced && roles.includes("defer") && this.#isFirst(mail.message_id)) throw DEFERRED
    if (roles.includes("slow")) await this.#wait(this.#options.slow_ms ?? SLOW_MS)

    // Of submitted mail the Message-ID is its author's, and several messages may have the same.
    const message = announced ?? this.#messageNamed(mail.message_id)
    const owner = await message.owner()
    if (!owner) throw new SmtpReplyError(550, "5.7.1", "No project here takes this mail")
    await message.delay(owner, this.#wait)
    if (this.#stopping.aborted) throw new SmtpReplyError(421, "4.3.2", "The server is stopping")
    if (!announced) refuse(this.#refusalOfAll(owner, mail))

    const row = await this.#keep(mail, owner)
    const { complained } = this.#options
    if (roles.includes("complain") && row.email_id) await complained(row.email_id)
    return `2.6.0 Kept as ${row.id}`
  }

  /** Each mail that waits holds a delivery of the whole node, so that all of them would stop the others. */
  #wait = async (ms: number): Promise<void> => {
    const leave = ms > 0 ? this.#waiting.tryAcquire() : undefined
    if (!leave) return
    try {
      await sleep(ms, this.#stopping)
    } finally {
      leave()
    }
  }

  #messageNamed = (id: string) => new AnnouncedMessage(id, () => ownerOf(this.#options, id))

  #met(mishap: Mishap | undefined, key: string): SmtpReplyError | undefined {
    if (mishap === "defer") return this.#isFirst(key) ? DEFERRED : undefined
    return refusalOf(mishap)
  }

  /** Of a mail without ENVID: what its first recipient meets counts for all. */
  #refusalOfAll({ settings }: MailOwner, { message_id, to_address }: DescribedMail) {
    const id = message_id || newId()
    return this.#met(mishapOf(chaosOf(settings), id, to_address), id)
  }

  async #keep({ message_id: _, raw, ...mail }: DescribedMail, owner: MailOwner) {
    const { store, secrets, blobs } = this.#options
    const { hidden, envelope, settings: __, ...of } = owner
    const attachments = envelope?.attachments?.length ?? countFiles(raw)
    const id = newId()
    const kept = hidden ? sealRaw(secrets, { id, raw }) : await keptForm(raw, blobs)
    const row: NewMailboxMail = { id, ...of, ...mail, attachments, raw: kept, created_at: now() }
    const is_large = raw.length > MOST_COUNTED_BYTES
    await store.tx((tx) => keep(tx, row), is_large ? of.project_id : undefined)
    return row
  }
}

function refuse(refusal: SmtpReplyError | undefined) {
  if (refusal) throw refusal
}

type DescribedMail = ReturnType<typeof describe>

function describe(raw: Buffer, recipients: string[], mail_from: string) {
  const fields = headerFields(raw)
  const [, id = ""] = /^<([^@<>]*)@[^<>]*>$/.exec(fieldOf(fields, "message-id") ?? "") ?? []
  const from = parseMailbox(fieldOf(fields, "from") ?? "")?.email ?? mail_from
  return {
    message_id: id,
    mail_from,
    recipients,
    to_address: comparable(recipients[0] ?? ""),
    from_address: comparable(from),
    subject: (fieldOf(fields, "subject") ?? "").replaceAll("\0", ""), // Postgres keeps none
    raw,
    size: raw.length,
  }
}

/** Reading the parts of larger mail would hold up everything else, and its row waits behind short transactions. */
const MOST_COUNTED_BYTES = 256 * 1024

/** Of mail that is no message of ours; null where it is too large to be read here. */
const countFiles = (raw: Buffer): number | null =>
  raw.length > MOST_COUNTED_BYTES ? null : readTree(raw).leaves.filter(isFile).length

/** By the id of the message; for mail of strangers the project of the last resort. */
async function ownerOf({ store, fallback_project }: MailReceiverOptions, message_id: string) {
  if (isUuid(message_id)) {
    const { id: email_id, project_id, account_id, envelope } = messages
    const { hidden, settings } = projects
    const columns = { email_id, project_id, account_id, envelope, hidden, settings }
    const [found] = await store.read
      .select(columns)
      .from(messages)
      .innerJoin(projects, eq(projects.id, project_id))
      .where(eq(email_id, message_id))
    if (found) return found
  }
  const project_id = await fallback_project?.()
  if (project_id === undefined) return undefined
  const { account_id, settings } = projects
  const [project] = await store.read
    .select({ account_id, settings })
    .from(projects)
    .where(eq(projects.id, project_id))
  return project && { ...project, project_id, email_id: null, envelope: null, hidden: false }
}
