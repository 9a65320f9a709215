import { and, eq, gt, like, lt, lte, ne, type SQL } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { firstIdAt, newId } from "../core/ids"
import { millis, millisFrom, now, secondsFromNow } from "../core/time"
import { type ConsoleMail, linkText } from "../identity/system-mail"
import { type AccountRole, consoleUsers } from "../identity/tables"
import { hashOfToken, newToken } from "../identity/tokens"
import * as users from "../identity/users"
import { comparable } from "../lib/address"
import { bump, total as counted } from "../store/counters"
import { forUpdate } from "../store/dialect"
import { removeSome, rowById, rowList } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { counters } from "../store/tables"
import * as accounts from "./accounts"
import { type ActingMember, requireOwnerFor, role as roleOf } from "./members"
import { grantAll } from "./project-members"
import * as projects from "./projects"
import { invitations, type ProjectGrant } from "./tables"

type InvitationRow = typeof invitations.$inferSelect
type InvitationStatus = "pending" | "accepted" | "revoked" | "expired"

const LIFETIME_SECONDS = 7 * 86_400

export interface NewInvitation {
  email: string
  role: AccountRole
  projects: ProjectGrant[]
}

/** A fresh invitation with the text of its token, which exists nowhere else. */
interface IssuedInvitation {
  invitation: InvitationRow
  token: string
  account_name: string
}

/**
 * Invites a person by mail. Throws 409 `conflict` for a member and for a person with an open invitation, 404 for a foreign project.
 */
