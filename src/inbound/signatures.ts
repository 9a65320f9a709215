import { createHash } from "node:crypto"
import { domainToASCII } from "node:url"
import { verifyASChain } from "mailauth/lib/arc"
import {
  DkimVerifier,
  type HeaderRow,
  type SignatureField,
  type SignatureResult,
} from "mailauth/lib/dkim/dkim-verifier"
import { millisFrom } from "../core/time"
import { charsetNear } from "../lib/charset"
import { relaxedParts, simpleParts } from "../lib/dkim"
import { answering, type DnsAnswers, type DnsQuestion, UNKNOWN } from "./dns-answers"
import { authorsOf, HEAD_BYTES, headerRows, type MailAuthors, type MailHeader } from "./header-rows"

/** Only the first (newest) ones are verified. Real mail has one to four. */
const MAX_SIGNATURES = 10

/** RFC 8617 4.2.1: 50 sets of three fields. One more is a broken chain, and mailauth says so. */
const MAX_ARC_FIELDS = 3 * 51

/** A signature with a 4096-bit key has about 1,200 bytes. */
const MAX_FIELD_BYTES = 16 * 1024

/** Longer runs of white space make the patterns of the parser slow, and no mailer writes them. */
const LONG_SPACE = /[ \t\r\n]{200}/

/** RFC 8301 3.2: verifiers must take keys of 1,024 to 4,096 bits. */
const MIN_KEY_BITS = 1024
const MAX_KEY_BITS = 4096

type SignatureVerdict = "pass" | "fail" | "none" | "temperror"

export interface DkimResult {
  result: SignatureVerdict
  /** The `d=` of the signature, as A-labels in lower case. */
  domain: string
  selector: string
}

/** What the header of a mail says before any key is known. */
interface ReadHeader {
  /** The key records that its signatures name. */
  keys: DnsQuestion[]
  authors: MailAuthors
  /** 0 to 99, the same for the same header: for policies that hold for a part of the mail. */
  sample: number
  /** It has no field of DKIM or ARC, so that there is nothing to verify. */
  is_unsigned: boolean
}

export interface SignatureVerdicts {
  dkim: DkimResult[]
  /** Of the chain. */
  arc: SignatureVerdict
}

/** Reads no more than the beginning of a message. */
export async function readHeader(raw: Uint8Array): Promise<ReadHeader> {
  const header = headerRows(raw.subarray(0, HEAD_BYTES))
  const is_unsigned = !header.too_large && !header.rows.some(({ key }) => SIGNED.has(key))
  return {
    keys: is_unsigned ? [] : await keysIn(header),
    authors: authorsOf(
      header,
      charsetNear(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)),
    ),
    sample: sampleOf(header),
    is_unsigned,
  }
}

function sampleOf({ rows }: MailHeader): number {
  const hash = createHash("sha256")
  for (const { line } of rows) hash.update(line)
  return hash.digest().readUInt32BE(0) % 100
}

async function keysIn(header: MailHeader): Promise<DnsQuestion[]> {
  const { verifier } = await verifierOf(header, {}, [], new Date(0))
  const sets = (verifier.arc.chain || []).map((set) => set["arc-seal"])
  const named = [...verifier.signatureHeaders, ...sets.map(sealOf)]
  const names = named.flatMap((field) => (field.skip || field.invalid ? [] : keyName(field)))
  return [...new Set(names)].map((name) => ({ name, type: "TXT" }))
}

const sealOf = ({ parsed }: SignatureField) => ({
  skip: undefined,
  invalid: undefined,
  signingDomain: String(parsed.d?.value ?? ""),
  selector: String(parsed.s?.value ?? ""),
})

/** RFC 6376 3.6.2.1. */
function keyName({ signingDomain, selector }: { signingDomain: string; selector: string }) {
  const name = `${selector}._domainkey.${signingDomain}`
  const ascii = /^[\x21-\x7e]+$/.test(name) ? name : domainToASCII(name)
  return signingDomain && selector && ascii ? [ascii] : []
}

/**
 * DKIM (RFC 6376, 8301, 8463) and ARC (RFC 8617) of a whole message, verified as of `now`. What DNS
 * has not been asked for is put into `missing`, and then the result is worth nothing yet.
 */
export async function validateSignatures(
  raw: Uint8Array,
  now: Date,
  answers: DnsAnswers,
  missing: DnsQuestion[],
): Promise<SignatureVerdicts> {
  const header = headerRows(raw)
  const { verifier, refused, resolver } = await verifierOf(header, answers, missing, now)
  hashBody(verifier, raw.subarray(header.body_at))
  await verifier.finalChunk()
  const authors = header.rows.filter(({ key }) => key === "from").length
  const fields = verifier.signatureHeaders.filter(({ type }) => type === "DKIM")
  const verified = verifier.results.flatMap((result, at) =>
    result.status.result === "none"
      ? []
      : dkimResult(result, isVoid(result, fields[at], authors, now)),
  )
  return {
    dkim: [...verified, ...refused.dkim],
    arc: refused.arc ?? (await arcResult(verifier, resolver, authors, now)),
  }
}

/**
 * Puts the hashes that the signatures ask for in the place of mailauth's own, which reads line by
 * line: 25 MB of short lines took it 13 seconds.
 */
function hashBody({ bodyHashes }: DkimVerifier, raw: Uint8Array): void {
  const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  for (const [canon, parts] of Object.entries(CANONICAL)) {
    const keys = [...bodyHashes.keys()].filter((key) => key.startsWith(`${canon}:`))
    const hashes = keys.map(partialHash)
    if (keys.length === 0) continue
    for (const part of parts(body)) {
      for (const hash of hashes) hash.add(part)
    }
    for (const [at, key] of keys.entries()) {
      const hash = hashes[at]
      if (hash) bodyHashes.set(key, { ...hash.end(), byteLength: body.length })
    }
  }
}

