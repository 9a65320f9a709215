import { isoFrom, millisFrom } from "../core/time"
import { GRACE_SECONDS, WINDOW_SECONDS } from "./check-schedule"
import type { DomainRow, Expected, RecordKey } from "./expected-records"
import type { RecordCheck, RecordChecks } from "./tables"

export type DomainEvent = "verified" | "verification_failed" | "degraded"

interface Transition {
  changes: Partial<DomainRow>
  event: DomainEvent | null
  /** Purposes of required records that are not there. */
  missing: string[]
  /** Since when a verified domain lacks each record that it lacks. */
  lost: Lost
}

type Lost = Partial<Record<RecordKey, string>>

/**
 * What a check changes in the domain's status. A record that no server answered about is neither
 * present nor missing: it prevents verification, but a verified domain keeps its status. With
 * `is_elsewhere` another project has verified the name, so this domain cannot become verified.
 */
export function transition(
  row: DomainRow,
  records: Expected[],
  checks: RecordChecks,
  at: number,
  is_elsewhere = false,
): Transition {
  const required = records.filter((record) => record.required)
  const of = (status: RecordCheck["status"][]) =>
    required.filter(({ key }) => status.includes(checks[key]?.status ?? "pending"))
  const absent = of(["mismatch", "missing"])
  const missing = [...new Set(absent.map(({ purpose }) => purpose))]
  if (row.status === "verified") {
    const silent = of(["pending"]).map(({ key }) => key)
    return whileVerified(row, { missing, absent: absent.map(({ key }) => key), silent }, at)
  }
  const seen = of(["verified"]).length === required.length && isAccepted(row)
  const { changes, event } = whilePending(row, seen && !is_elsewhere, at)
  const warning = `${row.domain} is verified in another project, so it cannot be verified here.`
  return {
    changes: seen && is_elsewhere ? { ...changes, warning } : changes,
    event,
    missing,
    lost: {},
  }
}

/** A provider that verifies domains itself has to have accepted this one. */
const isAccepted = ({ provider_identity_status, provider_dkim_status }: DomainRow) =>
  [provider_identity_status, provider_dkim_status].every(
    (status) => status === "not_required" || status === "success",
  )

type Step = Pick<Transition, "changes" | "event">

function whilePending(row: DomainRow, complete: boolean, at: number): Step {
  if (complete) {
    const verified_at = isoFrom(at)
    const clean = { warning: null, missing_since: null, failed_at: null }
    return { changes: { status: "verified", verified_at, ...clean }, event: "verified" }
  }
  const age = (at - millisFrom(row.window_began_at)) / 1000
  if (row.status === "failed" || age < WINDOW_SECONDS) return { changes: {}, event: null }
  const changes = { status: "failed" as const, failed_at: isoFrom(at) }
  return { changes, event: "verification_failed" }
}

interface Seen {
  missing: string[]
  absent: RecordKey[]
  /** No server answered about them. */
  silent: RecordKey[]
}

/** Each record has its own 48 hours, and its loss is reported once. */
function whileVerified(row: DomainRow, { missing, absent, silent }: Seen, at: number): Transition {
  const before = lostBefore(row)
  const since = (key: RecordKey) => before[key] ?? isoFrom(at)
  const still = [...absent, ...silent.filter((key) => before[key] !== undefined)]
  const lost: Lost = Object.fromEntries(still.map((key) => [key, since(key)]))
  const missing_since = still.map(since).sort()[0] ?? null
  if (missing_since === null) {
    return { changes: { warning: null, missing_since }, event: null, missing, lost }
  }
  const first = Math.min(...absent.map((key) => millisFrom(since(key))))
  if (at - first >= GRACE_SECONDS * 1000) return { ...lapsed(missing, at), lost }
  if (absent.length === 0) return { changes: { missing_since }, event: null, missing, lost }
  const until = isoFrom(millisFrom(missing_since) + GRACE_SECONDS * 1000)
  const warning = `These DNS records are missing: ${missing.join(", ")}. If they are not back by ${until}, this domain can no longer send.`
  const is_new = absent.some((key) => before[key] === undefined)
  const event = is_new ? "degraded" : null
  return { changes: { warning, missing_since }, event, missing, lost }
}

function lostBefore({ records, missing_since }: DomainRow): Lost {
  const lost: Lost = {}
  for (const [key, check] of Object.entries(records) as [RecordKey, RecordCheck][]) {
    const is_absent = check.status === "missing" || check.status === "mismatch"
    // A row of an earlier version knows only when its first record went missing.
    const since = check.missing_since ?? (is_absent ? missing_since : null)
    if (since !== null && missing_since !== null) lost[key] = since
  }
  return lost
}

function lapsed(missing: string[], at: number) {
  const warning = `These DNS records have been missing for 48 hours: ${missing.join(", ")}. Mail waits until they are back.`
  const back = { status: "pending" as const, verified_at: null, missing_since: null }
  const changes = { ...back, warning, window_began_at: isoFrom(at) }
  return { changes, event: null, missing }
}

/**
 * The checks to store. A record of a verified domain that no server answered about keeps its last
 * known result, with the new hint.
 */
export function kept(row: DomainRow, checks: RecordChecks, lost: Lost = {}): RecordChecks {
  const entries = Object.entries(checks) as [RecordKey, RecordCheck][]
  const lasting = entries.map(([key, check]): [string, RecordCheck] => {
    const before = row.records[key]
    const missing_since = lost[key]
    if (missing_since) return [key, { ...check, missing_since }]
    const is_kept = row.status === "verified" && before?.status === "verified"
    if (check.status !== "pending" || !is_kept) return [key, check]
    const { mistake, hint, answers } = check
    return [key, { ...before, mistake, hint, answers }]
  })
  return Object.fromEntries(lasting)
}
