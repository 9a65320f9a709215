import { eq } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import { fitsInRows } from "../emails/submitted"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import type { MailSource } from "./parse-inbound-task"
import {
  type InboundContent,
  type InboundRow,
  inboundContents,
  inboundRaws,
  type StoredElsewhere,
} from "./tables"

/** A raw message as its rows name it. */
export interface StoredRaw {
  size: number
  /** Of the file, which is on disk; "" where `raw` is to be written with the rows. */
  raw_sha256: string
  raw: Buffer | null
}

/**
 * Keeps the raw message of a mail for so many rows. A small one is written with its rows, so that mails
 * that arrive together share one commit. A larger one is on disk as a file when this resolves.
 */
export async function keepRaw(
  inbound_blobs: Blobs,
  parts: Uint8Array[],
  rows: number,
): Promise<StoredRaw> {
  const size = parts.reduce((sum, { length }) => sum + length, 0)
  if (fitsInRows(size, rows)) return { size, raw_sha256: "", raw: Buffer.concat(parts) }
  const { sha256 } = await inbound_blobs.put(...parts)
  return { size, raw_sha256: sha256, raw: null }
}

export interface RawMailParts {
  read: Reader
  inbound_blobs: Blobs
}

type NamedRaw = Pick<InboundRow, "id" | "raw_sha256">

/** The raw message of a mail, or its file for a thread to read. Undefined where neither is stored. */
export async function rawSource(
  { read, inbound_blobs }: RawMailParts,
  { id, raw_sha256 }: NamedRaw,
): Promise<MailSource | undefined> {
  if (raw_sha256 !== "") return { path: inbound_blobs.path(raw_sha256) }
  const [kept] = await findRaw(read, { inbound_id: id })
  return kept?.raw
}

/** The raw message of a mail, byte for byte; undefined where it is no longer stored. */
export async function rawMail(parts: RawMailParts, row: NamedRaw): Promise<Uint8Array | undefined> {
  if (row.raw_sha256 !== "") return parts.inbound_blobs.get(row.raw_sha256)
  const [kept] = await findRaw(parts.read, { inbound_id: row.id })
  return kept?.raw
}

const findRaw = prepared({ inbound_id: inboundRaws.inbound_id }, (db: Reader, slot) =>
  db
    .select({ raw: inboundRaws.raw })
    .from(inboundRaws)
    .where(eq(inboundRaws.inbound_id, slot.inbound_id)),
)

const NOTHING: InboundContent = { text_body: null, html_body: null, stripped_text: null }

/** The bodies of a received mail, wherever they are stored. All are null before it is processed. */
export async function mailContent(
  db: Reader,
  inbound_blobs: Blobs,
  inbound_id: string,
): Promise<InboundContent> {
  const wanted = eq(inboundContents.inbound_id, inbound_id)
  const [row] = await db.select().from(inboundContents).where(wanted)
  return row ? wholeContent(inbound_blobs, row.content) : NOTHING
}

/** The bodies themselves, where they are in a file as well. */
export async function wholeContent(
  inbound_blobs: Blobs,
  content: InboundContent | StoredElsewhere,
): Promise<InboundContent> {
  if (!("sha256" in content)) return content
  const bytes = await inbound_blobs.get(content.sha256)
  return bytes ? (JSON.parse(Buffer.from(bytes).toString()) as InboundContent) : NOTHING
}
