import type { Blobs } from "../core/blobs"
import { ApiError } from "../core/errors"
import { codeOf, faultOf } from "../core/faults"
import { log } from "../core/log"
import type { Workers } from "../core/workers"
import type { Store } from "../store/store"
import type { VerdictWords } from "./mail-verdicts"
import type { InboundToRead, ReadMail } from "./parse-inbound-task"
import { rawSource } from "./raw-mail"
import { readSmall } from "./small-mail"
import type { ReadSmallMail } from "./small-mail-task"
import type { InboundRow } from "./tables"
import { type VerdictTools, verify } from "./verdicts"
import type { MailSource } from "./verify-task"

export interface MailReaderParts {
  store: Store
  workers: Workers
  inbound_blobs: Blobs
  verdicts: VerdictTools
}

/** The largest mail takes a second. */
const DEADLINE_MS = 20_000

/** A mail as it was read, and where what it holds is stored. */
export interface StoredMail {
  mail: ReadMail
  verdicts: VerdictWords
  /** The hashes of the files that were made of it, each once. */
  files: string[]
}

/**
 * Verdicts, header, bodies and files of a mail, whose files are on disk when it resolves. What the
 * parser does not manage keeps its raw message and says `parse_error`. Rejects where the threads
 * are overrun and where the storage does not write: then it is tried again. `known` is the raw message,
 * where it need not be read.
 */
export async function readStoredMail(
  parts: MailReaderParts,
  row: InboundRow,
  known?: Uint8Array,
): Promise<StoredMail> {
  const { store, inbound_blobs } = parts
  const raw = known ?? (await rawSource({ read: store.read, inbound_blobs }, row)) ?? notStored()
  const is_small = raw instanceof Uint8Array
  const read = is_small
    ? await patiently(parts, (tools) => together(parts, row, raw, tools))
    : undefined
  const { mail, verdicts } = read ?? (await alone(parts, row, raw))
  const hashes = mail.files.map(({ sha256 }) => sha256)
  if ("sha256" in mail.content) hashes.push(mail.content.sha256)
  return { mail, verdicts, files: [...new Set(hashes)] }
}

const together = (
  { workers, inbound_blobs: { dir: blobs_dir } }: MailReaderParts,
  row: InboundRow,
  raw: Uint8Array,
  tools: VerdictTools,
) => readSmall(row, raw, { workers, tools, blobs_dir, verdicts: verdictsIn(row) })

/** Step by step, so that a mail that was made to hurt costs only itself. */
async function alone(
  parts: MailReaderParts,
  row: InboundRow,
  raw: MailSource,
): Promise<ReadSmallMail> {
  const verdicts = verdictsIn(row) ?? (await judged(parts, row, raw))
  const { mail_from } = row.session
  const blobs_dir = parts.inbound_blobs.dir
  const wanted = { mail: raw, blobs_dir, mail_from, verdicts, whole: true }
  return { mail: await read(parts, wanted, row.id), verdicts }
}

/** Where the mail was judged when it came. */
function verdictsIn(row: InboundRow): VerdictWords | null {
  const { spf_verdict: spf, dkim_verdict: dkim, dmarc_verdict: dmarc, arc_verdict: arc } = row
  const { verified } = row
  if (!spf || !dkim || !dmarc || !arc || verified === null) return null
  return { spf, dkim, dmarc, arc, verified }
}

/** As where its file is missing: the next run sees whether the mail was deleted. */
function notStored(): never {
  throw Object.assign(new Error("the raw message is not stored"), { code: "ENOENT" })
}

const judged = (parts: MailReaderParts, row: InboundRow, raw: MailSource) => {
  const { address, helo, mail_from } = row.session
  const arrival = { address, helo, mail_from, received_at: row.created_at }
  return patiently(parts, (tools) => verify(raw, arrival, tools))
}

/** Mails whose senders' name servers may take their time; of more than these, only a short one. */
const MOST_PATIENT = 8
const SHORT_MS = 1_500

const waiting = new WeakMap<VerdictTools, number>()

/**
 * Each mail holds a place of the job loop while DNS is asked. A sender whose name servers do not answer
 * must not hold all of them.
 */
async function patiently<Result>(
  { verdicts: tools }: MailReaderParts,
  work: (tools: VerdictTools) => Promise<Result>,
): Promise<Result> {
  const others = waiting.get(tools) ?? 0
  waiting.set(tools, others + 1)
  try {
    return await work(others < MOST_PATIENT ? tools : { ...tools, dns_ms: SHORT_MS })
  } finally {
    waiting.set(tools, (waiting.get(tools) ?? 1) - 1)
  }
}

async function read(
  { workers }: Pick<MailReaderParts, "workers">,
  mail: InboundToRead,
  inbound_id: string,
): Promise<ReadMail> {
  try {
    return await workers.run<ReadMail>("parse-inbound", mail, { deadline_ms: DEADLINE_MS })
  } catch (error) {
    if (isPassing(error)) throw error
    log.warn("a mail could not be read", { inbound_id, whole: mail.whole, error })
    return mail.whole ? read({ workers }, { ...mail, whole: false }, inbound_id) : UNREADABLE
  }
}

/** It is no fault of the mail: the threads are overrun, the server stops, or the storage has trouble. */
const isPassing = (error: unknown) =>
  error instanceof ApiError || faultOf(error) !== undefined || codeOf(error) === "ENOENT"

/** Of a mail of which not even the header can be read. The raw message is there. */
const UNREADABLE: ReadMail = {
  from: null,
  to: [],
  cc: [],
  reply_to: [],
  subject: null,
  rfc_message_id: null,
  in_reply_to: null,
  references: [],
  headers: {},
  content: { text_body: null, html_body: null, stripped_text: null },
  files: [],
  kind: { kind: "other" },
  auto_submitted: null,
  returned: null,
  spam: { score: 0, flagged: false, rules: [] },
  parse_error: true,
}