const CANONICAL = { relaxed: relaxedParts, simple: simpleParts }

/** Of as many bytes as `l=` says. `key` is `relaxed:sha256:1000`, without a number for all. */
function partialHash(key: string) {
  const [, algorithm = "", limit] = key.split(":")
  const hash = createHash(algorithm)
  let left = limit ? Number(limit) : Number.POSITIVE_INFINITY
  let hashed = 0
  let whole = 0
  return {
    add(part: Buffer) {
      const covered = part.length > left ? part.subarray(0, left) : part
      hash.update(covered)
      left -= covered.length
      hashed += covered.length
      whole += part.length
    },
    end() {
      const digest = hash.digest("base64")
      return {
        digest: () => digest,
        getMimeStructureStart: () => 0,
        bodyHashedBytes: hashed,
        canonicalizedLength: whole,
      }
    },
  }
}

/**
 * Whether a signature covers every From field of the mail. One that was added in front is not
 * covered, and readers may show it (RFC 6376 8.15).
 */
function isWhole(field: SignatureField | undefined, authors: number): boolean {
  const names = String(field?.parsed.h?.value ?? "").toLowerCase()
  return names.split(":").filter((name) => name.trim() === "from").length >= authors
}

/** A verifier that has read the header, and what is not left to it because of a limit. */
async function verifierOf(
  header: MailHeader,
  answers: DnsAnswers,
  missing: DnsQuestion[],
  now: Date,
) {
  const resolver = answering(answers, missing)
  const verifier = new DkimVerifier({
    resolver,
    sender: "-",
    strict: true,
    minBitLength: MIN_KEY_BITS,
    curTime: now,
  })
  const { readable, refused } = withinLimits(header)
  await verifier.messageHeaders({ parsed: readable })
  // It reads the signatures from the few rows, and verifies them against all.
  verifier.headers = { parsed: header.rows }
  return { verifier, refused, resolver }
}

/** Only what is signed or sealed is handed on: each other field would be parsed for nothing. */
function withinLimits({ rows, too_large }: MailHeader) {
  const dkim = rows.filter(({ key }) => key === "dkim-signature")
  const arc = rows.filter(({ key }) => ARC_FIELDS.includes(key))
  const taken = too_large ? [] : dkim.filter(isReadable).slice(0, MAX_SIGNATURES)
  const is_large = too_large || !arc.slice(0, MAX_ARC_FIELDS).every(isReadable)
  const left = dkim.filter((row) => !taken.includes(row)).slice(0, MAX_SIGNATURES)
  const refused: { dkim: DkimResult[]; arc: SignatureVerdict | undefined } = {
    dkim: too_large ? [FAILED] : left.map(() => FAILED),
    arc: is_large && arc.length > 0 ? "fail" : undefined,
  }
  return { readable: [...taken, ...(is_large ? [] : arc.slice(0, MAX_ARC_FIELDS))], refused }
}

/** Of a signature that is not looked at. */
const FAILED: DkimResult = { result: "fail", domain: "", selector: "" }

const ARC_FIELDS = ["arc-seal", "arc-message-signature", "arc-authentication-results"]
const SIGNED = new Set(["dkim-signature", ...ARC_FIELDS])

const isReadable = ({ line }: HeaderRow) =>
  line.length <= MAX_FIELD_BYTES && !LONG_SPACE.test(line.toString("latin1"))

function dkimResult(found: SignatureResult, is_void: boolean): DkimResult {
  const { signingDomain = "", selector = "" } = found
  const domain = (domainToASCII(signingDomain) || signingDomain).toLowerCase()
  return { result: verdictOf(found, is_void), domain, selector }
}

const WEAK = ["weak-key", "weak-algorithm"]

/** mailauth's words, and our own limits, as one of four results. */
function verdictOf({ status, modulusLength = 0 }: SignatureResult, is_void: boolean) {
  if (status.result === "temperror" && !is_void) return "temperror"
  const is_weak = WEAK.includes(status.policy?.["dkim-rules"] ?? "") || modulusLength > MAX_KEY_BITS
  if (status.result === "pass" && !is_void && !is_weak) return "pass"
  // RFC 6376 3.6.1, t=y: a signature of a domain that only tests counts like none when it is wrong.
  return status.testing ? "none" : "fail"
}

/** Whether a signature is worth nothing, whatever its key may be. */
function isVoid(
  { status, expiresAfter }: SignatureResult,
  field: SignatureField | undefined,
  authors: number,
  now: Date,
): boolean {
  const is_expired = expiresAfter != null && millisFrom(expiresAfter) < now.getTime()
  const is_open = Boolean(status.underSized) || status.comment === "From field not signed"
  return is_expired || is_open || !isWhole(field, authors)
}

async function arcResult(
  verifier: DkimVerifier,
  resolver: unknown,
  authors: number,
  now: Date,
): Promise<SignatureVerdict> {
  const { chain, lastEntry, error, keyCache } = verifier.arc
  if (error) return "fail"
  if (!chain || !lastEntry) return "none"
  const { messageSignature: found, "arc-message-signature": field } = lastEntry
  const newest = found && verdictOf(found, isVoid(found, field, authors, now))
  if (newest !== "pass") return newest === "temperror" ? "temperror" : "fail"
  try {
    const options = { resolver, minBitLength: MIN_KEY_BITS, strict: true, keyCache }
    await verifyASChain({ chain } as never, options as never)
    return "pass"
  } catch (error) {
    return (error as { code?: unknown }).code === UNKNOWN ? "temperror" : "fail"
  }
}
