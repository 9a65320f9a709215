import { and, count, eq, gt, lte, ne, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import { now, secondsFromNow } from "../core/time"
import type { AccountRole } from "../identity/tables"
import { consoleUsers } from "../identity/tables"
import { hashOfToken, newToken } from "../identity/tokens"
import { comparable } from "../lib/address"
import type { Reader, Tx } from "../store/store"
import { newestFirst, type Stretch } from "../store/stretch"
import * as accounts from "./accounts"
import { countToday } from "./daily"
import { type Chief, demandOwnerFor, role as roleOf } from "./members"
import * as projects from "./projects"
import { type Grant, invitations } from "./tables"

export type InvitationRow = typeof invitations.$inferSelect
export type InvitationStatus = "pending" | "accepted" | "revoked" | "expired"

const LIFETIME_SECONDS = 7 * 86_400

export interface Wanted {
  email: string
  role: AccountRole
  projects: Grant[]
}

/** A fresh invitation with the text of its token, which exists nowhere else. */
export interface Issued {
  invitation: InvitationRow
  token: string
  account_name: string
}

/** Throws 409 `conflict` for a member and for somebody already invited, 404 for a foreign project. */
export async function invite(
  tx: Tx,
  account_id: string,
  wanted: Wanted,
  chief: Chief & { user_id: string | null },
): Promise<Issued> {
  const account = await accounts.hold(tx, account_id)
  demandOwnerFor(chief, wanted.role)
  const email_key = comparable(wanted.email)
  for (const { project_id } of wanted.projects) await projects.find(tx, account_id, project_id)
  await refuseMember(tx, account_id, email_key)
  await refusePending(tx, account_id, { email_key })
  await countToday(tx, account_id)

  const token = newToken("invitation")
  const invitation: InvitationRow = {
    id: newId(),
    account_id,
    ...wanted,
    email_key,
    token_hash: hashOfToken(token),
    status: "pending",
    expires_at: secondsFromNow(LIFETIME_SECONDS),
    invited_by: chief.user_id,
    created_at: now(),
    accepted_at: null,
  }
  await tx.insert(invitations).values(invitation)
  await log(tx, chief, "invitation.created", { after: invitation })
  return { invitation, token, account_name: account.name }
}

async function refuseMember(tx: Tx, account_id: string, email_key: string) {
  const [user] = await tx.select().from(consoleUsers).where(eq(consoleUsers.email_key, email_key))
  if (!user || !(await roleOf(tx, account_id, user.id))) return
  fail("conflict", "This person is a member of the account already.", {
    reason: "already_member",
    id: user.id,
  })
}

/** One link for one person: another one, or one that would live again beside it, is refused. */
async function refusePending(tx: Tx, account_id: string, { email_key, id }: Invited) {
  const same = and(eq(invitations.account_id, account_id), eq(invitations.email_key, email_key))
  const other = id ? ne(invitations.id, id) : undefined
  const [open] = await tx
    .select()
    .from(invitations)
    .where(and(same, other, IS.pending()))
  if (!open) return
  const details = { reason: "already_invited", id: open.id }
  fail(
    "conflict",
    "This person has an open invitation already. Send that one again, or revoke it first.",
    details,
  )
}

interface Invited {
  email_key: string
  id?: string
}

const IS: Record<InvitationStatus, () => SQL | undefined> = {
  pending: () => and(eq(invitations.status, "pending"), gt(invitations.expires_at, now())),
  expired: () => and(eq(invitations.status, "pending"), lte(invitations.expires_at, now())),
  accepted: () => eq(invitations.status, "accepted"),
  revoked: () => eq(invitations.status, "revoked"),
}

export interface ListQuery {
  status?: InvitationStatus | undefined
  after?: string | undefined
}

/** Newest first. */
export async function list(
  db: Reader,
  account_id: string,
  query: ListQuery & Stretch & { limit: number; offset: number },
) {
  const { where, order } = newestFirst(invitations.id, query)
  const rows = await db
    .select()
    .from(invitations)
    .where(and(matching(account_id, query), where))
    .orderBy(order)
    .limit(query.limit)
    .offset(query.offset)
  return rows.map(invitationRecord)
}

export async function total(db: Reader, account_id: string, query: ListQuery): Promise<number> {
  const [row] = await db
    .select({ all: count() })
    .from(invitations)
    .where(matching(account_id, query))
  return row?.all ?? 0
}

const matching = (account_id: string, { status }: ListQuery): SQL | undefined =>
  and(eq(invitations.account_id, account_id), status && IS[status]())

/** Throws 404. */
export async function find(db: Reader, account_id: string, id: string): Promise<InvitationRow> {
  const ours = and(eq(invitations.account_id, account_id), eq(invitations.id, id))
  const rows = isUuid(id) ? await db.select().from(invitations).where(ours) : []
  return rows[0] ?? fail("not_found", "There is no such invitation.")
}

/** Another token and another week; the link in the mail before stops working. */
export async function renew(tx: Tx, account_id: string, id: string, chief: Chief): Promise<Issued> {
  const account = await accounts.hold(tx, account_id)
  const before = await find(tx, account_id, id)
  demandOwnerFor(chief, before.role)
  refuseSettled(before)
  await refuseMember(tx, account_id, before.email_key)
  await refusePending(tx, account_id, before)
  await countToday(tx, account_id)
  const token = newToken("invitation")
  const expires_at = secondsFromNow(LIFETIME_SECONDS)
  const invitation = await set(tx, before, { token_hash: hashOfToken(token), expires_at })
  await log(tx, chief, "invitation.resent", { before, after: invitation })
  return { invitation, token, account_name: account.name }
}

function refuseSettled({ id, status }: InvitationRow) {
  if (status === "pending") return
  fail("conflict", `This invitation is ${status} and cannot change any more.`, {
    reason: status,
    id,
  })
}

/** Its link stops working. Throws 404 when that was done before. */
export async function revoke(tx: Tx, account_id: string, id: string, chief: Chief) {
  await accounts.hold(tx, account_id)
  const before = await find(tx, account_id, id)
  if (before.status === "revoked") fail("not_found", "There is no such invitation.")
  refuseSettled(before)
  const after = await set(tx, before, { status: "revoked" })
  await log(tx, chief, "invitation.revoked", { before, after })
}

export async function set(tx: Tx, row: InvitationRow, changes: Partial<InvitationRow>) {
  await tx.update(invitations).set(changes).where(eq(invitations.id, row.id))
  return { ...row, ...changes }
}

/** The Invitation record of the contract. */
export const invitationRecord = (row: InvitationRow) => ({
  id: row.id,
  email: row.email,
  role: row.role,
  projects: row.projects,
  status: row.status === "pending" && row.expires_at <= now() ? ("expired" as const) : row.status,
  expires_at: row.expires_at,
  invited_by: row.invited_by,
  created_at: row.created_at,
})

interface Change {
  before?: InvitationRow
  after?: InvitationRow
}

export function log(tx: Tx, by: audit.By, action: string, { before, after }: Change) {
  const { id = null, account_id = "" } = before ?? after ?? {}
  const { actor, ip } = by
  return audit.record(tx, {
    account_id,
    actor,
    ip,
    action,
    target: { type: "invitation", id },
    before: before && invitationRecord(before),
    after: after && invitationRecord(after),
  })
}
