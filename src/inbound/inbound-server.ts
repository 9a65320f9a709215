import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { faultOf } from "../core/faults"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { EMAIL_ID_HEADER, readEmailIdHeader, readLocalPart } from "../core/mail-token"
import type { Secrets } from "../core/secrets"
import { millis } from "../core/time"
import { RateWindows } from "../http/rate-limits"
import { accounts, projects } from "../identity/tables"
import { enqueueAll } from "../jobs/jobs"
import { PRIORITIES } from "../jobs/work-item"
import { comparable, domainOf } from "../lib/address"
import { subscriberOf } from "../lib/ip-ranges"
import { limitsOf } from "../plans/plans"
import { MB, storedTotal } from "../plans/stored-bytes"
import {
  type MailServerOptions,
  type MailSession,
  type ReceivedMail,
  refusalText,
  SmtpReplyError,
} from "../smtp/mail-session"
import { Batcher } from "../store/batcher"
import { cached } from "../store/cached"
import { inserter } from "../store/statements"
import type { Reader, Store, Tx } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { notifyOfShare, passedShare } from "../tenancy/stored-share"
import {
  type AddressParts,
  type InboundTarget,
  inboundTarget,
  isProof,
  isReportAddress,
} from "./addresses"
import { arrivedMailsOf, inboundProcess } from "./arrived-mail"
import { keepRaw, type StoredRaw } from "./raw-mail"
import { type InboundRow, inboundEmails, inboundFiles, inboundRaws } from "./tables"
import { dmarcRefusal, type VerdictTools, verify } from "./verdicts"
import type { MailVerdicts } from "./verify-task"

export interface InboundServerParts extends Omit<AddressParts, "read"> {
  store: Store
  inbound_blobs: Blobs
  verdicts: VerdictTools
  /** Whether mail is refused that fails DMARC, where its domain asks for that. */
  enforces_dmarc: () => boolean
  /** What one delivering address may store in an hour. */
  bytes_per_hour: () => number
}

/** Mails of one transaction: those that come at the same time. */
const MOST_AT_ONCE = 50

type Handlers = Pick<MailServerOptions, "onSender" | "onRecipient" | "onMail">

/**
 * What the mail server on port 25 asks: which recipients it takes, and a whole mail, which is on disk
 * with a row for each recipient and the job that reads it before the client is told 250.
 */
export function inboundHandlers(parts: InboundServerParts): Handlers {
  const { store, secrets, hosts, own_domain } = parts
  const addresses: AddressParts = { read: store.read, secrets, hosts, own_domain }
  const arrivals = new Batcher({ store, most: MOST_AT_ONCE, write: writeAll })
  const shares = new DeliveringShares(parts.bytes_per_hour)
  /** What MAIL FROM declared, of each session. */
  const declared = new WeakMap<MailSession, number>()
  return {
    async onSender({ size = 0 }, session) {
      declared.set(session, size)
    },
    async onRecipient(address, session) {
      const target = await inboundTarget(addresses, address)
      if ("enhanced" in target) throw refused(target.enhanced, target.text)
      if (!isProof(target)) await requireSpace(store, target.owner?.project_id)
      const size = declared.get(session) ?? 0
      if (isProof(target) || shares.hasRoom(session.address, costOf(size, 1))) return
      // It may be a complaint: what it quotes decides when it is here.
      if (isReportAddress(address) && size <= MOST_REPORT_BYTES) return
      throw shares.refusal(session.address)
    },
    async onMail(mail, session) {
      const found = await targetsOf(addresses, mail.to)
      const { address } = session
      const strangers = found.filter(({ target }) => !isProof(target))
      const is_proven =
        strangers.length < found.length ||
        (found.some((one) => isReportAddress(one.address)) && quotesProof(secrets, mail.raw))
      const cost = strangers.length === 0 ? 0 : costOf(mail.raw.length, strangers.length)
      if (!is_proven && !shares.hasRoom(address, cost)) throw shares.refusal(address)
      shares.count(address, cost)
      try {
        const verdicts = parts.enforces_dmarc() ? await verified(parts, mail, session) : undefined
        const trace = traceOf(mail, session, hosts[0] ?? "")
        const ids = await kept(async () => {
          const stored = await keepRaw(parts.inbound_blobs, [trace, mail.raw], found.length)
          const rows = rowsOf({ mail, session, found, verdicts, stored })
          return arrivals.add({ rows, raw: stored.raw, is_proven })
        })
        return `2.0.0 Ok: queued as ${ids.join(" ")}`
      } catch (error) {
        shares.count(address, -cost)
        throw error
      }
    },
  }
}

const refused = (enhanced: string, text: string) =>
  new SmtpReplyError(
    550,
    enhanced,
    refusalText(enhanced === "5.1.1" ? "not_found" : "forbidden", text),
  )

interface TakenRecipient {
  address: string
  target: InboundTarget
}

