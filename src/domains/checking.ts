import { eq, inArray } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { millis, now, secondsFromNow } from "../core/time"
import { emit } from "../events/emit"
import type { Handler } from "../store/job-handler"
import { held } from "../store/locks"
import type { Store, Tx } from "../store/store"
import type { NameServers } from "./authoritative"
import { lookUp } from "./check"
import { type DueCheck, enqueueCheck } from "./check-job"
import * as domains from "./domains"
import { type DomainRow, expectedRecords, type KeyRow } from "./expected"
import { keysOf } from "./keys"
import { type Place, placeFor } from "./place"
import { domainRecord } from "./record"
import { nextCheck, RETIRED_SECONDS } from "./schedule"
import { forget } from "./sending"
import { type AskIdentity, type Standing, standingOf } from "./standing"
import { type AskedChecks, dkimKeys, type RecordChecks, domains as table } from "./tables"
import { type DomainEvent, kept, transition } from "./transition"

const HOUR_MS = 3_600_000
const LEAST_PAUSE_MS = 10_000
const MOST_AN_HOUR = 60

/** What a check needs. */
export interface CheckParts {
  store: Store
  net: NameServers
  place: Place
  /** What the provider of a project thinks of a domain; absent where none keeps identities. */
  identityOf?: AskIdentity | undefined
}

/**
 * A check that somebody asked for, of at most ten seconds. Throws 404, 409 `already_verified`, and
 * 429 `rate_limit_exceeded` for more than one in ten seconds or sixty in an hour.
 */
export async function checkNow(parts: CheckParts, project_id: string, id: string) {
  const row = await parts.store.tx((tx) => begin(tx, project_id, id))
  return (await check(parts, row)) ?? domains.find(parts.store.read, project_id, id)
}

/** One that failed begins a new window. */
async function begin(tx: Tx, project_id: string, id: string): Promise<DomainRow> {
  const row = await domains.hold(tx, project_id, id)
  if (row.status === "verified") {
    fail("already_verified", `${row.domain} is verified.`, { domain_id: id })
  }
  const asked = counted(row.asked)
  const anew =
    row.status === "failed"
      ? { status: "pending" as const, failed_at: null, window_began_at: now() }
      : {}
  const changes = { asked, ...anew, updated_at: now() }
  const after = { ...row, ...changes }
  if (row.status === "failed") {
    Object.assign(changes, { next_check_at: nextCheck(after, [], millis()) })
    await enqueueCheck(tx, { ...after, ...changes })
  }
  await tx.update(table).set(changes).where(eq(table.id, id))
  return { ...after, ...changes }
}

function counted(before: AskedChecks | null): AskedChecks {
  const at = millis()
  const fresh = { last_at: at, hour_began_at: at, count: 1 }
  if (!before || at < before.last_at) return fresh // the clock stepped back
  const pause = before.last_at + LEAST_PAUSE_MS - at
  if (pause > 0) throw tooMany(pause, 1, 10)
  if (at - before.hour_began_at >= HOUR_MS) return fresh
  const rest = before.hour_began_at + HOUR_MS - at
  if (before.count >= MOST_AN_HOUR) throw tooMany(rest, MOST_AN_HOUR, 3600)
  return { ...before, last_at: at, count: before.count + 1 }
}

function tooMany(wait_ms: number, limit: number, window_seconds: number): ApiError {
  const retry_after = Math.max(1, Math.ceil(wait_ms / 1000))
  const message = `A domain is checked ${limit} × in ${window_seconds} s at most. Try again in ${retry_after} s.`
  const details = { retry_after, limit, window_seconds, scope: "domain_check" }
  const headers = { "retry-after": String(retry_after) }
  return new ApiError("rate_limit_exceeded", message, details, { headers })
}

/** Does what its turn has come for, and makes the next turn. A second run of it changes nothing. */
export const runCheck = (parts: CheckParts): Handler<DueCheck> => ({
  async run({ domain_id, project_id, due }) {
    const { store } = parts
    const [row] = await store.read.select().from(table).where(eq(table.id, domain_id))
    if (!row || row.project_id !== project_id || row.next_check_at !== due) return {}
    await check(parts, row)
    return {}
  },
})

/** Looks up outside any transaction, then writes what it means. Undefined when the domain is gone. */
async function check({ store, net, place, identityOf }: CheckParts, row: DomainRow) {
  const here = await placeFor(store.read, row.project_id, place)
  const keys = await keysOf(store.read, row.id)
  const [checks, standing] = await Promise.all([
    lookUp(net, { row, keys, place: here }),
    standingOf(row, identityOf),
  ])
  return store.tx((tx) => settle(tx, row, { checks, keys, place: here, standing }))
}

interface Looked {
  checks: RecordChecks
  /** The keys that were looked for. */
  keys: KeyRow[]
  place: Place
  standing: Standing
}

