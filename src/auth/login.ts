import type { Static } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { ApiError, fail } from "../core/errors"
import { needsRehash } from "../sign-in/foreign-hashes"
import * as passwords from "../sign-in/passwords"
import { rowForUpdate } from "../store/rows"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { byEmail, type EndUserRow, emailKeyOf, setUser } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countLogin, forgiveLogin } from "./guesses"
import { requireMethod } from "./methods"
import type { SignInAnswer } from "./schemas"
import { completeSignIn, type UserClient } from "./sign-in"
import { users } from "./tables"

interface TypedPassword {
  email: string
  password: string
  organization_id?: string | undefined
}

/**
 * Signs a user in by password. Throws 401 with the same words and after the same work for an unknown address and a
 * wrong password, and 429 for guessing. What is wrong with the user, only the right password brings to light.
 */
export async function login(
  parts: AuthParts,
  environment: AuthEnvironment,
  { email, password, organization_id }: TypedPassword,
  client: UserClient,
): Promise<Static<typeof SignInAnswer>> {
  requireMethod(environment, "password")
  const attempt = { identifier: emailKeyOf(email), ip: client.ip ?? "" }
  await countLogin(parts, environment, attempt)
  const user = await byEmail(parts.store.read, environment, email)
  const proven = await passwords.verify(password, user?.password_hash)
  if (!user?.password_hash || !proven) return wrong()
  const renewed = needsRehash(user.password_hash) ? await passwords.hash(password) : undefined

  const answer = await parts.store.tx(async (tx) => {
    const same = await requireUnchanged(tx, environment, user)
    await forgiveLogin(tx, parts, environment, attempt)
    const kept = renewed ? await setUser(tx, same, { password_hash: renewed }) : same
    const entering = { environment, user: kept, amr: ["pwd"], client, organization_id }
    // A refusal is no reason to count the right password as a guess: what was forgiven is committed.
    return completeSignIn(tx, parts, { ...entering, provider: "password" }).catch(asRefusal)
  })
  if (answer instanceof ApiError) throw answer
  return answer
}

function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  throw error
}

/** The password may have been changed, or the user removed, while it was being compared. */
async function requireUnchanged(
  tx: Tx,
  { project_id }: AuthEnvironment,
  { id, password_hash }: EndUserRow,
): Promise<EndUserRow> {
  const user = await rowForUpdate(tx, users, id, eq(users.project_id, project_id))
  return user?.password_hash === password_hash ? user : wrong()
}

const wrong = () => fail("unauthorized", "The email or the password is not right.")
