import { gunzipSync, inflateRawSync } from "node:zlib"
import type { MailPart, SeenMail } from "./seen-mail"

/** What an attachment may grow to before it is given up. */
interface ExpansionLimits {
  /** Bytes when unpacked. */
  bytes: number
  /** Unpacked bytes for each packed one. Reports reach 60; a bomb reaches 1,000. */
  ratio: number
  entries: number
}

/** What tells a kind of report among the files of a mail. */
interface ReportForm {
  /** The type or the name of most of them. The files that have neither are tried last. */
  typed: RegExp
  named: RegExp
  /** How its bytes begin, as ISO 8859-1. */
  begins: RegExp
  limits: ExpansionLimits
  /** Which file of an archive it is. */
  entry: (name: string) => boolean
}

const MOST_CANDIDATES = 4

/**
 * The first report among the files of a mail: its bytes begin so, and `read` understands it. Reporters write
 * many types and names. Never throws.
 */
export function reportIn<Report>(
  { parts }: SeenMail,
  { typed, named, begins, limits, entry }: ReportForm,
  read: (bytes: Uint8Array) => Report | undefined,
): Report | undefined {
  const fits = ({ content }: MailPart) =>
    begins.test(Buffer.from(content.subarray(0, 200)).toString("latin1"))
  const isUsual = ({ content_type, filename, params }: MailPart) =>
    typed.test(content_type) || named.test(filename ?? params.name ?? "")
  const sorted = parts.filter(fits).sort((a, b) => Number(isUsual(b)) - Number(isUsual(a)))
  for (const { content } of sorted.slice(0, MOST_CANDIDATES)) {
    const bytes = expanded(content, limits, entry)
    const report = bytes && read(bytes)
    if (report) return report
  }
  return undefined
}

/** A small file may have any ratio. */
const FREE_BYTES = 64 * 1024

/** Some reporters pack the packed file again. */
const MOST_LAYERS = 2

/**
 * The one file that a report comes in: gzip (RFC 1952), a zip archive, or the bytes themselves. Of an
 * archive it is the first file whose name `wanted` accepts, or the first one. What claims or becomes more
 * than the limits allow is undefined, as is what is damaged or encrypted. Never throws.
 */
export function expanded(
  bytes: Uint8Array,
  limits: ExpansionLimits,
  wanted: (name: string) => boolean,
): Uint8Array | undefined {
  let inner: Buffer | undefined = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let layer = 0; inner && layer < MOST_LAYERS; layer++) {
    if (isGzip(inner)) inner = unpacked(inner, limits, gunzipSync)
    else if (isZip(inner)) inner = fromZip(inner, limits, wanted)
  }
  return inner && inner.length <= limits.bytes ? inner : undefined
}

const isGzip = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b

/** `PK\x03\x04`: an archive that begins with a file. */
export const isZip = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4

type Unpack = (packed: Uint8Array, options: { maxOutputLength: number }) => Buffer

function unpacked(packed: Uint8Array, limits: ExpansionLimits, unpack: Unpack) {
  const by_ratio = Math.max(FREE_BYTES, packed.length * limits.ratio)
  try {
    return unpack(packed, { maxOutputLength: Math.min(limits.bytes, by_ratio) })
  } catch {
    return undefined
  }
}

/** APPNOTE 4.3.16: the end of the central directory, with a comment of at most 65,535 bytes. */
const END_SIGNATURE = 0x06054b50
const END_BYTES = 22
const MOST_COMMENT = 0xffff

/** APPNOTE 4.3.12 and 4.3.7. */
const ENTRY_SIGNATURE = 0x02014b50
const ENTRY_BYTES = 46
const LOCAL_SIGNATURE = 0x04034b50
const LOCAL_BYTES = 30

const STORED = 0
const DEFLATED = 8
const ENCRYPTED = 1

interface ZipEntry {
  name: string
  method: number
  packed_bytes: number
  unpacked_bytes: number
  local_at: number
}

function fromZip(zip: Buffer, limits: ExpansionLimits, wanted: (name: string) => boolean) {
  const files = entriesOf(zip, limits)?.filter(({ name }) => !name.endsWith("/"))
  const entry = files?.find(({ name }) => wanted(name)) ?? files?.[0]
  if (!entry || entry.unpacked_bytes > limits.bytes) return undefined
  const at = entry.local_at
  if (at + LOCAL_BYTES > zip.length || zip.readUInt32LE(at) !== LOCAL_SIGNATURE) return undefined
  const from = at + LOCAL_BYTES + zip.readUInt16LE(at + 26) + zip.readUInt16LE(at + 28)
  if (from + entry.packed_bytes > zip.length) return undefined
  const packed = zip.subarray(from, from + entry.packed_bytes)
  if (entry.method === STORED) return packed.length <= limits.bytes ? packed : undefined
  return entry.method === DEFLATED ? unpacked(packed, limits, inflateRawSync) : undefined
}

/** The central directory; undefined when it is damaged, too long, or holds something encrypted. */
function entriesOf(zip: Buffer, limits: ExpansionLimits): ZipEntry[] | undefined {
  const end = endOf(zip)
  if (end === undefined) return undefined
  const count = zip.readUInt16LE(end + 10)
  if (count > limits.entries) return undefined
  const entries: ZipEntry[] = []
  let at = zip.readUInt32LE(end + 16)
  for (let index = 0; index < count; index++) {
    if (at + ENTRY_BYTES > zip.length || zip.readUInt32LE(at) !== ENTRY_SIGNATURE) return undefined
    if (zip.readUInt16LE(at + 8) & ENCRYPTED) return undefined
    const name_bytes = zip.readUInt16LE(at + 28)
    const name = zip.toString("utf8", at + ENTRY_BYTES, at + ENTRY_BYTES + name_bytes)
    entries.push({
      name,
      method: zip.readUInt16LE(at + 10),
      packed_bytes: zip.readUInt32LE(at + 20),
      unpacked_bytes: zip.readUInt32LE(at + 24),
      local_at: zip.readUInt32LE(at + 42),
    })
    at += ENTRY_BYTES + name_bytes + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return entries
}

function endOf(zip: Buffer): number | undefined {
  const last = zip.length - END_BYTES
  for (let at = last; at >= 0 && at >= last - MOST_COMMENT; at--) {
    if (zip.readUInt32LE(at) === END_SIGNATURE) return at
  }
  return undefined
}
