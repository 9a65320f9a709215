import { createHash, type KeyObject, sign as signBytes } from "node:crypto"

/** Which fields a signature covers: those of them that the message has. */
const SIGNED_FIELDS = [
  "From",
  "To",
  "Cc",
  "Subject",
  "Date",
  "Message-ID",
  "Reply-To",
  "MIME-Version",
  "Content-Type",
  "List-Unsubscribe",
  "List-Unsubscribe-Post",
]

/**
 * Listed once more than it occurs, so that a second one would break the signature (RFC 6376, 8.15).
 */
const OVERSIGNED = "from"

const LINE_LENGTH = 76

export interface DkimSigner {
  /** A-labels, the `d=` of the signature. */
  domain: string
  selector: string
  algorithm: "rsa" | "ed25519"
  key: KeyObject
  /** The function that makes RSA signatures (default: the runtime). */
  rsa?: RsaSign
  /** Seconds since 1970, the `t=` of the signature. */
  time: number
}

interface Field {
  /** In lower case. */
  name: string
  /** As RFC 6376, 3.4.2 wants it hashed, without a line end. */
  relaxed: string
}

/** A message read once, to be signed by any number of keys. */
interface Signable {
  fields: Field[]
  body_hash: string
}

/**
 * Reads the exact bytes that will be sent. They end their lines with CRLF only (`isClean`); a message
 * without an empty line is all header.
 */
export function signable(raw: Uint8Array): Signable {
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString("latin1")
  const end = text.startsWith("\r\n") ? 0 : text.indexOf("\r\n\r\n") + 2
  const head = end === 1 ? text : text.slice(0, end)
  const body = end === 1 ? "" : text.slice(end + 2)
  return { fields: fieldsOf(head), body_hash: bodyHash(body) }
}

/**
 * One DKIM-Signature field with its CRLF, to be put before the message: relaxed/relaxed, RFC 6376, and
 * RFC 8463 for Ed25519. The same input has the same signature, byte for byte.
 */
export function sign({ fields, body_hash }: Signable, signer: DkimSigner): string {
  const { domain, selector, algorithm, key, time, rsa } = signer
  const names = signedNames(fields)
  const head = `DKIM-Signature: v=1; a=${algorithm}-sha256; c=relaxed/relaxed; t=${time};\r\n`
  const place = ` d=${domain};\r\n s=${selector};\r\n`
  const unsigned = `${head}${place}${listed(names)}\r\n bh=${body_hash};\r\n b=`
  const signature = signatureOf(dataToSign(fields, names, unsigned), { algorithm, key, rsa })
  return `${unsigned}${folded(signature.toString("base64"))}\r\n`
}

/** Ed25519 signs the hash of the data (RFC 8463, 3), RSA the data, which it hashes itself. */
export function signatureOf(
  data: string,
  {
    algorithm,
    key,
    rsa = builtIn,
  }: Pick<DkimSigner, "algorithm" | "key"> & { rsa?: RsaSign | undefined },
) {
  const bytes = Buffer.from(data, "latin1")
  if (algorithm === "rsa") return rsa(bytes, key)
  return signBytes(null, createHash("sha256").update(bytes).digest(), key)
}

/**
 * What the signature is of (RFC 6376, 3.7): the named fields, the last of a name first, then the
 * signature's own field, which ends with an empty `b=`. A name without a field adds nothing.
 */
export function dataToSign(fields: Field[], names: string[], unsigned: string): string {
  const left = new Map<string, string[]>()
  for (const { name, relaxed } of fields) {
    const known = left.get(name)
    if (known) known.push(relaxed)
    else left.set(name, [relaxed])
  }
  const chosen = names.map((name) => left.get(name.toLowerCase())?.pop())
  const lines = chosen.filter((line) => line !== undefined)
  return [...lines, relaxedField(unsigned).relaxed].join("\r\n")
}

/** The fields of a header in their order. */
export function fieldsOf(head: string): Field[] {
  const fields: Field[] = []
  let from = 0
  while (from < head.length) {
    let end = head.indexOf("\r\n", from)
    // A line that begins with white space goes on with the field before it.
    while (end !== -1 && isSpace(head.charCodeAt(end + 2))) end = head.indexOf("\r\n", end + 2)
    if (end === -1) end = head.length
    if (end > from) fields.push(relaxedField(head.slice(from, end)))
    from = end + 2
  }
  return fields
}