/** Status, events and the next check together. Undefined when the domain was deleted meanwhile. */
async function settle(tx: Tx, looked: DomainRow, found: Looked) {
  const { checks: all, keys: seen, place, standing } = found
  const [locked] = await held(tx.select().from(table).where(eq(table.id, looked.id)))
  if (!locked) return undefined
  const row: DomainRow = { ...locked, ...standing }
  const checks = stillAsked(row, looked, all)
  const keys = await turnKeys(tx, row, seen, checks)
  const records = expectedRecords(row, keys, place)
  const known = renamed(kept(row, checks), seen, keys)
  let { changes, event, missing } = transition(row, records, known, millis())
  if (event === "verified" && (await domains.isElsewhere(tx, row))) {
    changes = { warning: `${row.domain} is verified in another project.` }
    event = null
  }
  const moments = { last_checked_at: now(), updated_at: now() }
  const after: DomainRow = { ...row, ...changes, ...moments, records: known }
  after.next_check_at = nextCheck(after, keys, millis())
  await tx.update(table).set(after).where(eq(table.id, row.id))
  // Of two checks at once only the first one makes the next turn.
  if (after.next_check_at !== row.next_check_at) await enqueueCheck(tx, after)
  if (after.status !== row.status) tx.afterCommit(forget)
  if (event) await tell(tx, after, keys, { place, event, missing })
  return after
}

interface News {
  place: Place
  event: DomainEvent
  missing: string[]
}

async function tell(tx: Tx, row: DomainRow, keys: KeyRow[], { place, event, missing }: News) {
  const { id, account_id, project_id, domain, status, verified_at } = row
  const { records_verified, records_total } = domainRecord(row, keys, place)
  const facts = { id, domain, status, records_verified, records_total, verified_at }
  const data = event === "degraded" ? { ...facts, missing } : facts
  await emit(tx, { account_id, project_id, subject_id: id, type: `domain.${event}`, data })
}

/**
 * The key whose record is seen for the first time takes over, at that very moment: until then the
 * old one signs, and from then on its record is only kept for mail on its way.
 */
async function turnKeys(
  tx: Tx,
  { id }: DomainRow,
  seen: KeyRow[],
  checks: RecordChecks,
): Promise<KeyRow[]> {
  const keys = await keysOf(tx, id)
  const isSeen = ({ selector, id: key_id }: KeyRow) =>
    seen.some((key) => key.id === key_id) && checks[`dkim:${selector}`]?.status === "verified"
  const changes = new Map<string, Partial<KeyRow>>()
  for (const algorithm of ["rsa", "ed25519"]) {
    const ours = keys.filter((key) => key.algorithm === algorithm && key.state !== "retired")
    const newest = ours.findLast((key) => key.state === "pending" && isSeen(key))
    if (!newest) continue
    const retire_at = secondsFromNow(RETIRED_SECONDS)
    const older = ours.filter(({ id: key_id }) => key_id < newest.id)
    for (const one of older) changes.set(one.id, { state: "retired", retire_at })
    changes.set(newest.id, { state: "active", seen_at: now() })
  }
  for (const key of keys.filter((one) => isLost(one, checks))) {
    if (!changes.has(key.id)) changes.set(key.id, { state: "pending" })
  }
  for (const [key_id, change] of changes) {
    await tx.update(dkimKeys).set(change).where(eq(dkimKeys.id, key_id))
  }
  const over = keys.filter(({ retire_at }) => retire_at !== null && retire_at <= now())
  const ids = over.map((key) => key.id)
  if (ids.length > 0) await tx.delete(dkimKeys).where(inArray(dkimKeys.id, ids))
  return keys
    .filter((key) => !ids.includes(key.id))
    .map((key) => ({ ...key, ...changes.get(key.id) }))
}

/** An Ed25519 record is an extra: a signature that nobody can verify is worse than none. */
function isLost({ algorithm, state, selector }: KeyRow, checks: RecordChecks): boolean {
  const status = checks[`dkim:${selector}`]?.status
  const absent = status === "missing" || status === "mismatch" || status === undefined
  return algorithm === "ed25519" && state === "active" && absent
}

/** After a switch the new key's record is the required one, and the old one stands beside it. */
function renamed(checks: RecordChecks, seen: KeyRow[], keys: KeyRow[]): RecordChecks {
  const active = (list: KeyRow[]) =>
    list.find(({ algorithm, state }) => algorithm === "rsa" && state === "active")?.selector
  const [before, after] = [active(seen), active(keys)]
  if (before === after || before === undefined || after === undefined) return checks
  const { dkim: old, ...rest } = checks
  const fresh = rest[`dkim:${after}`]
  delete rest[`dkim:${after}`]
  return { ...rest, ...(fresh && { dkim: fresh }), ...(old && { [`dkim:${before}`]: old }) }
}

/** What was looked for under a name that a change has replaced meanwhile says nothing. */
function stillAsked(row: DomainRow, looked: DomainRow, checks: RecordChecks): RecordChecks {
  const { tracking, spf, return_path, ...rest } = checks
  return {
    ...rest,
    ...(row.return_path === looked.return_path && {
      ...(spf && { spf }),
      ...(return_path && { return_path }),
    }),
    ...(row.tracking_subdomain === looked.tracking_subdomain && tracking && { tracking }),
  }
}
