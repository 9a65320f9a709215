import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

export type SignatureFormat = "standard" | "legacy" | "both"

const PREFIX = "whsec_"
const SECRET_BYTES = 32
const LEAST_BYTES = 24
const MOST_BYTES = 64
const TOLERANCE_SECONDS = 300

/** A fresh secret: `whsec_` and the base64 of 32 random bytes. */
export const newSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64")

/** Whether the text is `whsec_` and the base64 (padded or not) of 24 to 64 bytes. */
export function isSecret(text: string): boolean {
  const found = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text)
  if (!found?.[1]) return false
  const bytes = Buffer.from(found[1], "base64")
  const unpadded = (given: string) => given.replace(/=+$/, "")
  // Decoding forgives what encoding would never write, and other libraries may not forgive it.
  if (unpadded(bytes.toString("base64")) !== unpadded(found[1])) return false
  return bytes.length >= LEAST_BYTES && bytes.length <= MOST_BYTES
}

interface Signed {
  secret: string
  /** Unix seconds of this attempt. */
  timestamp: number
  /** Exactly as it travels. */
  body: string
}

/** `v1,` and the base64 of the HMAC-SHA256 over `id.timestamp.body` (Standard Webhooks). */
export function standardSignature({ secret, id, timestamp, body }: Signed & { id: string }) {
  const mac = new Bun.CryptoHasher("sha256", keyOf(secret)) // half the time of node:crypto's
  return `v1,${mac.update(`${id}.${timestamp}.`).update(body).digest("base64")}`
}

/** `sha256=` and the hex of the HMAC-SHA256 over `timestamp.body`; the key is the whole secret. */
export const legacySignature = ({ secret, timestamp, body }: Signed): string =>
  `sha256=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`

interface ToSign {
  id: string
  timestamp: number
  body: string
  /**
   * The current secret first. After a rotation the previous one follows; only `standard` uses it.
   */
  secrets: readonly [string, ...string[]]
  format: SignatureFormat
}

/** The headers that prove where a delivery comes from, in the format of the endpoint. */
export function signedHeaders({ id, timestamp, body, secrets, format }: ToSign) {
  const headers: Record<string, string> = {}
  if (format !== "legacy") {
    headers["webhook-id"] = id
    headers["webhook-timestamp"] = String(timestamp)
    headers["webhook-signature"] = secrets
      .map((secret) => standardSignature({ secret, id, timestamp, body }))
      .join(" ")
  }
  if (format !== "standard") {
    headers["X-Svc-Timestamp"] = String(timestamp)
    headers["X-Svc-Signature"] = legacySignature({ secret: secrets[0], timestamp, body })
  }
  return headers
}

interface ToVerify {
  secret: string
  /** Names in any case. */
  headers: Readonly<Record<string, string>>
  body: string
  now_seconds: number
  tolerance_seconds?: number
}

type Verdict = "ok" | "bad_signature" | "stale" | "missing"

/**
 * Checks a received delivery in either format; with both, the standard one decides. `missing`: no
 * complete set of headers. `stale`: rightly signed, but more than the tolerance off.
 */
export function verify(given: ToVerify): Verdict {
  const headers = new Map(
    Object.entries(given.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const { secret, body } = given
  const id = headers.get("webhook-id")
  const standard = headers.get("webhook-signature")
  const stamp = headers.get(standard === undefined ? "x-svc-timestamp" : "webhook-timestamp")
  const legacy = headers.get("x-svc-signature")
  if (stamp === undefined || (standard === undefined ? legacy : id) === undefined) return "missing"
  if (!/^\d{1,15}$/.test(stamp)) return "bad_signature"
  const timestamp = Number(stamp)
  const [expected, offered] =
    standard === undefined
      ? [legacySignature({ secret, timestamp, body }), [legacy ?? ""]]
      : [standardSignature({ secret, id: id ?? "", timestamp, body }), standard.split(" ")]
  // Every one is compared, so that the time it takes does not tell which one fits.
  const fitting = offered.filter((signature) => isSame(signature, expected))
  if (fitting.length === 0) return "bad_signature"
  const off = Math.abs(given.now_seconds - timestamp)
  return off > (given.tolerance_seconds ?? TOLERANCE_SECONDS) ? "stale" : "ok"
}

const keyOf = (secret: string) =>
  Buffer.from(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret, "base64")

/** Compares two texts in a time that does not tell where they differ. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
