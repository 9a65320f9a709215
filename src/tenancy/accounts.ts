import { and, desc, eq, isNull } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { conflict, fail } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { ACCOUNT_DEFAULTS, quotaSubject, sendingStatusOf } from "../identity/caller"
import {
  type AccountRole,
  type AccountSettings,
  accountMembers,
  accounts,
  consoleUsers,
  projects,
} from "../identity/tables"
import { enqueue, type JobKind } from "../jobs/jobs"
import type { RetrySchedule } from "../jobs/work-item"
import { fieldsOf } from "../lib/record-fields"
import { slugFrom } from "../lib/text"
import { limitsOf, type PlanName } from "../plans/plans"
import { forUpdate } from "../store/columns"
import { bump } from "../store/counters"
import { rowById, rowForUpdate } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as quotas from "./quotas"
import { Account } from "./schemas"
import { usageOfAccount } from "./usage"

export type AccountRow = typeof accounts.$inferSelect

/** How long what was deleted can be taken back. */
export const KEPT_SECONDS = 7 * 86_400

const TRIES = 100
const HOUR = 3600

/**
 * A purge that fails is tried every hour for several days: its obstacle may be removed meanwhile.
 */
export const purgeSchedule: RetrySchedule = (attempt) => (attempt < TRIES ? HOUR : undefined)

/** Removes a deleted account once its days are over; does nothing for a restored one. */
export const purgeAccount: JobKind<{ id: string }> = {
  name: "account.purge",
  schedule: purgeSchedule,
}

export interface NewAccount {
  name: string
  slug?: string | undefined
  plan: string
  /** Null for the account of `init` and `up`, until a user adopts it. */
  owner_user_id: string | null
}

/** Makes an account and its first owner. Throws 409 `conflict` when the slug wished for is taken. */
export async function create(tx: Tx, wanted: NewAccount, by: audit.By): Promise<AccountRow> {
  const { name, plan, owner_user_id } = wanted
  const row: AccountRow = {
    id: newId(),
    name,
    slug: await freeSlug(tx, wanted),
    plan,
    limits: null,
    settings: ACCOUNT_DEFAULTS,
    owner_user_id,
    status: "active",
    status_reason: null,
    sending_status: "active",
    sending_status_reason: null,
    reputation: null,
    deleting_at: null,
    created_at: now(),
    updated_at: now(),
  }
  await tx.insert(accounts).values(row)
  if (owner_user_id) await seat(tx, row.id, owner_user_id, "owner")
  await log(tx, by, row.id, "account.created", { after: row })
  return row
}

/** Makes a person a member of the account. */
export async function seat(tx: Tx, account_id: string, user_id: string, role: AccountRole) {
  await tx.insert(accountMembers).values({ account_id, user_id, role, joined_at: now() })
  await bump(tx, account_id, "members", 1)
}

/** Gives the account that `init` or `up` made its first owner. */
export async function adopt(tx: Tx, account_id: string, user_id: string, by: audit.By) {
  const before = await find(tx, account_id)
  await seat(tx, account_id, user_id, "owner")
  return change(tx, before, { owner_user_id: user_id }, "account.adopted", by)
}

async function freeSlug(tx: Tx, { name, slug }: NewAccount): Promise<string> {
  const wish = slug ?? (slugFrom(name) || "account")
  const [taken] = await tx.select().from(accounts).where(eq(accounts.slug, wish))
  if (!taken) return wish
  if (slug === undefined) return `${wish}-${newId().slice(-8)}`
  return conflict("slug_taken", null, `Another account has the slug ${slug}. Choose another slug.`)
}

/** Deleted accounts too, until they are purged: their owner may want them back. */
export const find = async (db: Reader, id: string): Promise<AccountRow> =>
  (await rowById(db, accounts, id)) ?? noAccount()

/** As `find`, with the account and its seats locked until this transaction ends. */
export const findForUpdate = async (tx: Tx, id: string): Promise<AccountRow> =>
  (await rowForUpdate(tx, accounts, id)) ?? noAccount()

const noAccount = () => fail("not_found", "There is no such account.")

/** With another plan, limits or owner, what is used up is counted afresh. */
export async function set(tx: Tx, id: string, changes: Partial<AccountRow>): Promise<AccountRow> {
  const limited = LIMITING.some((field) => field in changes)
  const before = limited ? await findForUpdate(tx, id) : undefined
  await tx
    .update(accounts)
    .set({ ...changes, updated_at: now() })
    .where(eq(accounts.id, id))
  const after = await find(tx, id)
  if (before) await countAfresh(tx, before, after)
  return after
}

const LIMITING = ["plan", "limits", "owner_user_id"] as const

