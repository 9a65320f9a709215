import { createHash, type KeyObject, sign as signBytes } from "node:crypto"

/** A mail as text in Latin-1, so that each character is a byte. Fields may be folded; they have no last CRLF. */
export interface DraftMail {
  fields: string[]
  body: string
}

export interface SigningKey {
  algorithm: "rsa-sha256" | "rsa-sha1" | "ed25519-sha256"
  key: KeyObject
}

export interface SignatureTags {
  domain: string
  selector: string
  /** `relaxed/simple` and so on. */
  canon: string
  h: string[]
  /** Further tags in their order: `x=1`. */
  more?: string[]
  /** The `l=` of the body. */
  length?: number
}

export const bytesOf = ({ fields, body }: DraftMail): Buffer =>
  Buffer.from(`${fields.map((field) => `${field}\r\n`).join("")}\r\n${body}`, "latin1")

/** A DKIM-Signature as RFC 6376 3 says, by code of the tests alone. It may be as wrong as the tags are. */
export function dkimField(mail: DraftMail, tags: SignatureTags, signing: SigningKey): string {
  const first = `v=1; a=${signing.algorithm}; `
  return signatureField("DKIM-Signature", first, mail, tags, signing)
}

export interface SealTags extends SignatureTags {
  instance: number
  cv: string
  results: string
}

/** A whole ARC set (RFC 8617 4), the newest field first; `earlier` are the sets before it, the oldest first. */
export function arcSet(
  mail: DraftMail,
  earlier: ArcFields[],
  tags: SealTags,
  signing: SigningKey,
): ArcFields {
  const { instance, domain, selector, cv, results } = tags
  const first = `i=${instance}; a=${signing.algorithm}; `
  const aar = `ARC-Authentication-Results: i=${instance}; ${results}`
  const ams = signatureField("ARC-Message-Signature", first, mail, tags, signing)
  const unsigned = `ARC-Seal: ${first}cv=${cv}; d=${domain}; s=${selector}; t=1700000000; b=`
  const chain = [...earlier.flatMap((set) => [set.aar, set.ams, set.as]), aar, ams]
  const data = [...chain.map((field) => relaxedField(field)), relaxedField(unsigned)].join("\r\n")
  return { aar, ams, as: unsigned + signatureOf(data, signing) }
}

export interface ArcFields {
  aar: string
  ams: string
  as: string
}

function signatureField(
  name: string,
  first: string,
  { fields, body }: DraftMail,
  { domain, selector, canon, h, more = [], length }: SignatureTags,
  signing: SigningKey,
): string {
  const [header_canon, body_canon] = canon.split("/")
  const hash = signing.algorithm.endsWith("sha1") ? "sha1" : "sha256"
  const canonical = body_canon === "relaxed" ? relaxedBody(body) : simpleBody(body)
  const covered = length === undefined ? canonical : canonical.slice(0, length)
  const bh = createHash(hash).update(covered, "latin1").digest("base64")
  const tags = [
    `c=${canon}`,
    `d=${domain}`,
    `s=${selector}`,
    ...(length === undefined ? [] : [`l=${length}`]),
    ...more,
    `h=${h.join(":")}`,
    `bh=${bh}`,
  ]
  const unsigned = `${name}: ${first}${tags.join(";\r\n ")};\r\n b=`
  const line = header_canon === "relaxed" ? relaxedField : (field: string) => field
  const data = [...chosen(fields, h).map(line), line(unsigned)].join("\r\n")
  return unsigned + signatureOf(data, signing)
}

/** RFC 6376 5.4.2: of several fields of a name the last one first. */
function chosen(fields: string[], h: string[]): string[] {
  const left = [...fields]
  return h.flatMap((name) => {
    const at = left.findLastIndex((field) => nameOf(field) === name.trim().toLowerCase())
    return at === -1 ? [] : left.splice(at, 1)
  })
}

const nameOf = (field: string) => field.slice(0, field.indexOf(":")).trim().toLowerCase()

function signatureOf(data: string, { algorithm, key }: SigningKey): string {
  const bytes = Buffer.from(data, "latin1")
  if (algorithm === "ed25519-sha256") {
    return signBytes(null, createHash("sha256").update(bytes).digest(), key).toString("base64")
  }
  return signBytes(algorithm === "rsa-sha1" ? "sha1" : "sha256", bytes, key).toString("base64")
}

function relaxedField(field: string): string {
  const value = field.slice(field.indexOf(":") + 1).replaceAll("\r\n", "")
  return `${nameOf(field)}:${value.replace(/[ \t]+/g, " ").trim()}`
}

export const simpleBody = (body: string) => `${body.replace(/(?:\r\n)*$/, "")}\r\n`

function relaxedBody(body: string): string {
  const lines = body.split("\r\n").map((line) => line.replace(/[ \t]+/g, " ").replace(/ $/, ""))
  const text = lines.join("\r\n").replace(/(?:\r\n)*$/, "")
  return text === "" ? "" : `${text}\r\n`
}
