import { eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import { quotaSubject } from "../identity/caller"
import { type AccountSettings, accountMembers, accounts, projects } from "../identity/tables"
import { enqueue } from "../jobs/queue"
import { slugFrom } from "../lib/text"
import * as quotas from "../plans/quotas"
import * as sendBuckets from "../plans/send-buckets"
import { bump } from "../store/counters"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"
import { KEPT_SECONDS, purgeAccount } from "./purging"

export type AccountRow = typeof accounts.$inferSelect

export const ACCOUNT_DEFAULTS: AccountSettings = {
  track_opens: true,
  track_clicks: true,
  require_mfa: false,
}

export interface NewAccount {
  name: string
  slug?: string | undefined
  plan: string
  /** Null for the account of `init` and `up`, until somebody adopts it. */
  owner_user_id: string | null
}

/** Makes an account and its first owner. Throws 409 `conflict` when the slug wished for is taken. */
export async function create(tx: Tx, wanted: NewAccount, by: audit.By): Promise<AccountRow> {
  const row: AccountRow = {
    id: newId(),
    name: wanted.name,
    slug: await freeSlug(tx, wanted),
    plan: wanted.plan,
    limits: null,
    settings: ACCOUNT_DEFAULTS,
    owner_user_id: wanted.owner_user_id,
    status: "active",
    status_reason: null,
    sending_status: "active",
    sending_status_reason: null,
    deleting_at: null,
    created_at: now(),
    updated_at: now(),
  }
  await tx.insert(accounts).values(row)
  if (wanted.owner_user_id) await seat(tx, row.id, wanted.owner_user_id)
  await log(tx, by, row.id, "account.created", { after: row })
  return row
}

async function seat(tx: Tx, account_id: string, user_id: string) {
  const seats = { account_id, user_id, role: "owner" as const, joined_at: now() }
  await tx.insert(accountMembers).values(seats)
  await bump(tx, account_id, "members", 1)
}

/** Gives the account that `init` or `up` made its first owner. */
export async function adopt(tx: Tx, account_id: string, user_id: string, by: audit.By) {
  const before = await find(tx, account_id)
  const after = await set(tx, account_id, { owner_user_id: user_id })
  await seat(tx, account_id, user_id)
  await log(tx, by, account_id, "account.adopted", { before, after })
  return after
}

async function freeSlug(tx: Tx, { name, slug }: NewAccount): Promise<string> {
  const wish = slug ?? (slugFrom(name) || "account")
  const [taken] = await tx.select().from(accounts).where(eq(accounts.slug, wish))
  if (!taken) return wish
  if (slug === undefined) return `${wish}-${newId().slice(-8)}`
  return fail("conflict", `Another account has the slug ${slug}. Choose another slug.`, {
    reason: "slug_taken",
    id: null,
  })
}

/** Deleted accounts too, until they are purged: their owner may want them back. */
export async function find(db: Reader, id: string): Promise<AccountRow> {
  const [row] = await db.select().from(accounts).where(eq(accounts.id, id))
  return row ?? fail("not_found", "There is no such account.")
}

/** As `find`, and nobody else changes the account or its seats before this transaction ends. */
export async function hold(tx: Tx, id: string): Promise<AccountRow> {
  const [row] = await held(tx.select().from(accounts).where(eq(accounts.id, id)))
  return row ?? fail("not_found", "There is no such account.")
}

/** With another plan, limits or owner, what is used up is counted afresh. */
export async function set(tx: Tx, id: string, changes: Partial<AccountRow>): Promise<AccountRow> {
  const limited = LIMITING.some((field) => field in changes)
  const before = limited ? await hold(tx, id) : undefined
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
  if (ids.length > 0) await sendBuckets.empty(tx, ids)
}

export interface AccountPatch {
  name?: string
  settings?: Partial<AccountSettings>
}

export async function patch(tx: Tx, id: string, wanted: AccountPatch, by: audit.By) {
  const before = await hold(tx, id)
  const { track_opens, track_clicks, require_mfa } = { ...before.settings, ...wanted.settings }
  const settings = { track_opens, track_clicks, require_mfa }
  const after = await set(tx, id, { name: wanted.name ?? before.name, settings })
  await log(tx, by, id, "account.updated", { before, after })
  return after
}

/** Everything of it stops at once; it can be restored for a week, then `purge` takes it. */
export async function remove(tx: Tx, id: string, by: audit.By) {
  const before = await hold(tx, id)
  if (before.deleting_at) fail("not_found", "There is no such account.")
  const deleting_at = secondsFromNow(KEPT_SECONDS)
  const after = await set(tx, id, { deleting_at })
  await enqueue(tx, purgeAccount, { payload: { id }, project_id: null, run_at: deleting_at })
  await log(tx, by, id, "account.deleted", { before, after })
  return after
}

export async function restore(tx: Tx, id: string, by: audit.By) {
  const before = await hold(tx, id)
  if (!before.deleting_at) {
    fail("conflict", "This account is not being deleted, so there is nothing to restore.", {
      reason: "not_deleted",
      id,
    })
  }
  const after = await set(tx, id, { deleting_at: null })
  await log(tx, by, id, "account.restored", { before, after })
  return after
}

type Change = Pick<audit.NewEntry, "before" | "after">

export const log = (tx: Tx, by: audit.By, id: string, action: string, change: Change) =>
  audit.record(tx, {
    account_id: id,
    actor: by.actor,
    ip: by.ip,
    action,
    target: { type: "account", id },
    ...change,
  })
