import { and, asc, count as counted, eq, inArray, like, type SQL, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis, now } from "../core/time"
import { noun, type ProjectActor } from "../identity/noun"
import { enqueue, type JobKind } from "../jobs/jobs"
import { readHeavy } from "../store/heavy-reads"
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

/** Mail that still waits to be sent from a deleted domain fails. */
export const domainRemoved: JobKind<{ project_id: string; domain: string }> = {
  name: "domain.removed",
  schedule: (attempt) => Math.min(60 * attempt, 3600),
}

interface Making {
  secrets: Secrets
  keys: MadeKey[]
  /** What the provider that delivers thinks of it. */
  identity: IdentityColumns
  by: ProjectActor
}

/** Results of checks are no part of a change. */
export const domain = noun({
  name: "domain",
  table: domains,
  missing: () => fail("not_found", "There is no such domain."),
  unique: {
    column: "domain",
    message: (name) => `This project already has the domain ${name}.`,
    reason: "exists",
  },
  audited: ({ records: _, ...row }: DomainRow) => row,
})

export const { find, forUpdate, log } = domain

/** Throws 409 `conflict`: the project has it already, or it is verified in another one. */
export async function create(
  tx: Tx,
  wanted: NewDomain,
  { secrets, keys: made, identity, by }: Making,
) {
  const { dkim_selector: selector, ...fields } = wanted
  const { project_id } = by
  await refuseTaken(tx, project_id, wanted.domain)
  const fresh = {
    id: newId(),
    ...fields,
    ...FRESH,
    ...identity,
    verification_token: newToken(),
    window_began_at: now(),
  }
  const next_check_at = nextCheck(fresh, [], millis())
  const row = await domain.insert(tx, by, { ...fresh, next_check_at })
  const keys = keyRows(secrets, { project_id, domain_id: row.id }, made, {
    selector,
    state: "active",
  })
  await tx.insert(dkimKeys).values(keys)
  await enqueueCheck(tx, row)
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
  await domain.refuseTaken(db, { id: "", project_id, domain: name })
  const rows = await db.select().from(domains).where(eq(domains.domain, name))
  if (rows.every(({ status }) => status !== "verified")) return
  fail("conflict", `${name} is verified in another project. Delete it there first.`, {
    reason: "verified_elsewhere",
  })
}

interface DomainQuery {
  status?: DomainStatus | undefined
  /** A part of the name. */
  domain?: string | undefined
}

/** Newest first. */
export const list = (db: Reader, project_id: string, query: DomainQuery) =>
  domain.list(db, project_id, { filter: matching(query) })

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
  by: ProjectActor,
  id: string,
  wanted: DomainPatch,
): Promise<DomainRow> {
  const before = await forUpdate(tx, by.project_id, id)
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
  const after = await domain.update(tx, by, before, { ...wanted, ...soon, records })
  if ("next_check_at" in soon) await enqueueCheck(tx, after)
  return after
}

/** A verified domain is looked at often for a while, as at its beginning. */
const lookSoon = ({ status }: DomainRow) => ({
  next_check_at: now(),
  ...(status === "verified" && { window_began_at: now() }),
})

/** Its keys go with it, and so does what still waits to be sent from it. */
export async function remove(tx: Tx, by: ProjectActor, id: string): Promise<void> {
  const { project_id } = by
  const row = await forUpdate(tx, project_id, id)
  await tx
    .delete(dkimKeys)
    .where(and(eq(dkimKeys.project_id, project_id), eq(dkimKeys.domain_id, id)))
  await domain.remove(tx, by, row)
  await enqueue(tx, domainRemoved, { payload: { project_id, domain: row.domain }, project_id })
}

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
