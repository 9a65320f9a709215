import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { conflict } from "../../core/errors"
import { isAlive } from "../../sign-in/person-sessions"
import { rowById, rowForUpdate } from "../../store/rows"
import type { Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { byEmail, type EndUserRow, emailKeyOf, findForUpdate } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { requireEmailDomain } from "../methods"
import type { SignInAnswer } from "../schemas"
import { completeSignIn, createUser, type UserClient } from "../sign-in"
import { userSessions, users } from "../tables"
import { addIdentity, type EnteredUser, ownerOrNew } from "./identities"
import { refuseCode } from "./oauth-flows"
import type { ProvenAccount } from "./providers/oauth-adapter"

/** An account that a provider proved. */
export interface AccountShown {
  provider: string
  account: ProvenAccount
  client: UserClient
  /** The signed-in user that links it; null for a sign-in. */
  user_id: string | null
  /** Of that user, where they began. */
  session_id?: string | undefined
}

/**
 * Signs in the user of an account elsewhere. An account that nobody has is linked to the user of its address where
 * both sides verified it, and makes a user where the address has none. Throws 409 `conflict`, and as `completeSignIn`.
 */
export async function signInByAccount(
  tx: Tx,
  parts: AuthParts,
  environment: AuthEnvironment,
  { provider, account, client, user_id, session_id = "" }: AccountShown,
): Promise<Static<typeof SignInAnswer>> {
  const shown = { provider, ...account }
  const entered = user_id
    ? { user: await linkedTo(tx, environment, { user_id, session_id }, shown), is_new: false }
    : await ownerOrNew(tx, environment, shown, () => linkOrCreate(tx, environment, shown))
  const proof = { provider, amr: ["oauth"], client }
  return completeSignIn(tx, parts, { environment, ...entered, ...proof })
}

type Account = ProvenAccount & { provider: string }

/**
 * The user that is signed in says so themselves, so addresses may differ. Their session must live: a stranger that lost
 * the account may have begun.
 */
async function linkedTo(
  tx: Tx,
  environment: AuthEnvironment,
  { user_id, session_id }: { user_id: string; session_id: string },
  account: Account,
): Promise<EndUserRow> {
  // They may have been deleted while the provider was asked.
  const user = await rowForUpdate(tx, users, user_id, eq(users.project_id, environment.project_id))
  const own = and(eq(userSessions.user_id, user_id), isAlive(userSessions))
  if (!user || !(await rowById(tx, userSessions, session_id, own))) return refuseCode()
  return (await addIdentity(tx, environment, user, account)) ?? refuseLinked()
}

const refuseLinked = () =>
  conflict("already_linked", null, "A user has this account already, or you have another one.")

async function linkOrCreate(
  tx: Tx,
  environment: AuthEnvironment,
  account: Account,
): Promise<EnteredUser> {
  const { email, email_verified, name, avatar_url } = account
  const same = email === null ? undefined : await byEmail(tx, environment, email)
  if (same) return { user: await linkVerified(tx, environment, same.id, account), is_new: false }
  // Anybody can claim an address, so it counts for nothing where addresses must be verified.
  const is_taken_on = email_verified || !environment.settings.require_verified_email
  if (email !== null) requireEmailDomain(environment, email)
  const wanted = { email: is_taken_on ? email : null, email_verified, name, avatar_url }
  const made = (await createUser(tx, environment, wanted)) ?? refuseAddress()
  return {
    user: (await addIdentity(tx, environment, made, account)) ?? refuseLinked(),
    is_new: true,
  }
}

/**
 * A stranger could have made either side with an address that is not theirs. So the provider's word that the address
 * is verified verifies no user's (contract 52, section 1).
 */
async function linkVerified(
  tx: Tx,
  environment: AuthEnvironment,
  user_id: string,
  account: Account,
): Promise<EndUserRow> {
  const user = await findForUpdate(tx, environment.project_id, user_id)
  const is_same = user.email_key === emailKeyOf(account.email ?? "")
  if (!account.email_verified || !user.email_verified || !is_same) return refuseAddress()
  return (await addIdentity(tx, environment, user, account)) ?? refuseAddress()
}

const refuseAddress = () =>
  conflict(
    "email_in_use",
    null,
    "A user has this email address already. Sign in another way, and link the account then.",
  )