export async function invite(
  tx: Tx,
  post: ConsoleMail,
  account_id: string,
  wanted: NewInvitation,
  by: ActingMember & { user_id: string | null },
): Promise<InvitationRecord> {
  const account = await accounts.findForUpdate(tx, account_id)
  requireOwnerFor(by, wanted.role)
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
    invited_by: by.user_id,
    created_at: now(),
    accepted_at: null,
  }
  await tx.insert(invitations).values(invitation)
  await log(tx, by, "invitation.created", { after: invitation })
  await send(tx, post, { invitation, token, account_name: account.name })
  return invitationRecord(invitation)
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
async function refusePending(
  tx: Tx,
  account_id: string,
  { email_key, id }: { email_key: string; id?: string },
) {
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

const IS: Record<InvitationStatus, () => SQL | undefined> = {
  pending: () => and(eq(invitations.status, "pending"), gt(invitations.expires_at, now())),
  expired: () => and(eq(invitations.status, "pending"), lte(invitations.expires_at, now())),
  accepted: () => eq(invitations.status, "accepted"),
  revoked: () => eq(invitations.status, "revoked"),
}

/** Newest first. */
export const list = (db: Reader, account_id: string, status: InvitationStatus | undefined) =>
  rowList(db, invitations, {
    owner: account_id,
    of: eq(invitations.account_id, account_id),
    filter: status && IS[status](),
    missing: gone,
  })

/** Throws 404. */
const find = async (db: Reader, account_id: string, id: string): Promise<InvitationRow> =>
  (await rowById(db, invitations, id, eq(invitations.account_id, account_id))) ?? gone()

const gone = () => fail("not_found", "There is no such invitation.")

/** Another token and another week; the link in the mail before stops working. */
export async function renew(
  tx: Tx,
  post: ConsoleMail,
  account_id: string,
  id: string,
  by: ActingMember,
): Promise<InvitationRecord> {
  const account = await accounts.findForUpdate(tx, account_id)
  const before = await find(tx, account_id, id)
  requireOwnerFor(by, before.role)
  refuseSettled(before)
  await refuseMember(tx, account_id, before.email_key)
  await refusePending(tx, account_id, before)
  await countToday(tx, account_id)
  const token = newToken("invitation")
  const expires_at = secondsFromNow(LIFETIME_SECONDS)
  const invitation = await set(tx, before, { token_hash: hashOfToken(token), expires_at })
  await log(tx, by, "invitation.resent", { before, after: invitation })
  await send(tx, post, { invitation, token, account_name: account.name })
  return invitationRecord(invitation)
}

function refuseSettled({ id, status }: InvitationRow) {
  if (status === "pending") return
  fail("conflict", `This invitation is ${status} and cannot change any more.`, {
    reason: status,
    id,
  })
}

/** Its link stops working. Throws 404 when that was done before. */
export async function revoke(tx: Tx, account_id: string, id: string, by: ActingMember) {
  await accounts.findForUpdate(tx, account_id)
  const before = await find(tx, account_id, id)
  if (before.status === "revoked") gone()
  refuseSettled(before)
  const after = await set(tx, before, { status: "revoked" })
  await log(tx, by, "invitation.revoked", { before, after })
}

async function set(tx: Tx, row: InvitationRow, changes: Partial<InvitationRow>) {
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

type InvitationRecord = ReturnType<typeof invitationRecord>

interface InvitationChange {
  before?: InvitationRow
  after?: InvitationRow
}

function log(tx: Tx, by: audit.By, action: string, { before, after }: InvitationChange) {
  const { id = null, account_id = "" } = before ?? after ?? {}
  return audit.record(tx, by, {
    account_id,
    action,
    target: { type: "invitation", id },
    before: before && invitationRecord(before),
    after: after && invitationRecord(after),
  })
}

const CALLED = { owner: "an owner", admin: "an admin", billing_admin: "a billing admin" }

/** The only place that ever sees the token again. */
async function send(tx: Tx, { mail, link_base }: ConsoleMail, issued: IssuedInvitation) {
  const { invitation, token, account_name } = issued
  const role = invitation.role === "member" ? "a member" : CALLED[invitation.role]
  const base = link_base()
  const link = linkText(base, `/invitation/${token}`)
  const text = [
    `You are invited to join ${account_name} on Belfry as ${role}.`,
    `Open this page to accept:\n${link}`,
    `Or use the command line:\nbelfry invitations accept ${token} --url ${base || "ADDRESS"}`,
    `The invitation ends at ${invitation.expires_at}. If you did not expect it, do nothing.`,
  ].join("\n\n")
  const subject = `Invitation to ${account_name}`
  await mail.send(tx, { to: invitation.email, subject, text, kind: "invitation" })
}

/** An invitation that can be accepted, and what the invited person is to know. */
export interface OpenInvitation {
  invitation: InvitationRow
  account_name: string
  user: users.UserRow | undefined
}

/** Throws 404 for an unknown, expired, revoked and accepted token, and for a deleted account. */
export async function open(db: Reader, token: string): Promise<OpenInvitation> {
  const [invitation] = await byToken(db, token)
  if (invitation?.status !== "pending" || invitation.expires_at <= now()) return none()
  const account = await accounts.find(db, invitation.account_id)
  if (account.deleting_at) return none()
  const user = await users.byEmail(db, invitation.email)
  return { invitation, account_name: account.name, user }
}

const byToken = (db: Reader, token: string) =>
  db
    .select()
    .from(invitations)
    .where(eq(invitations.token_hash, hashOfToken(token)))

const none = () =>
  fail("not_found", "There is no such invitation, or it is not valid any more. Ask for a new one.")

/**
 * Makes the person a member as the invitation says, once. Throws 404 as `open`, and 409 `conflict`
 * for a person of another address and for a member.
 */
export async function accept(
  tx: Tx,
  token: string,
  user: { id: string; email_key: string },
  by: audit.By,
): Promise<InvitationRow> {
  const seen = await open(tx, token)
  const account = await accounts.findForUpdate(tx, seen.invitation.account_id)
  const [before] = await forUpdate(byToken(tx, token)) // it may have been taken or revoked meanwhile
  if (before?.status !== "pending") return none()
  if (before.email_key !== user.email_key) {
    fail("conflict", "This invitation is for another address. Sign in with the invited address.", {
      reason: "other_user",
      id: null,
    })
  }
  const { account_id, role } = before
  if (await roleOf(tx, account_id, user.id)) {
    const details = { reason: "already_member", id: user.id }
    fail("conflict", "You are a member of this account already.", details)
  }
  if (role === "owner") await accounts.requireRoomForFree(tx, user.id, account)
  await accounts.seat(tx, account_id, user.id, role)
  await grantAll(tx, account_id, user.id, before.projects)
  const after = await set(tx, before, { status: "accepted", accepted_at: now() })
  await log(tx, by, "invitation.accepted", { before, after })
  return after
}

const MOST_A_DAY = 50
const DAY_SECONDS = 86_400
const COUNTER = "invitations:"

/**
 * Counts one mail of an invitation against the account's day (UTC); the caller holds the account.
 * Throws 429 `rate_limit_exceeded` from the 51st.
 */
async function countToday(tx: Tx, account_id: string) {
  const today = COUNTER + now().slice(0, "2026-11-21".length)
  if ((await counted(tx, account_id, today)) >= MOST_A_DAY) tooManyToday()
  await bump(tx, account_id, today, 1)
  const earlier = and(like(counters.name, `${COUNTER}%`), ne(counters.name, today))
  await tx.delete(counters).where(and(eq(counters.project_id, account_id), earlier))
}

function tooManyToday(): never {
  const retry_after = DAY_SECONDS - (Math.floor(millis() / 1000) % DAY_SECONDS)
  const text = `This account has sent its ${MOST_A_DAY} invitations of today. Try again tomorrow (UTC).`
  const limits = { limit: MOST_A_DAY, window_seconds: DAY_SECONDS, scope: "invitations" }
  fail("rate_limit_exceeded", text, { retry_after, ...limits })
}

/** How long the record of an invitation can be read after its end. */
const KEPT_SECONDS = 90 * DAY_SECONDS
const PURGE_LIMIT = 500

/** Forgets up to 500 invitations that expired 90 days ago, also accepted and revoked ones. Returns how many. */
export function purgeInvitations(store: Store): Promise<number> {
  const { id, expires_at } = invitations
  const before = secondsFromNow(-KEPT_SECONDS)
  // An id is made before its invitation expires, so the walk ends with the old ones.
  const old = and(lt(id, firstIdAt(millisFrom(before))), lt(expires_at, before))
  return removeSome(store, invitations, { id, old, most: PURGE_LIMIT })
}
