import type { Blobs } from "../core/blobs"
import { ApiError } from "../core/errors"
import { codeOf } from "../core/faults"
import { log } from "../core/log"
import type { Workers } from "../core/workers"
import type { InboundToRead, ReadMail } from "./parse-inbound-task"
import type { InboundContent, InboundRow, StoredElsewhere } from "./tables"
import { type VerdictTools, verify } from "./verdicts"

export interface MailReaderParts {
  workers: Workers
  inbound_blobs: Blobs
  verdicts: VerdictTools
}

/** The largest mail takes a second. */
const DEADLINE_MS = 20_000

/** Files that are written at the same time. */
const AT_ONCE = 8

type Verdicts = Pick<
  InboundRow,
  "verified" | "spf_verdict" | "dkim_verdict" | "dmarc_verdict" | "arc_verdict"
>

/** A mail as it was read, and where what it holds is stored. */
export interface StoredMail {
  mail: ReadMail
  verdicts: Verdicts
  content: InboundContent
  stored_content: InboundContent | StoredElsewhere
  /** The hashes of its files, the raw message included. */
  files: string[]
}

/**
 * Verdicts, header, bodies and files of a mail, whose files are on disk when it resolves. What the
 * parser does not manage keeps its raw message and says `parse_error`. Rejects where the threads
 * are overrun and where the storage does not write: then it is tried again.
 */
export async function readStoredMail(parts: MailReaderParts, row: InboundRow): Promise<StoredMail> {
  const path = parts.inbound_blobs.path(row.raw_sha256)
  const verdicts = await verdictsOf(parts, row, path)
  const { verified, spf_verdict: spf, dkim_verdict: dkim, dmarc_verdict: dmarc } = verdicts
  const { arc_verdict: arc } = verdicts
  const judged = { spf, dkim, dmarc, arc, verified }
  const { mail_from } = row.session
  const mail = await read(parts, { path, mail_from, verdicts: judged, whole: true }, row.id)
  await keepFiles(parts.inbound_blobs, mail)
  const { large_content, content, files } = mail
  const hashes = [row.raw_sha256, ...files.map(({ file }) => file.sha256)]
  if (large_content) hashes.push(large_content.sha256)
  return {
    mail,
    verdicts,
    content: large_content ? JSON.parse(Buffer.from(large_content.bytes).toString()) : content,
    stored_content: large_content ? { sha256: large_content.sha256 } : content,
    files: [...new Set(hashes)],
  }
}

async function verdictsOf(
  { verdicts: tools }: MailReaderParts,
  row: InboundRow,
  path: string,
): Promise<Verdicts> {
  const { verified, spf_verdict, dkim_verdict, dmarc_verdict, arc_verdict } = row
  if (spf_verdict !== null) {
    return { verified, spf_verdict, dkim_verdict, dmarc_verdict, arc_verdict }
  }
  const { address, helo, mail_from } = row.session
  const arrival = { address, helo, mail_from, received_at: row.created_at }
  const found = await verify({ path }, arrival, tools)
  const { spf, dkim, dmarc, arc } = found
  return {
    verified: found.verified,
    spf_verdict: spf,
    dkim_verdict: dkim,
    dmarc_verdict: dmarc,
    arc_verdict: arc,
  }
}

async function read(
  { workers }: MailReaderParts,
  mail: InboundToRead,
  id: string,
): Promise<ReadMail> {
  try {
    return await workers.run<ReadMail>("parse-inbound", mail, { deadline_ms: DEADLINE_MS })
  } catch (error) {
    if (!mail.whole || error instanceof ApiError || codeOf(error) !== undefined) throw error
    log.warn("a mail could not be read, only its header", { inbound_id: id, error })
    return read({ workers } as MailReaderParts, { ...mail, whole: false }, id)
  }
}

async function keepFiles(blobs: Blobs, { files, large_content }: ReadMail) {
  const all = files.map(({ file, bytes }) => ({ sha256: file.sha256, bytes }))
  if (large_content) all.push(large_content)
  for (let at = 0; at < all.length; at += AT_ONCE) {
    const some = all.slice(at, at + AT_ONCE)
    await Promise.all(some.map(({ bytes, sha256 }) => blobs.put(bytes, sha256)))
  }
}
