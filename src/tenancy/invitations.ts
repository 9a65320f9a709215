import { and, eq, gt, like, lt, lte, ne, type SQL } from "drizzle-orm"
import type * as audit from "../audit-log/audit-log"
import { conflict, fail } from "../core/errors"
import { firstIdAt } from "../core/ids"
import { millis, millisFrom, now, secondsFromNow } from "../core/time"
import { noun } from "../identity/noun"
import type { SessionClient, SessionReply, Sessions } from "../identity/sessions"
import { type ConsoleMail, linkText } from "../identity/system-mail"
import { type AccountRole, consoleUsers } from "../identity/tables"
import * as users from "../identity/users"
import { comparable } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import * as passwords from "../sign-in/passwords"
import { hashOfToken, newToken } from "../sign-in/tokens"
import { forUpdate } from "../store/columns"
import { bump, total as counted } from "../store/counters"
import { removeSome } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import { counters } from "../store/tables"
import * as accounts from "./accounts"
import { type ActingMember, requireOwnerFor, role as roleOf } from "./members"
import * as projects from "./projects"
import { Invitation } from "./schemas"
import { invitations, type ProjectGrant } from "./tables"

type InvitationRow = typeof invitations.$inferSelect
type InvitationStatus = InvitationResponse["status"]

const LIFETIME_SECONDS = 7 * 86_400

export interface NewInvitation {
  email: string
  role: AccountRole
  projects: ProjectGrant[]
}

type Inviter = ActingMember & { account_id: string }

/**
 * Invites a person by mail. Throws 409 `conflict` for a member and for a person with an open invitation, 404 for a foreign project.
 */
export async function invite(
  tx: Tx,
  post: ConsoleMail,
  wanted: NewInvitation,
  by: Inviter & { user_id: string | null },
): Promise<InvitationResponse> {
  const { account_id } = by
  const account = await accounts.findForUpdate(tx, account_id)
  requireOwnerFor(by, wanted.role)
  const email_key = comparable(wanted.email)
  for (const { project_id } of wanted.projects)
    await projects.project.find(tx, account_id, project_id)
  await refuseMember(tx, account_id, email_key)
  await refusePending(tx, account_id, { email_key })
  await countToday(tx, account_id)

  const token = newToken("invitation")
  const row = await invitation.insert(tx, by, {
    ...wanted,
    email_key,
    token_hash: hashOfToken(token),
    status: "pending",
    expires_at: secondsFromNow(LIFETIME_SECONDS),
    invited_by: by.user_id,
    accepted_at: null,
  })
  await send(tx, post, { row, token, account_name: account.name })
  return toResponse(row)
}

async function refuseMember(tx: Tx, account_id: string, email_key: string) {
  const [user] = await tx.select().from(consoleUsers).where(eq(consoleUsers.email_key, email_key))
  if (!user || !(await roleOf(tx, account_id, user.id))) return
  conflict("already_member", user.id, "This person is a member of the account already.")
}

/** One link for one person: another one, or one that would live again beside it, is refused. */
async function refusePending(
  tx: Tx,
  account_id: string,
  { email_key, id }: { email_key: string; id?: string },
) {
  const same = and(eq(invitations.account_id, account_id), eq(invitations.email_key, email_key))
  const other = id ? ne(invitations.id, id) : undefined
  const pending = and(same, other, IS.pending())
  const [open] = await tx.select().from(invitations).where(pending)
  if (open) conflict("already_invited", open.id, ALREADY_INVITED)
}

const ALREADY_INVITED =
  "This person has an open invitation already. Send that one again, or revoke it first."

const IS: Record<InvitationStatus, () => SQL | undefined> = {
  pending: () => and(eq(invitations.status, "pending"), gt(invitations.expires_at, now())),
  expired: () => and(eq(invitations.status, "pending"), lte(invitations.expires_at, now())),
  accepted: () => eq(invitations.status, "accepted"),
  revoked: () => eq(invitations.status, "revoked"),
}

/** Newest first. */
export const list = (db: Reader, account_id: string, status: InvitationStatus | undefined) =>
  invitation.list(db, account_id, { filter: status && IS[status]() })

const gone = () => fail("not_found", "There is no such invitation.")

/** Another token and another week; the link in the mail before stops working. */
export async function renew(
  tx: Tx,
  post: ConsoleMail,
  id: string,
  by: Inviter,
): Promise<InvitationResponse> {
  const { account_id } = by
  const account = await accounts.findForUpdate(tx, account_id)
  const before = await invitation.find(tx, account_id, id)
  requireOwnerFor(by, before.role)
  refuseSettled(before)
  await refuseMember(tx, account_id, before.email_key)
  await refusePending(tx, account_id, before)
  await countToday(tx, account_id)
  const token = newToken("invitation")
  const expires_at = secondsFromNow(LIFETIME_SECONDS)
  const changes = { token_hash: hashOfToken(token), expires_at }
  const row = await invitation.update(tx, by, before, changes, "resent")
  await send(tx, post, { row, token, account_name: account.name })
  return toResponse(row)
}

