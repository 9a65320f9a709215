import { createHash } from "node:crypto"
import { domainToASCII } from "node:url"
import { verifyASChain } from "mailauth/lib/arc"
import {
  type ArcSet,
  DkimVerifier,
  type HeaderRow,
  type SignatureField,
  type SignatureResult,
} from "mailauth/lib/dkim/dkim-verifier"
import { millisFrom } from "../core/time"
import { relaxedParts, simpleParts } from "../lib/dkim"
import { answering, type DnsAnswers, type DnsQuestion, UNKNOWN } from "./dns-answers"
import {
  authorsOf,
  HEAD_BYTES,
  headerRows,
  type MailAuthors,
  type MailHeader,
  NO_CHAIN,
} from "./header-rows"

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

export interface DkimResult {
  result: "pass" | "fail" | "none" | "temperror"
  /** The `d=` of the signature, as A-labels in lower case. */
  domain: string
  selector: string
  algorithm: string
  key_bits: number | null
  reason: string
}

export interface ArcResult {
  result: "pass" | "fail" | "none" | "temperror"
  /** The domains that sealed, the oldest first. */
  sealers: string[]
  reason: string
}

/** What the header of a mail says before any key is known. */
export interface ReadHeader {
  /** The key records that its signatures name. */
  keys: DnsQuestion[]
  /** Null where the header could not be read in time. */
  authors: MailAuthors | null
  /** 0 to 99, the same for the same header: for policies that hold for a part of the mail. */
  sample: number
  /** It has no field of DKIM or ARC, so that there is nothing to verify. */
  is_unsigned: boolean
}

export interface SignatureVerdicts {
  dkim: DkimResult[]
  arc: ArcResult
}

