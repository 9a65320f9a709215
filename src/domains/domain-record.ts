import { settings } from "../core/config"
import { fieldsOf } from "../lib/record-fields"
import { refusalText } from "../providers/health"
import {
  type DomainRow,
  type Expected,
  expectedRecords,
  type KeyRow,
  REQUIRED,
  type RecordTargets,
  UNUSABLE_TARGET,
  unusableTarget,
} from "./expected-records"
import { organizational, relativeTo } from "./names"
import { identityShown } from "./provider-identity"
import { Domain, DomainStatusRecord } from "./schemas"
import type { RecordCheck } from "./tables"

const TTL = 3600

const UNSEEN: RecordCheck = {
  status: "pending",
  found: [],
  hint: null,
  mistake: null,
  difference: null,
  answers: [],
}

/** The Domain record of the contract. */
export function toResponse(stored: DomainRow, keys: KeyRow[], targets: RecordTargets) {
  const row: DomainRow = { ...stored, ...identityShown(stored, targets) }
  const dns_records = recordsOf(row, keys, targets)
  const required = dns_records.filter((one) => one.required)
  const open = new Set(required.filter((one) => !one.verified).map(({ purpose }) => purpose))
  const purposes = new Set(required.map(({ purpose }) => purpose))
  const records_verified = purposes.difference(open).size
  return fieldsOf(Domain, {
    ...row,
    dns_records,
    records_total: REQUIRED,
    records_verified,
    dkim_selectors: dns_records.flatMap(({ purpose, type, host }) =>
      purpose === "dkim" && type === "TXT" ? [host.slice(0, host.indexOf("._domainkey"))] : [],
    ),
  })
}

/** Its records, with what the last check saw of them. */
export const recordsOf = (row: DomainRow, keys: KeyRow[], targets: RecordTargets) =>
  expectedRecords(row, keys, targets).map((record) => dnsRecord(row, keys, record, targets))

export type DnsRecord = ReturnType<typeof dnsRecord>

function dnsRecord(row: DomainRow, keys: KeyRow[], record: Expected, targets: RecordTargets) {
  const { key, dkim, purpose, type, host, value, priority, required } = record
  const { status, found, hint, mistake, difference, answers } = row.records[key] ?? UNSEEN
  const retired = keys.find(
    ({ selector, state }) => selector === dkim?.selector && state === "retired",
  )
  const own = retired ? { mistake, hint: farewell(retired) } : { mistake, hint }
  return {
    purpose,
    type,
    name: relativeTo(host, organizational(row.domain)),
    host,
    value,
    priority,
    ttl: TTL,
    required,
    verified: status === "verified",
    status,
    found,
    ...explained(record, refusedHint(record, status, targets) ?? own),
    difference,
    answers,
  }
}

/** The relay of the project refuses the host that reports would come to. */
function refusedHint(
  { purpose, host }: Expected,
  status: RecordCheck["status"],
  targets: RecordTargets,
) {
  if (purpose !== "return_path") return undefined
  const used = status === "verified" ? host : settings()["domains.host"]?.toLowerCase()
  const words = targets.refused?.[used ?? ""]
  if (used === undefined || !words) return undefined
  return { mistake: "return_path_refused", hint: refusalText(used, words) }
}

/** An unusable value comes first, because the user must mend it before they add the record. */
function explained(record: Expected, { mistake, hint }: Pick<RecordCheck, "mistake" | "hint">) {
  const blind = unusableTarget(record)
  if (blind === null) return { hint, mistake }
  const is_named = mistake !== null && mistake !== "not_there"
  return {
    hint: hint === null ? blind : `${blind} ${hint}`,
    mistake: is_named ? mistake : UNUSABLE_TARGET,
  }
}

const farewell = ({ retire_at }: KeyRow) =>
  `This key no longer signs mail. You may remove the record after ${retire_at}.`

/** The answer of `status`. */
export function toStatus(row: DomainRow, keys: KeyRow[], targets: RecordTargets) {
  const domain = toResponse(row, keys, targets)
  const progress = Math.round((100 * domain.records_verified) / domain.records_total)
  return fieldsOf(DomainStatusRecord, { ...domain, domain_id: row.id, progress })
}

export const FORMATS = ["bind", "cloudflare", "terraform"] as const
type Format = (typeof FORMATS)[number]

/** Maximum bytes of one string in a TXT record (RFC 1035 3.3.14). */
const STRING_BYTES = 255

/** The records as a zone file (RFC 1035 5), as one for Cloudflare's import, or as Terraform. */
export function zonefile(domain: string, records: DnsRecord[], format: Format): string {
  if (format === "terraform") return terraform(records)
  const lines = records.map((record) => line(record))
  return format === "bind" ? bind(domain, lines) : cloudflare(domain, lines)
}

const bind = (domain: string, lines: string[]) =>
  [`; Records of ${domain}. Names are absolute, so no $ORIGIN is needed.`, ...lines, ""].join("\n")

/** Its import reads the same form, and proxies what it is not told to leave alone. */
const cloudflare = (domain: string, lines: string[]) => {
  const plain = lines.map((one) => `${one} ; cf_tags=cf-proxied:false`)
  return [`;; Domain: ${domain}.`, ...plain, ""].join("\n")
}

function line({ host, ttl, type, priority, value }: DnsRecord): string {
  const data = { TXT: () => strings(value).join(" "), MX: () => `${priority} ${value}.` }
  const written = type === "CNAME" ? `${value}.` : data[type]()
  return `${host}.\t${ttl}\tIN\t${type}\t${written}`
}

const strings = (value: string): string[] => {
  const parts = value.match(new RegExp(`[\\s\\S]{1,${STRING_BYTES}}`, "g")) ?? [""]
  return parts.map((part) => `"${part.replace(/["\\]/g, "\\$&")}"`)
}

/** For Cloudflare's provider from version 5 on; a zone elsewhere needs another resource's name. */
function terraform(records: DnsRecord[]): string {
  const names = new Map<string, number>()
  const blocks = records.map((record) => {
    const base = record.purpose
    const seen = (names.get(base) ?? 0) + 1
    names.set(base, seen)
    return block(seen === 1 ? base : `${base}_${seen}`, record)
  })
  return [PROVIDER, VARIABLE, ...blocks].join("\n")
}

const PROVIDER = `terraform {
  required_providers {
    cloudflare = {
      source  = "cloudflare/cloudflare"
      version = "~> 5.0"
    }
  }
}
`

const VARIABLE = `variable "zone_id" {
  type = string
}
`

function block(name: string, { host, type, value, priority, ttl }: DnsRecord): string {
  const fields: [string, string][] = [
    ["zone_id", "var.zone_id"],
    ["name", literal(host)],
    ["type", literal(type)],
    ["content", literal(value)],
    ["ttl", String(ttl)],
    ...(priority === null ? [] : [["priority", String(priority)] as [string, string]]),
  ]
  const width = Math.max(...fields.map(([key]) => key.length))
  const lines = fields.map(([key, text]) => `  ${key.padEnd(width)} = ${text}`)
  return [`resource "cloudflare_dns_record" "${name}" {`, ...lines, "}", ""].join("\n")
}

/** In HCL `${` and `%{` begin a template; doubled, the first character stands for itself. */
const literal = (text: string) =>
  JSON.stringify(text).replace(/[$%]\{/g, (found) => found.charAt(0) + found)