/** Asked again: a domain may have been deleted since RCPT. */
async function targetsOf(parts: AddressParts, to: string[]): Promise<TakenRecipient[]> {
  const taken = new Map<string, TakenRecipient>()
  for (const address of to) {
    const target = await inboundTarget(parts, address)
    if (!("enhanced" in target)) taken.set(comparable(address), { address, target })
  }
  if (taken.size === 0) throw refused("5.7.1", "None of the recipients takes mail any more.")
  return [...taken.values()]
}

async function verified(
  { verdicts: tools }: InboundServerParts,
  { raw, from: mail_from, received_at }: ReceivedMail,
  { address, helo }: MailSession,
): Promise<MailVerdicts> {
  const verdicts = await verify(raw, { address, helo, mail_from, received_at }, tools)
  const refusal = dmarcRefusal(verdicts)
  if (refusal !== undefined) throw refused("5.7.1", refusal)
  return verdicts
}

/** What a server that delivers puts in front of a mail (RFC 5321, 4.4). */
function traceOf(mail: ReceivedMail, session: MailSession, host: string): Uint8Array {
  const { from, smtputf8, received_at } = mail
  const helo = session.helo.replace(/[^A-Za-z0-9.:[\]_-]/g, "?").slice(0, MOST_HELO) || "unknown"
  const protocol = `${smtputf8 ? "UTF8SMTP" : "ESMTP"}${session.tls ? "S" : ""}`
  const { version, cipher } = session.tls ?? { version: "", cipher: "" }
  const tls = session.tls ? `\r\n\t(${version} ${cipher})` : ""
  const date = new Date(received_at).toUTCString().replace("GMT", "+0000")
  const lines = [
    `Return-Path: <${from}>`,
    `Received: from ${helo} ([${session.address}])\r\n\tby ${host} with ${protocol}${tls}\r\n\tid ${session.id}; ${date}`,
  ]
  return Buffer.from(`${lines.join("\r\n")}\r\n`)
}

const MOST_HELO = 255

interface Arrival {
  mail: ReceivedMail
  session: MailSession
  found: TakenRecipient[]
  verdicts: MailVerdicts | undefined
  stored: StoredRaw
}

/**
 * One row for each recipient. The ids say that they belong together: one job reads them all. A row
 * names the recipients of its own project only, so no project learns the addresses of others.
 */
function rowsOf({ mail, session, found, verdicts, stored }: Arrival): InboundRow[] {
  const { address, helo, tls } = session
  const of_project = Map.groupBy(found, ({ target }) => target.owner?.project_id ?? "")
  return found.map(({ address: recipient, target }) => ({
    id: newId(),
    account_id: target.owner?.account_id ?? "",
    project_id: target.owner?.project_id ?? "",
    domain: domainOf(recipient),
    to_email: comparable(recipient),
    from_email: null,
    from_name: null,
    subject: null,
    rfc_message_id: null,
    kind: "new",
    status: "received",
    thread_id: null,
    in_reply_to: null,
    replied_to_message_id: null,
    mailbox_hash: null,
    auto_submitted: null,
    verified: verdicts?.verified ?? null,
    spf_verdict: verdicts?.spf ?? null,
    dkim_verdict: verdicts?.dkim ?? null,
    dmarc_verdict: verdicts?.dmarc ?? null,
    arc_verdict: verdicts?.arc ?? null,
    parse_error: false,
    size: stored.size,
    stored_bytes: partOf(stored, of_project.get(target.owner?.project_id ?? "")?.length ?? 1),
    raw_sha256: stored.raw_sha256,
    session: {
      ...{ address, helo, mail_from: mail.from, tls },
      to: (of_project.get(target.owner?.project_id ?? "") ?? []).map((one) => one.address),
    },
    parsed: null,
    route_id: null,
    event_id: null,
    created_at: mail.received_at,
  }))
}

/** In rows each recipient has the mail of its own. A file counts once in each project, in equal parts. */
const partOf = ({ size, raw }: StoredRaw, rows: number): number =>
  raw === null ? Math.ceil(size / rows) : size

interface NewMail {
  rows: InboundRow[]
  /** Null where a file has it. */
  raw: Buffer | null
  /** It came to an address with a MAC, or quotes one. */
  is_proven: boolean
}

/** Several mails at once, each whole. Answers with the ids of each. */
async function writeAll(tx: Tx, list: NewMail[]): Promise<string[][]> {
  const rows = list.flatMap((mail) => mail.rows)
  await insertEmails(tx, rows)
  await insertRaws(tx, list.flatMap(rawsOf))
  const files = rows.filter(({ raw_sha256 }) => raw_sha256 !== "")
  await insertFiles(
    tx,
    files.map(({ id, raw_sha256 }) => ({ sha256: raw_sha256, inbound_id: id })),
  )
  const ids = list.map((mail) => mail.rows.map(({ id }) => id))
  tx.afterCommit(() => {
    const arrived = arrivedMailsOf(tx)
    for (const { rows, raw } of list) if (raw !== null) arrived.keep({ rows, raw })
  })
  await enqueueAll(
    tx,
    inboundProcess,
    // Strangers decide how much of it there is: what the instance needs itself goes first, and so do reports,
    // unsubscribes and answers to mail of ours.
    list.map(({ is_proven }, at) => ({
      payload: { ids: ids[at] ?? [] },
      project_id: null,
      priority: is_proven ? PRIORITIES.normal : PRIORITIES.bulk,
    })),
  )
  return ids
}