/** Reads no more than the beginning of a message. */
export async function readHeader(raw: Uint8Array): Promise<ReadHeader> {
  const header = headerRows(raw.subarray(0, HEAD_BYTES))
  const is_unsigned = !header.too_large && !header.rows.some(({ key }) => SIGNED.has(key))
  return {
    keys: is_unsigned ? [] : await keysIn(header),
    authors: authorsOf(header),
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
      : dkimResult(result, sureFault(result, fields[at], authors, now)),
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

interface RefusedFields {
  dkim: DkimResult[]
  /** The result of a chain that is not verified. */
  arc: ArcResult | undefined
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
  const isLarge = too_large || !arc.slice(0, MAX_ARC_FIELDS).every(isReadable)
  const why = (row: HeaderRow) =>
    isReadable(row)
      ? `Only the first ${MAX_SIGNATURES} signatures of a mail are judged.`
      : "The signature is too long, so it was not judged."
  const left = dkim.filter((row) => !taken.includes(row)).slice(0, MAX_SIGNATURES)
  const chain: ArcResult = {
    result: "fail",
    sealers: [],
    reason: "The ARC fields are too large, so the chain was not judged.",
  }
  const refused: RefusedFields = {
    dkim: too_large ? [failed(HIDDEN)] : left.map((row) => failed(why(row))),
    arc: isLarge && arc.length > 0 ? chain : undefined,
  }
  return { readable: [...taken, ...(isLarge ? [] : arc.slice(0, MAX_ARC_FIELDS))], refused }
}

const HIDDEN = "The header is too large, so its signatures were not judged."

const ARC_FIELDS = ["arc-seal", "arc-message-signature", "arc-authentication-results"]
const SIGNED = new Set(["dkim-signature", ...ARC_FIELDS])

const isReadable = ({ line }: HeaderRow) =>
  line.length <= MAX_FIELD_BYTES && !LONG_SPACE.test(line.toString("latin1"))

const failed = (reason: string): DkimResult => ({
  result: "fail",
  domain: "",
  selector: "",
  algorithm: "",
  key_bits: null,
  reason,
})

function dkimResult(found: SignatureResult, sure: string | undefined): DkimResult {
  const domain = domainToASCII(found.signingDomain ?? "") || (found.signingDomain ?? "")
  const result: DkimResult = {
    ...failed(""),
    domain: domain.toLowerCase(),
    selector: found.selector ?? "",
    algorithm: found.algo ?? "",
    key_bits: found.modulusLength ?? null,
  }
  return { ...result, ...ruling(found, sure) }
}

/** mailauth's words, and our own limits, as one of four results with its reason. */
function ruling(
  found: SignatureResult,
  sure: string | undefined,
): Pick<DkimResult, "result" | "reason"> {
  const { status, modulusLength = 0 } = found
  if (status.result === "temperror" && !sure) {
    return { result: "temperror", reason: "DNS did not answer for the key of the signature." }
  }
  const reason = sure ?? faultOf(found)
  if (reason === undefined) {
    const size = modulusLength > 0 ? ` with a key of ${modulusLength} bits` : ""
    return { result: "pass", reason: `The signature is right${size}.` }
  }
  // RFC 6376 3.6.1, t=y: a signature of a domain that only tests counts like none when it is wrong.
  return status.testing
    ? { result: "none", reason: `${reason} The domain only tests its signatures (t=y).` }
    : { result: "fail", reason }
}

/** What makes a signature worth nothing, whatever its key may be. */
function sureFault(
  { status, expiresAfter }: SignatureResult,
  field: SignatureField | undefined,
  authors: number,
  now: Date,
): string | undefined {
  if (status.comment === "From field not signed") return FAULTS[status.comment]
  if (!isWhole(field, authors)) return "The signature does not cover every From field of the mail."
  if (expiresAfter && millisFrom(expiresAfter) < now.getTime()) {
    return `The signature expired at ${expiresAfter}.`
  }
  if (status.underSized) {
    return `The signature leaves the last ${status.underSized} bytes of the body open (l=).`
  }
  return undefined
}

function faultOf({ status, modulusLength = 0 }: SignatureResult): string | undefined {
  const rule = status.policy?.["dkim-rules"]
  if (rule === "weak-key") return `The RSA key has less than ${MIN_KEY_BITS} bits.`
  if (rule === "weak-algorithm") return "The signature uses SHA-1, which is not safe (RFC 8301)."
  if (status.result !== "pass") {
    const known = FAULTS[String(status.comment)]
    if (known) return known
    return `The signature is not valid: ${lastWords(status)}`
  }
  if (modulusLength > MAX_KEY_BITS) {
    return `The RSA key has ${modulusLength} bits. At most ${MAX_KEY_BITS} are taken.`
  }
  return undefined
}

const FAULTS: Record<string, string> = {
  "bad signature":
    "The signature does not fit the header. A signed field was changed, or the key is another.",
  "body hash did not verify": "The body was changed after it was signed.",
  "no key": "DNS has no key for the signature.",
  "invalid public key": "The key record in DNS is not valid, or the key was revoked.",
  "unknown key version": "The key record in DNS has a version other than DKIM1.",
  "unknown key type": "The key in DNS has a type that is not known.",
  "inappropriate hash algorithm": "The key record in DNS does not allow the hash of the signature.",
  "inappropriate key algorithm": "The key in DNS is of another type than the signature.",
  "key not for email": "The key record in DNS is not meant for mail.",
  "From field not signed": "The signature does not cover the From field.",
  "domain mismatch": "The identity (i=) is not in the domain of the signature (d=).",
}

const lastWords = ({ comment }: SignatureResult["status"]) => `${comment || "no reason given"}.`

async function arcResult(
  verifier: DkimVerifier,
  resolver: unknown,
  authors: number,
  now: Date,
): Promise<ArcResult> {
  const { chain, lastEntry, error, keyCache } = verifier.arc
  if (error) return { result: "fail", sealers: [], reason: chainFault(error) }
  if (!chain || !lastEntry) {
    return { result: "none", sealers: [], reason: NO_CHAIN }
  }
  const sealers = chain.map(sealer)
  const { messageSignature: found, "arc-message-signature": field } = lastEntry
  const newest = found && ruling(found, sureFault(found, field, authors, now))
  if (newest?.result !== "pass") {
    const why = newest?.reason ?? "Its algorithm is not known."
    const result = newest?.result === "temperror" ? "temperror" : "fail"
    return { result, sealers, reason: `The newest ARC-Message-Signature does not count. ${why}` }
  }
  try {
    const options = { resolver, minBitLength: MIN_KEY_BITS, strict: true, keyCache }
    await verifyASChain({ chain } as never, options as never)
    return { result: "pass", sealers, reason: `All ${chain.length} seals of the chain are right.` }
  } catch (error) {
    const is_unknown = (error as { code?: unknown }).code === UNKNOWN
    return { result: is_unknown ? "temperror" : "fail", sealers, reason: chainFault(error) }
  }
}

const sealer = ({ "arc-seal": { parsed } }: ArcSet) => String(parsed.d?.value ?? "").toLowerCase()

function chainFault(error: unknown): string {
  const { code, message } = error as { code?: string; message: string }
  if (code === UNKNOWN) return `DNS did not answer for the key of a seal: ${message}.`
  return `The chain is broken: ${message}.`
}
