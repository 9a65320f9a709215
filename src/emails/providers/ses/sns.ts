import { verify, X509Certificate } from "node:crypto"
import { rootCertificates } from "node:tls"
import { type Static, Type as t } from "@sinclair/typebox"
import { type NetAnswer, request } from "../../../core/net"
import { millis } from "../../../core/time"
import type { CallbackNetwork } from "../../../providers/provider"

/** What Amazon SNS posts, as far as it is read here. */
export const SnsEnvelope = t.Object({
  Type: t.String(),
  MessageId: t.String({ maxLength: 200 }),
  TopicArn: t.String({ maxLength: 500 }),
  Message: t.String(),
  Timestamp: t.String({ maxLength: 100 }),
  SignatureVersion: t.String({ maxLength: 10 }),
  Signature: t.String({ maxLength: 4096 }),
  SigningCertURL: t.String({ maxLength: 1000 }),
  Subject: t.Optional(t.Union([t.String(), t.Null()])),
  Token: t.Optional(t.String({ maxLength: 4096 })),
  SubscribeURL: t.Optional(t.String({ maxLength: 2000 })),
})

export const SNS_EXAMPLE = {
  Type: "Notification",
  MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
  TopicArn: "arn:aws:sns:eu-west-1:123456789012:belfry",
  Message: '{"eventType":"Delivery","mail":{"messageId":"0100018c"}}',
  Timestamp: "2026-11-21T10:30:00.000Z",
  SignatureVersion: "1",
  Signature:
    "EXAMPLEpH+DcEwjAPg8O9mY8dReBSwksfg2S7WKQcikcNKWLQjwu6A4VbeS0QHVCkhRS7fUQvi2egU3N858fiTDN6bkkOxYDVrY0Ad8L10Hs3zH81mtnPk5uvvolIC1CXGu43obcgFxeL3khZl8IKvO61GWB6jI9b5+gLPoBc1Q=",
  SigningCertURL: "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
}

export type SnsEnvelope = Static<typeof SnsEnvelope>

type Field = keyof SnsEnvelope

const NOTIFICATION: Field[] = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
const CONFIRMATION: Field[] = [
  ...(["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"] as const),
]

/** The bytes that SNS signs: each field it has, name and value on lines of their own, sorted. */
export function signedText(envelope: SnsEnvelope): string {
  const fields = envelope.Type === "Notification" ? NOTIFICATION : CONFIRMATION
  return fields
    .filter((name) => typeof envelope[name] === "string")
    .map((name) => `${name}\n${envelope[name]}\n`)
    .join("")
}

/** Only SNS itself is asked for certificates and confirmations: no bucket, no other service. */
const HOST = /^sns\.[a-z0-9-]{3,30}\.amazonaws\.com(\.cn)?$/

/** The URL if SNS is behind it, over https on its usual port. */
export function snsUrl(text: string | undefined): URL | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const plain = url.username === "" && url.password === "" && url.port === ""
  return url.protocol === "https:" && plain && HOST.test(url.hostname) ? url : undefined
}

const TIMEOUT_MS = 10_000
const CERTIFICATE_BYTES = 64 * 1024
const MOST_CERTIFICATES = 20
const SIGNER = /^sns(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?$/

/** SNS gives up after an hour; an older notice is a replay. Clocks may differ. */
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
export async function isSigned(envelope: SnsEnvelope, network: CallbackNetwork): Promise<boolean> {
  const digest = DIGESTS[envelope.SignatureVersion]
  const url = snsUrl(envelope.SigningCertURL)
  if (!digest || !url?.pathname.endsWith(".pem")) return false
  const certificate = await certificateFrom(url, network)
  if (!certificate || !isCurrent(certificate)) return false
  const signature = Buffer.from(envelope.Signature, "base64")
  return verify(digest, Buffer.from(signedText(envelope)), certificate.publicKey, signature)
}

async function certificateFrom(
  url: URL,
  network: CallbackNetwork,
): Promise<X509Certificate | undefined> {
  const key = `${url.href} ${network.ca ?? ""}`
  const cached = known.get(key)
  if (cached && isCurrent(cached)) return cached
  const answer = await ask(url, network)
  const certificate = answer.status === 200 ? trusted(answer.body, network) : undefined
  if (!certificate) return undefined
  if (known.size >= MOST_CERTIFICATES) known.clear()
  known.set(key, certificate)
  return certificate
}

/** A guarded GET of something that SNS named. Rejects with NetError. */
export function ask(url: URL, network: CallbackNetwork): Promise<NetAnswer> {
  const { ca, allow_private, port, resolver } = network
  const target = new URL(url)
  if (port !== undefined) target.port = String(port)
  return request({
    url: target.href,
    timeout_ms: TIMEOUT_MS,
    capture_bytes: CERTIFICATE_BYTES,
    allow_private,
    resolver,
    ...(ca !== undefined && { ca }),
  })
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

function trusted(body: Uint8Array, { ca }: CallbackNetwork): X509Certificate | undefined {
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
