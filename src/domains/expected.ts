import { organizational } from "./names"
import type { Place } from "./place"
import type { DkimAlgorithm, dkimKeys, domains, RecordChecks, RecordPurpose } from "./tables"

export type DomainRow = typeof domains.$inferSelect
export type KeyRow = typeof dkimKeys.$inferSelect

export type RecordKey = keyof RecordChecks

/** A record that has to be, or may be, in the zone. */
export interface Expected {
  key: RecordKey
  purpose: RecordPurpose
  type: "TXT" | "MX" | "CNAME"
  host: string
  value: string
  priority: number | null
  required: boolean
  /** Of a DKIM record. */
  dkim: { selector: string; algorithm: DkimAlgorithm; public_key: string } | null
}

/** How many of them are required. */
export const REQUIRED = 4

const MX_PRIORITY = 10

/** Every record of a domain, in the order in which people read them. */
export function expectedRecords(row: DomainRow, keys: KeyRow[], place: Place): Expected[] {
  const { domain, verification_token, return_path, tracking_subdomain } = row
  const bounce = `${return_path}.${domain}`
  const spf = `v=spf1 ${place.mechanisms.join(" ")} ~all`
  const dmarc = `v=DMARC1; p=none; rua=mailto:dmarc@${organizational(domain)}`
  const mine = `svc-domain-verification=${verification_token}`
  const mx = { type: "MX", value: place.host, priority: MX_PRIORITY, required: false } as const
  return [
    text("verification", `_svc-verify.${domain}`, mine),
    text("spf", bounce, spf),
    ...keys.filter((key) => isShown(key, place)).map((key) => dkimRecord(key, domain)),
    text("dmarc", `_dmarc.${domain}`, dmarc),
    { ...NONE, ...mx, key: "return_path", purpose: "return_path", host: bounce },
    ...(tracking_subdomain ? [trackingRecord(`${tracking_subdomain}.${domain}`, place)] : []),
    ...(row.receiving
      ? [{ ...NONE, ...mx, key: "receiving", purpose: "receiving", host: domain } as const]
      : []),
  ]
}

const NONE = { priority: null, dkim: null }

const text = (
  purpose: "verification" | "spf" | "dmarc",
  host: string,
  value: string,
): Expected => ({
  ...NONE,
  key: purpose,
  purpose,
  type: "TXT",
  host,
  value,
  required: true,
})

const trackingRecord = (host: string, { tracking_host }: Place): Expected => ({
  ...NONE,
  key: "tracking",
  purpose: "tracking",
  type: "CNAME",
  host,
  value: tracking_host,
  required: false,
})

/** Ed25519 is a choice of the operator's, and what was published before stays in sight. */
const isShown = ({ algorithm }: KeyRow, { ed25519 }: Place) => algorithm === "rsa" || ed25519

function dkimRecord({ selector, algorithm, public_key, state }: KeyRow, domain: string): Expected {
  const required = algorithm === "rsa" && state === "active"
  return {
    ...NONE,
    key: required ? "dkim" : `dkim:${selector}`,
    purpose: "dkim",
    type: "TXT",
    host: `${selector}._domainkey.${domain}`,
    value: `v=DKIM1; k=${algorithm}; p=${public_key}`,
    required,
    dkim: { selector, algorithm, public_key },
  }
}