/** RFC 6376, 3.4.4, and SHA-256 of it in base64. `body` is Latin-1: one character a byte. */
export const bodyHash = (body: string): string =>
  createHash("sha256").update(relaxedBody(body), "latin1").digest("base64")

/**
 * Runs of white space become one space; none stays at a line's end, and no empty line at the end.
 */
export function relaxedBody(body: string): string {
  const lines = relaxedLines(body)
  const end = contentEnd(lines)
  return end === 0 ? "" : `${lines.slice(0, end)}\r\n`
}

/** Whole lines with single spaces, and with none at their ends. Empty lines stay. */
function relaxedLines(text: string): string {
  // In this order, because a pattern for both would look at each run again from each of its spaces.
  const single = /\t| {2}/.test(text) ? text.replace(/[ \t]{2,}|\t/g, " ") : text
  const trimmed = single.replaceAll(" \r\n", "\r\n")
  return trimmed.endsWith(" ") ? trimmed.slice(0, -1) : trimmed
}

/** Where the empty lines at the end of a text begin. */
function contentEnd(text: string): number {
  let end = text.length
  while (end >= 2 && text.startsWith("\r\n", end - 2)) end -= 2
  return end
}

const PART_BYTES = 256 * 1024
const LINE_ENDS = Buffer.from("\r\n".repeat(8192))

/** `relaxedBody` of a large body, part by part, so that no second copy of it is in memory. */
export function* relaxedParts(body: Buffer): Generator<Buffer> {
  let ends = 0
  let is_empty = true
  for (let from = 0; from < body.length; ) {
    const found = body.indexOf("\r\n", from + PART_BYTES)
    const to = found === -1 ? body.length : found + 2
    const lines = relaxedLines(body.toString("latin1", from, to))
    const end = contentEnd(lines)
    if (end > 0) {
      yield* lineEnds(ends)
      yield Buffer.from(lines.slice(0, end), "latin1")
      ends = 0
      is_empty = false
    }
    ends += (lines.length - end) / 2
    from = to
  }
  if (!is_empty) yield* lineEnds(1)
}

/** RFC 6376, 3.4.3, in parts: the empty lines at the end become one line end. */
export function* simpleParts(body: Buffer): Generator<Buffer> {
  let end = body.length
  while (end >= 2 && body[end - 2] === 13 && body[end - 1] === 10) end -= 2
  yield body.subarray(0, end)
  yield* lineEnds(1)
}

function* lineEnds(count: number): Generator<Buffer> {
  for (let left = count * 2; left > 0; left -= LINE_ENDS.length) yield LINE_ENDS.subarray(0, left)
}

function relaxedField(field: string): Field {
  const colon = field.indexOf(":")
  const name = field.slice(0, colon).trim().toLowerCase()
  const value = field.slice(colon + 1).replaceAll("\r\n", "")
  return { name, relaxed: `${name}:${value.replace(/[ \t]+/g, " ").replace(/^ | $/g, "")}` }
}

/** Each as often as it is there, and what is oversigned once more. */
function signedNames(fields: Field[]): string[] {
  return SIGNED_FIELDS.flatMap((field) => {
    const name = field.toLowerCase()
    const there = fields.filter((one) => one.name === name).length
    return Array(name === OVERSIGNED ? there + 1 : there).fill(name) as string[]
  })
}

/** White space is allowed around the colons (RFC 6376, 3.5). */
function listed(names: string[]): string {
  const lines: string[] = []
  let line = " h="
  for (const [index, name] of names.entries()) {
    const word = index === names.length - 1 ? `${name};` : `${name}:`
    if (line.length + word.length > LINE_LENGTH) {
      lines.push(line)
      line = "  "
    }
    line += word
  }
  return [...lines, line].join("\r\n")
}

function folded(signature: string): string {
  const lines: string[] = []
  for (let from = 0; from < signature.length; from += LINE_LENGTH - 4) {
    lines.push(signature.slice(from, from + LINE_LENGTH - 4))
  }
  return lines.join("\r\n  ")
}

const isSpace = (code: number) => code === 0x20 || code === 0x09

/** Signs `data` with an RSA key: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 8.2). */
export type RsaSign = (data: Uint8Array, key: KeyObject) => Buffer

/** What the runtime brings along, on every machine. */
export const builtIn: RsaSign = (data, key) => signBytes("sha256", data, key)
