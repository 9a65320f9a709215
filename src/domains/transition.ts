import { isoFrom, millisFrom } from "../core/time"
import type { DomainRow, Expected } from "./expected"
import { GRACE_SECONDS, WINDOW_SECONDS } from "./schedule"
import type { RecordCheck, RecordChecks } from "./tables"

export type DomainEvent = "verified" | "verification_failed" | "degraded"

export interface Transition {
  changes: Partial<DomainRow>
  event: DomainEvent | null
  /** Purposes of required records that are not there. */
  missing: string[]
}

/**
 * What a check means for the domain. A record that nobody would speak about is neither there nor
 * missing: it keeps a domain from becoming verified, and never makes it lose that.
 */
export function transition(
  row: DomainRow,
  records: Expected[],
  checks: RecordChecks,
  at: number,
): Transition {
  const required = records.filter((record) => record.required)
  const of = (status: RecordCheck["status"][]) =>
    required.filter(({ key }) => status.includes(checks[key]?.status ?? "pending"))
  const missing = of(["mismatch", "missing"]).map(({ purpose }) => purpose)
  const complete = of(["verified"]).length === required.length && isAccepted(row)
  const unknown = of(["pending"]).length
  if (row.status === "verified") return whileVerified(row, { missing, unknown }, at)
  return { ...whilePending(row, complete, at), missing }
}

/** A provider that keeps identities of its own has to have accepted this one. */
const isAccepted = ({ provider_identity_status, provider_dkim_status }: DomainRow) =>
  [provider_identity_status, provider_dkim_status].every(
    (status) => status === "not_required" || status === "success",
  )

function whilePending(row: DomainRow, complete: boolean, at: number): Omit<Transition, "missing"> {
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
  unknown: number
}

function whileVerified(row: DomainRow, { missing, unknown }: Seen, at: number): Transition {
  if (missing.length === 0) {
    const changes = unknown > 0 ? {} : { warning: null, missing_since: null }
    return { changes, event: null, missing }
  }
  const list = missing.join(", ")
  if (row.missing_since === null) {
    const until = isoFrom(at + GRACE_SECONDS * 1000)
    const warning = `Missing: ${list}. Unless it is back by ${until}, nothing can be sent any more.`
    return { changes: { warning, missing_since: isoFrom(at) }, event: "degraded", missing }
  }
  const lost = (at - millisFrom(row.missing_since)) / 1000
  if (lost < GRACE_SECONDS) return { changes: {}, event: null, missing }
  const warning = `Missing for 48 hours: ${list}. Mail waits until it is back.`
  const back = { status: "pending" as const, verified_at: null, missing_since: null }
  const changes = { ...back, warning, window_began_at: isoFrom(at) }
  return { changes, event: null, missing }
}

/**
 * The checks as they are kept: what a verified domain had, and nobody would speak about now, stays
 * as it was, and says so.
 */
export function kept(row: DomainRow, checks: RecordChecks): RecordChecks {
  const entries = Object.entries(checks) as [keyof RecordChecks, RecordCheck][]
  const lasting = entries.map(([key, check]): [string, RecordCheck] => {
    const before = row.records[key]
    if (check.status !== "pending" || before?.status !== "verified") return [key, check]
    const { mistake, hint, answers } = check
    return [key, { ...before, mistake, hint, answers }]
  })
  return Object.fromEntries(lasting)
}
