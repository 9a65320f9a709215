import { asc, eq } from "drizzle-orm"
import type { Settings } from "../core/config"
import { resolver } from "../core/dns"
import { ApiError, fail } from "../core/errors"
import { millis, now } from "../core/time"
import { emit } from "../events/emit"
import type { JobHandler } from "../jobs/jobs"
import type { ProviderDescriptor } from "../providers/provider"
import { forUpdate } from "../store/dialect"
import type { Store, Tx } from "../store/store"
import type { NameServers } from "./authoritative"
import { checkRecords, endOfCheck } from "./check"
import { type DueCheck, enqueueCheck, nextCheck } from "./check-schedule"
import { domainRecord } from "./domain-record"
import * as domains from "./domains"
import { type DomainRow, expectedRecords, type KeyRow } from "./expected-records"
import { activateSeenKeys, movePrimaryDkim } from "./key-rotation"
import { keysOf } from "./keys"
import {
  type AskIdentity,
  askProvider,
  type IdentityColumns,
  identityShown,
} from "./provider-identity"
import { type RecordTargets, recordTargets, targetsOfProject } from "./record-targets"
import { type ChecksQuery, type RecordChecks, domains as table } from "./tables"
import { type DomainEvent, kept, transition } from "./transition"

const HOUR_MS = 3_600_000
const LEAST_PAUSE_MS = 10_000
const MOST_AN_HOUR = 60

/** What a check needs. */
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
  const standing = await askProvider(row, { ask: identityOf, targets: here, ms: askingMs(net) })
  const asked = { row: { ...row, ...standing }, keys, targets: here }
  const checks = await checkRecords(net, asked, until)
  return store.tx((tx) => settle(tx, row, { checks, keys, targets: here, standing }))
}

/** How long a provider may take to tell what it thinks of a domain. */
export const askingMs = ({ try_ms }: NameServers) => 2 * try_ms

interface Looked {
  checks: RecordChecks
  /** The keys that were looked for. */
  keys: KeyRow[]
  targets: RecordTargets
  standing: Partial<IdentityColumns>
}

/** Status, events and the next check together. Undefined when the domain was deleted meanwhile. */
async function settle(tx: Tx, looked: DomainRow, found: Looked) {
  const { checks: all, keys: seen, targets, standing } = found
  const namesakes = await holdNamesakes(tx, looked.domain)
  const locked = namesakes.find(({ id }) => id === looked.id)
  if (!locked) return undefined
  const is_elsewhere = namesakes.some(({ id, status }) => id !== looked.id && status === "verified")
  const row: DomainRow = { ...locked, ...identityShown({ ...locked, ...standing }, targets) }
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
  if (event) await tell(tx, after, keys, { targets, event, missing })
  return after
}

/**
 * The rows of this name in all projects, in one order, so that of two checks at once only one finds
 * no other project verified. Only this and `create` ask about other projects.
 */
const holdNamesakes = (tx: Tx, domain: string): Promise<DomainRow[]> =>
  forUpdate(tx.select().from(table).where(eq(table.domain, domain)).orderBy(asc(table.id)))

interface News {
  targets: RecordTargets
  event: DomainEvent
  missing: string[]
}

async function tell(tx: Tx, row: DomainRow, keys: KeyRow[], { targets, event, missing }: News) {
  const { id, account_id, project_id, domain, status, verified_at } = row
  const { records_verified, records_total } = domainRecord(row, keys, targets)
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
