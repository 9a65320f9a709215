import type { Static } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { fail } from "../../core/errors"
import { newId } from "../../core/ids"
import { hashOfToken } from "../../sign-in/tokens"
import { rowForUpdate } from "../../store/rows"
import type { AuthParts } from "../auth-parts"
import { byEmail } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { requireMethod } from "../methods"
import type { SignInAnswer } from "../schemas"
import { completeSignIn, type UserClient } from "../sign-in"
import { users } from "../tables"
import { answerChallenge } from "./challenge-answers"
import { openChallenge } from "./factor-challenges"
import { startCeremony } from "./passkey-challenges"
import { type GivenPasskey, type PasskeyProof, provePasskey } from "./passkey-proof"
import { passkeysOf } from "./passkeys"
import { relyingPartyOf } from "./relying-party"
import { requestOptions } from "./webauthn"

/**
 * Begins a sign-in, its second factor, or a step-up. An address tells nothing: the browser looks for the passkey
 * itself, and only one of the user at this address, if there is one, signs in. Throws 401 `invalid_mfa`, and 403
 * `forbidden` where passkeys work on no page.
 */
export async function beginSignIn(
  { store }: AuthParts,
  environment: AuthEnvironment,
  request: Request,
  { email, challenge_token }: { email?: string; challenge_token?: string },
) {
  const party = relyingPartyOf(environment, request)
  const { read } = store
  const challenge_hash = challenge_token === undefined ? null : hashOfToken(challenge_token)
  const waiting = challenge_hash && (await openChallenge(read, environment, challenge_hash))
  const { project_id } = environment
  const among = waiting ? await passkeysOf(read, { id: waiting.user_id, project_id }) : []
  const user_id = waiting ? waiting.user_id : await idAt(store, environment, email)
  const public_key = await requestOptions(party, among)
  const { challenge } = public_key
  const begun = { kind: "login", challenge, user_id, challenge_hash } as const
  const challenge_id = await startCeremony(store, environment, begun)
  return { challenge_id, public_key: { ...public_key } }
}

/** An address without a user gets an id that nobody has, so that no passkey fits, as if it were another's. */
const idAt = async (
  { read }: AuthParts["store"],
  environment: AuthEnvironment,
  email: string | undefined,
) => (email === undefined ? null : ((await byEmail(read, environment, email))?.id ?? newId()))

/**
 * Signs in with a passkey, which is both factors at once, or answers the challenge of a sign-in. A signature cannot be
 * guessed, and works once, so that no tries are counted. Throws 401 `unauthorized` for whatever is wrong with it, 401
 * `invalid_mfa` for a challenge that is over, 400 `user_inactive`, and 403 `forbidden` where passkeys are off: a second
 * factor stays one.
 */
export async function signIn(
  parts: AuthParts,
  environment: AuthEnvironment,
  request: Request,
  given: GivenPasskey,
  client: UserClient,
): Promise<Static<typeof SignInAnswer>> {
  const proof = await provePasskey(parts, environment, request, given)
  if (!proof) return wrong()
  const { challenge_hash } = proof.begun
  if (challenge_hash === null) return enter(parts, environment, proof, client)
  const waiting = await openChallenge(parts.store.read, environment, challenge_hash)
  return parts.store.tx((tx) =>
    answerChallenge(tx, parts, environment, waiting, { proof, client, refuse: wrong }),
  )
}

const wrong = () => fail("unauthorized", "This passkey does not verify. Begin anew.")

async function enter(
  parts: AuthParts,
  environment: AuthEnvironment,
  proof: PasskeyProof,
  client: UserClient,
): Promise<Static<typeof SignInAnswer>> {
  requireMethod(environment, "passkey")
  const { passkey, amr, method: mfa_method } = proof
  return parts.store.tx(async (tx) => {
    const own = eq(users.project_id, environment.project_id)
    const user = await rowForUpdate(tx, users, passkey.user_id, own)
    if (!user || !(await proof.take(tx, user))) return wrong()
    const entering = { environment, user, amr, client, mfa_method }
    return completeSignIn(tx, parts, { ...entering, provider: "passkey" })
  })
}