const rawsOf = ({ rows, raw }: NewMail) =>
  raw === null ? [] : rows.map(({ id }) => ({ inbound_id: id, raw }))

const insertEmails = inserter(inboundEmails)
const insertRaws = inserter(inboundRaws)
const insertFiles = inserter(inboundFiles)

/** A storage that does not write is a reason to come back, and no fault of the mail. */
async function kept<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!faultOf(error)) throw error
    log.warn("a mail was not taken, because the storage does not write", { error })
    const text = refusalText("service_unavailable", "The storage takes nothing at the moment.")
    throw new SmtpReplyError(452, "4.3.1", text)
  }
}

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

/** What each recipient costs beside the mail: a row, an event, its part of a job. */
const RECIPIENT_BYTES = 2048

/** The bytes that one mail takes from the share of the address that delivers it. */
const costOf = (size: number, recipients: number): number => size + recipients * RECIPIENT_BYTES

/**
 * What each delivering address may store in an hour of the clock (setting `inbound.mb_per_hour`), so that
 * no stranger fills the disk alone. An IPv6 address counts with its /64. Each node counts for itself.
 */
class DeliveringShares {
  readonly #windows = new RateWindows(HOUR_MS)
  readonly #bytes_per_hour: () => number

  constructor(bytes_per_hour: () => number) {
    this.#bytes_per_hour = bytes_per_hour
  }

  /** Whether these bytes fit into what is left of the share. */
  hasRoom(address: string, bytes: number): boolean {
    return this.#windowOf(address).used + bytes <= this.#bytes_per_hour()
  }

  /** Counts what is about to be stored. Negative bytes give back what was not. */
  count(address: string, bytes: number): void {
    const window = this.#windowOf(address)
    window.used = Math.max(0, window.used + bytes) // what is given back may be of the hour before
  }

  refusal(address: string): SmtpReplyError {
    const minutes = Math.ceil((this.#windowOf(address).ends - millis()) / MINUTE_MS)
    const megabytes = Math.floor(this.#bytes_per_hour() / 1024 ** 2)
    const text = `${address} may store ${megabytes} MB an hour here, and this mail is beyond that. Try again in ${minutes} min`
    return new SmtpReplyError(452, "4.2.2", refusalText("rate_limit_exceeded", text))
  }

  #windowOf(address: string) {
    return this.#windows.of(subscriberOf(address))
  }
}

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

/**
 * Throws 452 4.2.2 where the project stores all that its plan allows, and tells its owners when that comes
 * near. Without a project it is the first one, which the mail to the instance itself belongs to.
 */
async function requireSpace(store: Store, project_id = ""): Promise<void> {
  const { read } = store
  const owner = await known(read, project_id, () => ownerOf(read, project_id), TRUSTED_MS)
  const limit_mb = owner ? limitsOf(owner).stored_mb : null
  if (!owner || limit_mb === null) return
  const share = { ...owner, limit_mb }
  const total = await storedTotal(read, owner.project_id)
  if (passedShare(share, total.used) > total.told) {
    await store.tx((tx) => notifyOfShare(tx, share, total))
  }
  if (total.used < limit_mb * MB) return
  const text = "The storage of the recipient is full. Try again later"
  throw new SmtpReplyError(452, "4.2.2", refusalText("plan_limit_exceeded", text))
}

type Owner = Awaited<ReturnType<typeof ownerOf>>

/** It is asked for each recipient. */
const known = cached<Owner>({ tables: ["accounts", "projects"] })

async function ownerOf(read: Reader, given: string) {
  const project_id = given === "" ? (await firstProject(read))[0]?.project_id : given
  if (project_id === undefined) return undefined
  const { id: account_id, plan, limits } = accounts
  const [row] = await read
    .select({ account_id, plan, limits })
    .from(projects)
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(eq(projects.id, project_id))
  return row && { ...row, project_id }
}

/** A larger mail is no report of a complaint: those return the header of a message, or all of a letter. */
const MOST_REPORT_BYTES = 1024 * 1024

/** A report names its message once or twice. */
const MOST_LOOKS = 20

const ADDRESS = /\b([br]\+[a-z2-7]{42})@/gi
const MARKED = new RegExp(`^${EMAIL_ID_HEADER}:[ \\t]*([^\\r\\n]{1,100})`, "gim")

/**
 * Whether the bytes of a mail name a message of ours with a right MAC, as a complaint does that returns the
 * header of the message. What the mail is, only reading it says.
 */
function quotesProof(secrets: Secrets, raw: Uint8Array): boolean {
  if (raw.length > MOST_REPORT_BYTES) return false
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString("latin1")
  return (
    firstOf(text, ADDRESS).some((local) => readLocalPart(secrets, local) !== undefined) ||
    firstOf(text, MARKED).some((value) => readEmailIdHeader(secrets, value) !== undefined)
  )
}

const firstOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern).take(MOST_LOOKS)].map(([, found = ""]) => found)