function refuseSettled({ id, status }: InvitationRow) {
  if (status === "pending") return
  conflict(status, id, `This invitation is ${status} and cannot change any more.`)
}

/** Its link stops working. Throws 404 when that was done before. */
export async function revoke(tx: Tx, id: string, by: Inviter) {
  await accounts.findForUpdate(tx, by.account_id)
  const before = await invitation.find(tx, by.account_id, id)
  if (before.status === "revoked") gone()
  refuseSettled(before)
  await invitation.update(tx, by, before, { status: "revoked" }, "revoked")
}

/** The Invitation record of the contract. */
export const toResponse = (row: InvitationRow) =>
  fieldsOf(Invitation, {
    ...row,
    status: row.status === "pending" && row.expires_at <= now() ? "expired" : row.status,
  })

type InvitationResponse = ReturnType<typeof toResponse>

const invitation = noun({
  name: "invitation",
  table: invitations,
  owner: "account_id",
  missing: gone,
  audited: toResponse,
})

const CALLED = { owner: "an owner", admin: "an admin", billing_admin: "a billing admin" }

/** The only place that ever sees the token again. */
async function send(
  tx: Tx,
  { mail, link_base }: ConsoleMail,
  issued: { row: InvitationRow; token: string; account_name: string },
) {
  const { row, token, account_name } = issued
  const role = row.role === "member" ? "a member" : CALLED[row.role]
  const base = link_base()
  const link = linkText(base, `/invitation/${token}`)
  const text = [
    `You are invited to join ${account_name} on Belfry as ${role}.`,
    `Open this page to accept:\n${link}`,
    `Or use the command line:\nbelfry invitations accept ${token} --url ${base || "ADDRESS"}`,
    `The invitation ends at ${row.expires_at}. If you did not expect it, do nothing.`,
  ].join("\n\n")
  const subject = `Invitation to ${account_name}`
  await mail.send(tx, { to: row.email, subject, text, kind: "invitation" })
}

/** An invitation that can be accepted, and what the invited person is to know. */
export interface OpenInvitation {
  invitation: InvitationRow
  account_name: string
  user: users.UserRow | undefined
}

/** Throws 404 for an unknown, expired, revoked and accepted token, and for a deleted account. */
export async function open(db: Reader, token: string): Promise<OpenInvitation> {
  const [row] = await byToken(db, token)
  if (row?.status !== "pending" || row.expires_at <= now()) return none()
  const account = await accounts.find(db, row.account_id)
  if (account.deleting_at) return none()
  const user = await users.byEmail(db, row.email)
  return { invitation: row, account_name: account.name, user }
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
    const text = "This invitation is for another address. Sign in with the invited address."
    conflict("other_user", null, text)
  }
  const { account_id, role } = before
  if (await roleOf(tx, account_id, user.id))
    conflict("already_member", user.id, "You are a member of this account already.")
  if (role === "owner") await accounts.requireRoomForFree(tx, user.id, account)
  await accounts.seat(tx, account_id, user.id, role)
  await projects.grantAll(tx, account_id, user.id, before.projects)
  const changes = { status: "accepted" as const, accepted_at: now() }
  return invitation.update(tx, { ...by, account_id }, before, changes, "accepted")
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

/** Which people may sign up: none, people with an invitation, or all. */
export type SignUp = "closed" | "invite" | "open"

/** Throws 403 `forbidden`. */
export function requireSignUp(sign_up: SignUp, is_invited: boolean): void {
  if (sign_up === "open" || (sign_up === "invite" && is_invited)) return
  const text =
    sign_up === "invite"
      ? "You need an invitation to sign up on this instance. Ask an owner of an account for one."
      : "Nobody can sign up on this instance. Ask its operator for a user."
  fail("forbidden", text, { reason: `sign_up_${sign_up}` })
}

/**
 * A new user with a session. An invitation makes the person a member at once; it is for its own
 * address only. Throws 403 `forbidden`, 404 for an invitation that is not valid, 409 `conflict`,
 * 422 `weak_password`.
 */
export async function signUp(
  { store, sessions }: { store: Store; sessions: Pick<Sessions, "start"> },
  {
    password,
    invitation_token,
    ...person
  }: { email: string; password: string; name: string | null; invitation_token: string | undefined },
  client: SessionClient,
): Promise<SessionReply> {
  // First of all: an invented invitation must not tell whether an address has a user.
  if (invitation_token !== undefined) await open(store.read, invitation_token)
  const password_hash = await passwords.hashNew(password)
  return store.tx(async (tx) => {
    const user = await users.create(tx, { ...person, password_hash, operator: false })
    if (invitation_token !== undefined) {
      await accept(tx, invitation_token, user, users.asUser(user, client.ip))
    }
    return sessions.start(tx, user, client)
  })
}
