import type { Static } from "@sinclair/typebox"
import { conflict } from "../../core/errors"
import type { Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { byEmail, type EndUserRow, emailKeyOf, findForUpdate, holdIdentifiers } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { requireAllowedDomain, requireEmailDomain } from "../methods"
import type { SignInAnswer } from "../schemas"
import { completeSignIn, createUser, type UserClient } from "../sign-in"
import { addIdentity, findByAccount } from "./identities"
import type { ProvenAccount } from "./providers/oauth-adapter"

/** An account that a provider proved. */
export interface AccountShown {
  provider: string
  account: ProvenAccount
  client: UserClient
  /** The signed-in user that links it; null for a sign-in. */
  user_id: string | null
}

/**
 * Signs in the user of an account elsewhere. An account that nobody has is linked to the user of its address where
 * both sides verified it, and makes a user where the address has none. Throws 409 `conflict`, and as `completeSignIn`.
 */
export async function signInByAccount(
  tx: Tx,
  parts: AuthParts,
  environment: AuthEnvironment,
  { provider, account, client, user_id }: AccountShown,
): Promise<Static<typeof SignInAnswer>> {
  const shown = { provider, ...account }
  const entered = user_id
    ? { user: await linkedTo(tx, environment, user_id, shown), is_new: false }
    : await ownerOf(tx, environment, shown)
  const proof = { provider, amr: ["oauth"], client }
  return completeSignIn(tx, parts, { environment, ...entered, ...proof })
}

type Account = ProvenAccount & { provider: string }

interface Entered {
  user: EndUserRow
  is_new: boolean
}

/** The user that is signed in says so themselves, so addresses may differ. */
async function linkedTo(
  tx: Tx,
  environment: AuthEnvironment,
  user_id: string,
  account: Account,
): Promise<EndUserRow> {
  const user = await findForUpdate(tx, environment.project_id, user_id)
  return (await addIdentity(tx, environment, user, account)) ?? refuseLinked()
}

const refuseLinked = () =>
  conflict("already_linked", null, "A user has this account already, or you have another one.")

/** Two first sign-ins at once are one after the other: the second one finds what the first one made. */
async function ownerOf(tx: Tx, environment: AuthEnvironment, account: Account): Promise<Entered> {
  const find = async () => {
    const known = await findByAccount(tx, environment, account)
    return known === undefined
      ? undefined
      : { user: await findForUpdate(tx, environment.project_id, known), is_new: false }
  }
  const known = await find()
  if (known) return known
  await holdIdentifiers(tx, environment)
  return (await find()) ?? (await linkOrCreate(tx, environment, account))
}

async function linkOrCreate(
  tx: Tx,
  environment: AuthEnvironment,
  account: Account,
): Promise<Entered> {
  const { email, email_verified, name, avatar_url } = account
  const same = email === null ? undefined : await byEmail(tx, environment, email)
  if (same) return { user: await linkVerified(tx, environment, same.id, account), is_new: false }
  if (email === null) requireAllowedDomain(environment.allowed_email_domains, null)
  else requireEmailDomain(environment, email)
  const wanted = { email, email_verified, name, avatar_url }
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
