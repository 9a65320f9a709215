import { verify, X509Certificate } from "node:crypto"
import { rootCertificates } from "node:tls"
import { type NetAnswer, type NetRequest, request } from "../../core/net"
import { millis } from "../../core/time"
import { type SnsEnvelope, signedText, snsUrl } from "./envelope"

const TIMEOUT_MS = 10_000
const CERTIFICATE_BYTES = 64 * 1024
const MOST_CERTIFICATES = 20
const SIGNER = /^sns(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?$/

/** How SNS is reached. */
export interface SnsPlace {
  /** PEM of the authority to trust instead of the well-known ones. */
  ca: string | undefined
  /** Networks where it may be, besides the public internet. */
  allow_private: readonly string[]
  /** Where it is not at its usual port and its public address. */
  port?: number
  resolver?: NetRequest["resolver"]
}

/** SNS gives up after an hour; what is older was kept by somebody. Clocks may differ. */
const RECENT_MS = 24 * 3_600_000

export const isRecent = ({ Timestamp }: SnsEnvelope): boolean =>
  Math.abs(millis() - Date.parse(Timestamp)) <= RECENT_MS

/** Version 1 signs with SHA-1, version 2 with SHA-256. */
const DIGESTS: Record<string, string> = { "1": "sha1", "2": "sha256" }

const known = new Map<string, X509Certificate>()

/**
 * Whether SNS signed this: with a certificate that came from SNS over https, names SNS, is within
 * its dates and, where it brings its chain or an authority is set, hangs on it. Rejects with NetError
 * where the certificate cannot be had.
 */
export async function isSigned(envelope: SnsEnvelope, place: SnsPlace): Promise<boolean> {
  const digest = DIGESTS[envelope.SignatureVersion]
  const url = snsUrl(envelope.SigningCertURL)
  if (!digest || !url?.pathname.endsWith(".pem")) return false
  const certificate = await certificateFrom(url, place)
  if (!certificate || !isCurrent(certificate)) return false
  const signature = Buffer.from(envelope.Signature, "base64")
  return verify(digest, Buffer.from(signedText(envelope)), certificate.publicKey, signature)
}

async function certificateFrom(url: URL, place: SnsPlace): Promise<X509Certificate | undefined> {
  const key = `${url.href} ${place.ca ?? ""}`
  const cached = known.get(key)
  if (cached && isCurrent(cached)) return cached
  const answer = await ask(url, place)
  const certificate = answer.status === 200 ? judged(answer.body, place) : undefined
  if (!certificate) return undefined
  if (known.size >= MOST_CERTIFICATES) known.clear()
  known.set(key, certificate)
  return certificate
}

/** A guarded GET of something that SNS named. Rejects with NetError. */
export function ask(url: URL, place: SnsPlace): Promise<NetAnswer> {
  const { ca, allow_private, port, resolver } = place
  const target = new URL(url)
  if (port !== undefined) target.port = String(port)
  return request({
    url: target.href,
    timeout_ms: TIMEOUT_MS,
    capture_bytes: CERTIFICATE_BYTES,
    allow_private,
    resolver,
    ca,
  })
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

function judged(body: Uint8Array, { ca }: SnsPlace): X509Certificate | undefined {
  const chain = read(Buffer.from(body).toString("latin1"))
  const [leaf] = chain
  if (!leaf || leaf.ca || !SIGNER.test(nameOf(leaf))) return undefined
  const roots = ca === undefined ? rootCertificates.flatMap(read) : read(ca)
  return hangsOn(chain, roots, ca !== undefined) ? leaf : undefined
}

/**
 * SNS serves the leaf alone, without what lies between it and the root: then that it came over https
 * from SNS has to do, unless the operator named the authority.
 */
function hangsOn(chain: X509Certificate[], roots: X509Certificate[], is_strict: boolean): boolean {
  const linked = chain.slice(1).every((issuer, at) => isIssuer(issuer, chain[at]))
  if (!linked) return false
  if (chain.length === 1 && !is_strict) return true
  const last = chain.at(-1)
  return roots.some((root) => isIssuer(root, last) || root.fingerprint256 === last?.fingerprint256)
}

function isIssuer(issuer: X509Certificate, subject: X509Certificate | undefined): boolean {
  if (!subject || !issuer.ca || !isCurrent(issuer)) return false
  return subject.checkIssued(issuer) && subject.verify(issuer.publicKey)
}

const isCurrent = ({ validFrom, validTo }: X509Certificate) =>
  Date.parse(validFrom) <= millis() && millis() <= Date.parse(validTo)

const nameOf = ({ subject }: X509Certificate) => /^CN=(.+)$/m.exec(subject)?.[1] ?? ""

function read(text: string): X509Certificate[] {
  try {
    return (text.match(PEM) ?? []).map((pem) => new X509Certificate(pem))
  } catch {
    return []
  }
}