async function countAfresh(tx: Tx, before: AccountRow, after: AccountRow) {
  const subjects = new Set([quotaSubject(before), quotaSubject(after)])
  for (const subject of [...subjects].sort()) await quotas.forget(tx, subject)
  const ours = eq(projects.account_id, after.id)
  const rows = await tx.select({ id: projects.id }).from(projects).where(ours)
  const ids = rows.map(({ id }) => id).sort()
  if (ids.length > 0) await quotas.emptyBuckets(tx, ids)
}

export interface AccountPatch {
  name?: string
  settings?: Partial<AccountSettings>
}

export async function patch(tx: Tx, id: string, wanted: AccountPatch, by: audit.By) {
  const before = await findForUpdate(tx, id)
  const { track_opens, track_clicks, require_mfa } = { ...before.settings, ...wanted.settings }
  const settings = { track_opens, track_clicks, require_mfa }
  const changes = { name: wanted.name ?? before.name, settings }
  return change(tx, before, changes, "account.updated", by)
}

/** Everything of it stops at once; it can be restored for a week, then it is purged. */
export async function remove(tx: Tx, id: string, by: audit.By) {
  const before = await findForUpdate(tx, id)
  if (before.deleting_at) noAccount()
  const deleting_at = secondsFromNow(KEPT_SECONDS)
  await enqueue(tx, purgeAccount, { payload: { id }, project_id: null, run_at: deleting_at })
  return change(tx, before, { deleting_at }, "account.deleted", by)
}

/** Throws 409 for an account that is not being deleted, 403 where its owner has no room for it. */
export async function restore(tx: Tx, id: string, by: audit.By) {
  const { deleting_at, owner_user_id, plan } = await find(tx, id)
  if (deleting_at && owner_user_id) await requireRoomForFree(tx, owner_user_id, { plan })
  const before = await findForUpdate(tx, id)
  if (!before.deleting_at) {
    conflict(
      "not_deleted",
      id,
      "This account is not being deleted, so there is nothing to restore.",
    )
  }
  return change(tx, before, { deleting_at: null }, "account.restored", by)
}

/** Free accounts that one person may own. */
const MOST_FREE = 2

/** Throws 403 `plan_limit_exceeded` where the person would own a third free account. */
export async function requireRoomForFree(tx: Tx, user_id: string, { plan }: { plan: string }) {
  if (plan !== "free") return
  // Two at once, of one person, must not both find the last room.
  await forUpdate(tx.select().from(consoleUsers).where(eq(consoleUsers.id, user_id)))
  const used = (await freeAccountsOf(tx, user_id)).length
  if (used < MOST_FREE) return
  const text = `A person can own at most ${MOST_FREE} free accounts. Use a larger plan for one of them.`
  fail("plan_limit_exceeded", text, { resource: "accounts", used, limit: MOST_FREE, plan })
}

/** The free accounts of which the person is an owner; they share one set of limits. */
const freeAccountsOf = (db: Reader, user_id: string) =>
  db
    .select({ id: accounts.id })
    .from(accountMembers)
    .innerJoin(accounts, eq(accounts.id, accountMembers.account_id))
    .where(
      and(
        eq(accountMembers.user_id, user_id),
        eq(accountMembers.role, "owner"),
        eq(accounts.plan, "free"),
        isNull(accounts.deleting_at),
      ),
    )

/** The Account record of the contract. */
export const toResponse = async (db: Reader, row: AccountRow) =>
  fieldsOf(Account, {
    ...row,
    ...sendingStatusOf(row),
    plan: row.plan as PlanName,
    limits: limitsOf(row),
    usage: await usageOfAccount(db, row),
  })

/** As `set`, and the audit log says what it was before and what it is after. */
export async function change(
  tx: Tx,
  before: AccountRow,
  changes: Partial<AccountRow>,
  action: string,
  by: audit.By,
): Promise<AccountRow> {
  const after = await set(tx, before.id, changes)
  await log(tx, by, before.id, action, { before, after })
  return after
}

/** Writes down what happened to an account. */
export const log = (tx: Tx, by: audit.By, id: string, action: string, change: audit.AuditChange) =>
  audit.record(tx, by, { account_id: id, action, target: { type: "account", id }, ...change })

/** A person's accounts that are not being deleted, newest first. */
export function accountsOf(db: Reader, user_id: string) {
  return db
    .select({ account: accounts, role: accountMembers.role })
    .from(accountMembers)
    .innerJoin(accounts, eq(accounts.id, accountMembers.account_id))
    .where(and(eq(accountMembers.user_id, user_id), isNull(accounts.deleting_at)))
    .orderBy(desc(accounts.id))
}
