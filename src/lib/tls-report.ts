import { reportIn } from "./archive"
import { onOneLine } from "./report-fields"
import type { SeenMail } from "./seen-mail"

/** How TLS towards a domain went within a day (RFC 8460). */
export interface TlsReport {
  organization_name: string | null
  contact_info: string | null
  report_id: string | null
  /** ISO 8601, UTC. */
  begin: string | null
  end: string | null
  successful_sessions: number
  failed_sessions: number
  policies: TlsPolicyResult[]
  /** More policies or failures stood in the report than are kept. */
  truncated: boolean
}

interface TlsPolicyResult {
  policy_type: string | null
  policy_domain: string | null
  policy_string: string[]
  mx_host: string[]
  successful_sessions: number
  failed_sessions: number
  failures: TlsFailure[]
}

interface TlsFailure {
  result_type: string | null
  sending_mta_ip: string | null
  receiving_mx_hostname: string | null
  receiving_ip: string | null
  failed_sessions: number
  reason_code: string | null
}

const FORM = {
  typed: /^application\/(?:tlsrpt\+(?:json|gzip)|json|gzip|x-gzip)$/,
  named: /\.json(?:\.gz)?$/i,
  begins: /^(?:\x1f\x8b|(?:\xef\xbb\xbf)?\s*\{)/,
  limits: { bytes: 5 * 1024 * 1024, ratio: 200, entries: 1 },
  entry: () => false,
}

/** The report stands in a row of the database and in an event; the raw message has all of it. */
const MOST_POLICIES = 50
const MOST_FAILURES = 20
const MOST_STRINGS = 50
const MOST_VALUE = 300

/** The report in a mail: JSON or gzip. Undefined when there is none that can be read. Never throws. */
export const readTlsReport = (mail: SeenMail): TlsReport | undefined =>
  reportIn(mail, FORM, fromJson)

function fromJson(bytes: Uint8Array): TlsReport | undefined {
  const report = recordIn(parsed(new TextDecoder().decode(bytes)))
  const policies = listIn(report.policies)
  if (policies === undefined || report["report-id"] === undefined) return undefined
  const range = recordIn(report["date-range"])
  const read = policies.map(policyOf)
  const kept = read.slice(0, MOST_POLICIES).map(({ policy }) => policy)
  return {
    organization_name: textIn(report, "organization-name"),
    contact_info: textIn(report, "contact-info"),
    report_id: textIn(report, "report-id"),
    begin: instant(textIn(range, "start-datetime")),
    end: instant(textIn(range, "end-datetime")),
    successful_sessions: sum(read.map(({ policy }) => policy.successful_sessions)),
    failed_sessions: sum(read.map(({ policy }) => policy.failed_sessions)),
    policies: kept,
    truncated: read.length > MOST_POLICIES || read.some(({ truncated }) => truncated),
  }
}

function policyOf(value: unknown): { policy: TlsPolicyResult; truncated: boolean } {
  const result = recordIn(value)
  const policy = recordIn(result.policy)
  const summary = recordIn(result.summary)
  const failures = listIn(result["failure-details"]) ?? []
  return {
    policy: {
      policy_type: textIn(policy, "policy-type"),
      policy_domain: textIn(policy, "policy-domain"),
      policy_string: textsIn(policy["policy-string"]),
      mx_host: textsIn(policy["mx-host"] ?? policy["mx-host-pattern"]),
      successful_sessions: countIn(summary, "total-successful-session-count"),
      failed_sessions: countIn(summary, "total-failure-session-count"),
      failures: failures.slice(0, MOST_FAILURES).map(failureOf),
    },
    truncated: failures.length > MOST_FAILURES,
  }
}

function failureOf(value: unknown): TlsFailure {
  const failure = recordIn(value)
  return {
    result_type: textIn(failure, "result-type"),
    sending_mta_ip: textIn(failure, "sending-mta-ip"),
    receiving_mx_hostname: textIn(failure, "receiving-mx-hostname"),
    receiving_ip: textIn(failure, "receiving-ip"),
    failed_sessions: countIn(failure, "failed-session-count"),
    reason_code: textIn(failure, "failure-reason-code"),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""))
  } catch {
    return undefined
  }
}

const recordIn = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}

const listIn = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined)

const plainText = (value: unknown): string | null =>
  typeof value === "string" ? onOneLine(value.slice(0, MOST_VALUE)) || null : null

const textIn = (from: Record<string, unknown>, name: string): string | null => plainText(from[name])

/** A list, or the one text that some reporters write instead. */
const textsIn = (value: unknown): string[] =>
  (listIn(value) ?? [value])
    .slice(0, MOST_STRINGS)
    .map(plainText)
    .filter((text) => text !== null)

const MOST_COUNT = 1_000_000_000_000

function countIn(from: Record<string, unknown>, name: string): number {
  const value = Number(from[name] ?? 0)
  return Number.isFinite(value) ? Math.min(Math.max(Math.trunc(value), 0), MOST_COUNT) : 0
}

const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)

function instant(text: string | null): string | null {
  const time = Date.parse(text ?? "")
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}
