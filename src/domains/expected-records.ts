import { organizational } from "./names"
import type { RecordTargets } from "./record-targets"
import type {
  DkimAlgorithm,
  DkimAlias,
  dkimKeys,
  domains,
  RecordChecks,
  RecordPurpose,
} from "./tables"

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
  /** Of a DKIM record with a key of ours. */
  dkim: { selector: string; algorithm: DkimAlgorithm; public_key: string } | null
}

/** For how many purposes records are required; the three of a provider that signs are one. */
export const REQUIRED = 4

const MX_PRIORITY = 10

/** Every record of a domain, in the order in which people read them. */
export function expectedRecords(
  row: DomainRow,
  keys: KeyRow[],
  targets: RecordTargets,
): Expected[] {
  const { domain, verification_token, return_path, tracking_subdomain } = row
  const bounce = `${return_path}.${domain}`
  const spf = `v=spf1 ${targets.mechanisms.join(" ")} ~all`
  const receives = row.receiving && targets.receives
  const reports = receives ? domain : organizational(domain) // a receiving domain reads its reports
  const dmarc = `v=DMARC1; p=none; rua=mailto:dmarc@${reports}`
  const mine = `svc-domain-verification=${verification_token}`
  const aliases = targets.keeps_identities ? (row.provider_dkim ?? []) : []
  const ours = keys.filter((key) => isShown(key, targets))
  const mx = { type: "MX", value: targets.host, priority: MX_PRIORITY, required: false } as const
  return [
    text("verification", `_svc-verify.${domain}`, mine),
    text("spf", bounce, spf),
    ...aliases.map((alias) => aliasRecord(alias, domain)),
    ...ours.map((key) => dkimRecord(key, domain, aliases.length === 0)),
    text("dmarc", `_dmarc.${domain}`, dmarc),
    { ...NONE, ...mx, key: "return_path", purpose: "return_path", host: bounce },
    ...(tracking_subdomain ? [trackingRecord(`${tracking_subdomain}.${domain}`, targets)] : []),
    ...(receives
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

const alias = { ...NONE, type: "CNAME" } as const

const trackingRecord = (host: string, { tracking_host: value }: RecordTargets): Expected => ({
  ...alias,
  key: "tracking",
  purpose: "tracking",
  host,
  value,
  required: false,
})

const aliasRecord = ({ selector, target: value }: DkimAlias, domain: string): Expected => ({
  ...alias,
  key: `dkim:${selector}`,
  purpose: "dkim",
  host: `${selector}._domainkey.${domain}`,
  value,
  required: true,
})

/** Ed25519 is a choice of the operator's, and what was published before stays in sight. */
const isShown = ({ algorithm }: KeyRow, { ed25519 }: RecordTargets) =>
  algorithm === "rsa" || ed25519

/** With `counts`, no other party signs the mail. */
function dkimRecord(key: KeyRow, domain: string, counts: boolean): Expected {
  const { selector, algorithm, public_key, state } = key
  const is_main = algorithm === "rsa" && state === "active"
  return {
    ...NONE,
    key: is_main ? "dkim" : `dkim:${selector}`,
    purpose: "dkim",
    type: "TXT",
    host: `${selector}._domainkey.${domain}`,
    value: `v=DKIM1; k=${algorithm}; p=${public_key}`,
    required: is_main && counts,
    dkim: { selector, algorithm, public_key },
  }
}
