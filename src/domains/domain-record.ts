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
