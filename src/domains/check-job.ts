import { asc, eq } from "drizzle-orm"
import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import { ApiError, fail } from "../core/errors"
import { isoFrom, millis, millisFrom, now } from "../core/time"
import { emit } from "../events/emit"
import type { JobHandler } from "../jobs/jobs"
import type { ProviderDescriptor } from "../providers/provider"
import { forUpdate } from "../store/columns"
import type { Store, Tx } from "../store/store"
import type { NameServers } from "./authoritative"
import { checkRecords, endOfCheck } from "./check"
import {
  type DueCheck,
  enqueueCheck,
  GRACE_SECONDS,
  nextCheck,
  WINDOW_SECONDS,
} from "./check-schedule"
import { toResponse } from "./domain-record"
import * as domains from "./domains"
import {
  type DomainRow,
  type Expected,
  expectedRecords,
  type KeyRow,
  type RecordKey,
  type RecordTargets,
  recordTargets,
  targetsOfProject,
} from "./expected-records"
import { activateSeenKeys, movePrimaryDkim } from "./key-rotation"
import { keysOf } from "./keys"
import {
  type AskIdentity,
  askProvider,
  type IdentityColumns,
  identityShown,
} from "./provider-identity"
import { type ChecksQuery, type RecordCheck, type RecordChecks, domains as table } from "./tables"

const HOUR_MS = 3_600_000
const LEAST_PAUSE_MS = 10_000
const MOST_AN_HOUR = 60

export interface CheckParts {
  store: Store
  net: NameServers
  targets: RecordTargets
  /** Asks the provider of a project about a domain; absent where no provider keeps identities. */
  identityOf?: AskIdentity | undefined
}

/** Shorter than usual: a caller waits for the check, and every server is asked twice. */
const TRY_MS = 1500

/** What checks need, by the settings. */
export function openChecks(
  store: Store,
  settings: Settings,
  providers: readonly ProviderDescriptor[],
): CheckParts {
  const servers = settings["dns.servers"]
  const dns = resolver({ servers, try_ms: TRY_MS })
  return {
    store,
    net: { dns, servers, try_ms: TRY_MS },
    targets: recordTargets(settings, providers),
  }
}

/**
 * A check on request, of at most ten seconds. Throws 404, 409 `already_verified`, and
 * 429 `rate_limit_exceeded` for more than one in ten seconds or sixty in an hour.
 */
export async function checkNow(parts: CheckParts, project_id: string, id: string) {
  const row = await parts.store.tx((tx) => begin(tx, project_id, id))
  return (await check(parts, row)) ?? domains.find(parts.store.read, project_id, id)
}

/** One that failed begins a new window. */
async function begin(tx: Tx, project_id: string, id: string): Promise<DomainRow> {
  const row = await domains.forUpdate(tx, project_id, id)
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

function counted(before: ChecksQuery | null): ChecksQuery {
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
  const message = `A domain can be checked at most ${limit} × in ${window_seconds} s. Try again in ${retry_after} s.`
  const details = { retry_after, limit, window_seconds, scope: "domain_check" }
  return new ApiError("rate_limit_exceeded", message, details)
}

/** Does what its turn has come for, and makes the next turn. A second run of it changes nothing. */
export const runCheck = (parts: CheckParts): JobHandler<DueCheck> => ({
  async run({ domain_id, project_id, due }) {
    const { store } = parts
    const [row] = await store.read.select().from(table).where(eq(table.id, domain_id))
    if (!row || row.project_id !== project_id || row.next_check_at !== due) return {}
    await check(parts, row)
    return {}
  },
})

/** Looks up outside any transaction, then writes what it means. Undefined when the domain is gone. */
async function check({ store, net, targets, identityOf }: CheckParts, row: DomainRow) {
  const until = endOfCheck()
  const here = await targetsOfProject(store.read, row.project_id, targets)
  const keys = await keysOf(store.read, row.id)
  // The provider comes first, because it may require its own records. Half a minute is too long to wait.
  const identity = await askProvider(row, { ask: identityOf, targets: here, ms: askingMs(net) })
  const asked = { row: { ...row, ...identity }, keys, targets: here }
  const checks = await checkRecords(net, asked, until)
  return store.tx((tx) => settle(tx, row, { checks, keys, targets: here, identity }))
}

/** How long a provider may take to tell what it thinks of a domain. */
export const askingMs = ({ try_ms }: NameServers) => 2 * try_ms

interface Looked {
  checks: RecordChecks
  keys: KeyRow[]
  targets: RecordTargets
  identity: Partial<IdentityColumns>
}

/** Status, events and the next check together. Undefined when the domain was deleted meanwhile. */
async function settle(tx: Tx, looked: DomainRow, found: Looked) {
  const { checks: all, keys: seen, targets, identity } = found
  const namesakes = await namesakesForUpdate(tx, looked.domain)
  const locked = namesakes.find(({ id }) => id === looked.id)
  if (!locked) return undefined
  const is_elsewhere = namesakes.some(({ id, status }) => id !== looked.id && status === "verified")
  const row: DomainRow = { ...locked, ...identityShown({ ...locked, ...identity }, targets) }
  const checks = stillAsked(row, looked, all)
  const keys = await activateSeenKeys(tx, row, seen, checks)
  const records = expectedRecords(row, keys, targets)
  const saw = movePrimaryDkim(checks, seen, keys)
  const { changes, event, missing, lost } = transition(row, records, saw, millis(), is_elsewhere)
  const moments = { last_checked_at: now(), updated_at: now() }
  const after: DomainRow = { ...row, ...changes, ...moments, records: kept(row, saw, lost) }
  after.next_check_at = nextCheck(after, keys, millis())
  await tx.update(table).set(after).where(eq(table.id, row.id))
  // Of two checks at once only the first one makes the next turn.
  if (after.next_check_at !== row.next_check_at) await enqueueCheck(tx, after)
  if (event) await notify(tx, after, keys, { targets, event, missing })
  return after
}

/**
 * The rows of this name in all projects, in one order, so that of two checks at once only one finds
 * no other project verified. Only this and `create` ask about other projects.
 */
const namesakesForUpdate = (tx: Tx, domain: string): Promise<DomainRow[]> =>
  forUpdate(tx.select().from(table).where(eq(table.domain, domain)).orderBy(asc(table.id)))

interface News {
  targets: RecordTargets
  event: DomainEvent
  missing: string[]
}

async function notify(tx: Tx, row: DomainRow, keys: KeyRow[], { targets, event, missing }: News) {
  const { id, account_id, project_id, domain, status, verified_at } = row
  const { records_verified, records_total } = toResponse(row, keys, targets)
  const facts = { id, domain, status, records_verified, records_total, verified_at }
  const data = event === "degraded" ? { ...facts, missing } : facts
  await emit(tx, { account_id, project_id, subject_id: id, type: `domain.${event}`, data })
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

type DomainEvent = "verified" | "verification_failed" | "degraded"

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
