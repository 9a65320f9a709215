import { eq } from "drizzle-orm"
import type * as audit from "../audit-log/audit-log"
import { fail } from "../core/errors"
import { now } from "../core/time"
import { consoleUsers } from "../identity/tables"
import { hashOfToken } from "../identity/tokens"
import { held } from "../store/locks"
import type { Reader, Tx } from "../store/store"
import * as accounts from "./accounts"
import { demandRoomForFree } from "./free"
import { type InvitationRow, log, set } from "./invitations"
import { role as roleOf, seat } from "./members"
import { grantAll } from "./project-members"
import { invitations } from "./tables"

type UserRow = typeof consoleUsers.$inferSelect

/** An invitation that can be accepted, and what the invited person is to know. */
export interface Open {
  invitation: InvitationRow
  account_name: string
  user: UserRow | undefined
}

/** Throws 404 for an unknown, expired, revoked and accepted token, and for a deleted account. */
export async function open(db: Reader, token: string): Promise<Open> {
  const [invitation] = await byToken(db, token)
  if (invitation?.status !== "pending" || invitation.expires_at <= now()) return none()
  const account = await accounts.find(db, invitation.account_id)
  if (account.deleting_at) return none()
  const [user] = await db
    .select()
    .from(consoleUsers)
    .where(eq(consoleUsers.email_key, invitation.email_key))
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
export async function claim(
  tx: Tx,
  token: string,
  user: { id: string; email_key: string },
  by: audit.By,
): Promise<InvitationRow> {
  const seen = await open(tx, token)
  const account = await accounts.hold(tx, seen.invitation.account_id)
  const [before] = await held(byToken(tx, token)) // it may have been taken or revoked meanwhile
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
  if (role === "owner") await demandRoomForFree(tx, user.id, account)
  await seat(tx, account_id, user.id, role)
  await grantAll(tx, account_id, user.id, before.projects)
  const after = await set(tx, before, { status: "accepted", accepted_at: now() })
  await log(tx, by, "invitation.accepted", { before, after })
  return after
}
