import { and, asc, count as counted, eq, inArray, like, type SQL, sql } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis, now } from "../core/time"
import { enqueue, type JobKind } from "../jobs/jobs"
import { held } from "../store/dialect"
import { readHeavy } from "../store/heavy-reads"
import { rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { enqueueCheck, nextCheck } from "./check-schedule"
import type { DomainRow, KeyRow } from "./expected-records"
import { keyRows, type MadeKey, newToken } from "./keys"
import { partOf } from "./names"
import type { IdentityColumns } from "./provider-identity"
import { type DomainStatus, dkimKeys, domains } from "./tables"

export interface NewDomain {
  domain: string
  receiving: boolean
  tracking_subdomain: string | null
  return_path: string
  dkim_selector: string
}

interface DomainOwner {
  account_id: string
  project_id: string
}

/** Mail that still waits to be sent from a deleted domain fails. */
export const domainRemoved: JobKind<{ project_id: string; domain: string }> = {
  name: "domain.removed",
  schedule: (attempt) => Math.min(60 * attempt, 3600),
}

interface Making {
  secrets: Secrets
  keys: MadeKey[]
  /** What the provider that delivers thinks of it. */
  standing: IdentityColumns
  by: audit.By
}

/** Throws 409 `conflict`: the project has it already, or it is verified in another one. */
export async function create(
  tx: Tx,
  owner: DomainOwner,
  wanted: NewDomain,
  { secrets, keys: made, standing, by }: Making,
) {
  const { dkim_selector: selector, ...fields } = wanted
  await refuseTaken(tx, owner.project_id, wanted.domain)
  const moment = now()
  const row: DomainRow = {
    id: newId(),
    ...owner,
    ...fields,
    ...FRESH,
    ...standing,
    verification_token: newToken(),
    window_began_at: moment,
    created_at: moment,
    updated_at: moment,
  }
  row.next_check_at = nextCheck(row, [], millis())
  const whose = { project_id: owner.project_id, domain_id: row.id }
  const keys = keyRows(secrets, whose, made, { selector, state: "active" })
  const added = await tx.insert(domains).values(row).onConflictDoNothing().returning()
  if (added.length === 0) return taken(tx, owner.project_id, wanted.domain)
  await tx.insert(dkimKeys).values(keys)
  await enqueueCheck(tx, row)
  await log(tx, by, row, "domain.created", { after: row })
  return { row, keys }
}

const FRESH = {
  status: "pending" as const,
  records: {},
  warning: null,
  asked: null,
  missing_since: null,
  last_checked_at: null,
  next_check_at: null,
  verified_at: null,
  failed_at: null,
}

/**
 * The one question about other projects: whether one of them has proved the name to be its own.
 * Throws as `create` does, before anything is made for nothing.
 */
export async function refuseTaken(db: Reader, project_id: string, name: string) {
  const rows = await db.select().from(domains).where(eq(domains.domain, name))
  if (rows.some((row) => row.project_id === project_id)) return taken(db, project_id, name)
  if (rows.every(({ status }) => status !== "verified")) return undefined
  return fail("conflict", `${name} is verified in another project. Delete it there first.`, {
    reason: "verified_elsewhere",
  })
}

async function taken(db: Reader, project_id: string, name: string): Promise<never> {
  const ours = and(eq(domains.project_id, project_id), eq(domains.domain, name))
  const [row] = await db.select({ id: domains.id }).from(domains).where(ours)
  const details = { reason: "exists", ...(row && { id: row.id }) }
  return fail("conflict", `This project already has the domain ${name}.`, details)
}

interface DomainQuery {
  status?: DomainStatus | undefined
  /** A part of the name. */
  domain?: string | undefined
}

/** Newest first. */
export const list = (db: Reader, project_id: string, query: DomainQuery) =>
  rowList(db, domains, {
    owner: project_id,
    of: eq(domains.project_id, project_id),
    filter: matching(query),
    missing: gone,
  })

function matching({ status, domain }: DomainQuery): SQL | undefined {
  return and(
    status ? eq(domains.status, status) : undefined,
    domain === undefined ? undefined : named(domain),
  )
}

/** With the final dot, because it may be written. */
function named(text: string): SQL {
  const part = partOf(text)
  return part === undefined ? sql`1 = 0` : like(sql`${domains.domain} || '.'`, `%${part}%`)
}

/** Of this project. Throws 404. */
export async function find(db: Reader, project_id: string, id: string): Promise<DomainRow> {
  const rows = isUuid(id) ? await db.select().from(domains).where(ours(project_id, id)) : []
  return rows[0] ?? gone()
}

/** As `find`, with the row locked until the transaction ends. */
export async function lockForUpdate(tx: Tx, project_id: string, id: string): Promise<DomainRow> {
  const query = () => held(tx.select().from(domains).where(ours(project_id, id)))
  const [row] = isUuid(id) ? await query() : []
  return row ?? gone()
}

const gone = () => fail("not_found", "There is no such domain.")

const ours = (project_id: string, id: string) =>
  and(eq(domains.project_id, project_id), eq(domains.id, id))

/** The keys of several domains, oldest first. */
export async function keysOfAll(db: Reader, rows: DomainRow[]): Promise<Map<string, KeyRow[]>> {
  const ids = rows.map(({ id }) => id)
  const query = () => db.select().from(dkimKeys).where(inArray(dkimKeys.domain_id, ids))
  const keys = ids.length === 0 ? [] : await query().orderBy(asc(dkimKeys.id))
  return Map.groupBy(keys, ({ domain_id }) => domain_id)
}

export type DomainPatch = Partial<
  Pick<DomainRow, "receiving" | "tracking_subdomain" | "return_path">
>

/** Records that change are to be seen anew, so what was known of them is forgotten. */
export async function patch(
  tx: Tx,
  project_id: string,
  id: string,
  wanted: DomainPatch,
  by: audit.By,
): Promise<DomainRow> {
  const before = await lockForUpdate(tx, project_id, id)
  const records = { ...before.records }
  const changed = (name: keyof DomainPatch) =>
    wanted[name] !== undefined && wanted[name] !== before[name]
  if (changed("return_path")) {
    delete records.spf
    delete records.return_path
  }
  if (changed("tracking_subdomain")) delete records.tracking
  if (changed("receiving")) delete records.receiving
  const names = ["return_path", "tracking_subdomain", "receiving"] as const
  const soon = before.status !== "failed" && names.some(changed) ? lookSoon(before) : {}
  const changes = { ...wanted, ...soon, records, updated_at: now() }
  await tx.update(domains).set(changes).where(ours(project_id, id))
  const after = { ...before, ...changes }
  if ("next_check_at" in soon) await enqueueCheck(tx, after)
  await log(tx, by, after, "domain.updated", { before, after })
  return after
}

/** A verified domain is looked at often for a while, as at its beginning. */
const lookSoon = ({ status }: DomainRow) => ({
  next_check_at: now(),
  ...(status === "verified" && { window_began_at: now() }),
})

/** Its keys go with it, and so does what still waits to be sent from it. */
export async function remove(tx: Tx, project_id: string, id: string, by: audit.By) {
  const row = await lockForUpdate(tx, project_id, id)
  await tx
    .delete(dkimKeys)
    .where(and(eq(dkimKeys.project_id, project_id), eq(dkimKeys.domain_id, id)))
  await tx.delete(domains).where(ours(project_id, id))
  await enqueue(tx, domainRemoved, { payload: { project_id, domain: row.domain }, project_id })
  await log(tx, by, row, "domain.deleted", { before: row })
  return row
}

const record = audit.recorder("domain")

/** Records a change of a domain in the audit log. */
export const log = (
  tx: Tx,
  by: audit.By,
  row: DomainRow,
  action: string,
  change: audit.AuditChange,
) => record(tx, by, row, action, withoutChecks(change))

/** The results of checks are not part of the change. */
const withoutChecks = ({ before, after }: audit.AuditChange) => ({
  ...(before !== undefined && { before: { ...(before as DomainRow), records: undefined } }),
  ...(after !== undefined && { after: { ...(after as DomainRow), records: undefined } }),
})

/** How many domains each project of an account has; projects without any are not in it. */
export async function countByProject(db: Reader, account_id: string): Promise<Map<string, number>> {
  const rows = await readHeavy(db, account_id, (read) =>
    read((thread) =>
      thread
        .select({ project_id: domains.project_id, used: counted() })
        .from(domains)
        .where(eq(domains.account_id, account_id))
        .groupBy(domains.project_id),
    ),
  )
  return new Map(rows.map(({ project_id, used }) => [project_id, used]))
}
