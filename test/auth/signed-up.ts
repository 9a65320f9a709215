import { findForUpdate, type NewEndUser } from "../../src/auth/end-users"
import type { AuthResultRecord } from "../../src/auth/schemas"
import { completeSignIn, createUser, type ProvenUser } from "../../src/auth/sign-in"
import type { EnvironmentName } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import type { TestApplication } from "../harness/application"
import { callingWith } from "../harness/client"
import type { TestService } from "../harness/service"

type Entered = Partial<Omit<ProvenUser, "environment" | "user">> & {
  environment?: EnvironmentName
}

/** A user's answer of a way in; tests of them have a session. */
export type SignedIn = AuthResultRecord & {
  tokens: NonNullable<AuthResultRecord["tokens"]>
  session: NonNullable<AuthResultRecord["session"]>
}

const CLIENT = {
  ip: "192.0.2.7",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
}

const USUAL = { provider: "password", amr: ["pwd"], client: CLIENT } as const

type Doors = Pick<TestService, "store" | "app" | "parts">

/** Somebody new, whom no password was asked for. */
export async function signUp(
  { store, parts }: Doors,
  shop: TestApplication,
  wanted: NewEndUser = {},
  { environment: name = "live", ...entered }: Entered = {},
): Promise<SignedIn> {
  const environment = await shop.environment(name)
  const given = { email: `${newId()}@users.test`, email_verified: true, ...wanted }
  return (await store.tx(async (tx) => {
    const user = await createUser(tx, environment, given)
    if (!user) throw new Error("the address is taken")
    const proven = { ...USUAL, amr: [...USUAL.amr], environment, user, is_new: true, ...entered }
    return completeSignIn(tx, parts.auth, proven)
  })) as SignedIn
}

/** The same person once more. */
export async function signInAgain(
  { store, parts }: Doors,
  shop: TestApplication,
  user_id: string,
  { environment: name = "live", ...entered }: Entered = {},
): Promise<SignedIn> {
  const environment = await shop.environment(name)
  return (await store.tx(async (tx) => {
    const user = await findForUpdate(tx, shop.project_id, user_id)
    const proven = { ...USUAL, amr: [...USUAL.amr], environment, user, ...entered }
    return completeSignIn(tx, parts.auth, proven)
  })) as SignedIn
}

/** Calls with the access token of a user. */
export const asUser = ({ app }: Pick<Doors, "app">, { tokens }: Pick<SignedIn, "tokens">) =>
  callingWith(app, { authorization: `Bearer ${tokens.access_token}` })
