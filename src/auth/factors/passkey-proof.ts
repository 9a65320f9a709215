import { type Static, Type as t } from "@sinclair/typebox"
import { and, eq, lt } from "drizzle-orm"
import { now } from "../../core/time"
import { id } from "../../lib/record-fields"
import type { Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import type { EndUserRow } from "../end-users"
import type { AuthEnvironment } from "../environments"
import type { OwnSession } from "../own-user"
import type { FactorProof } from "./factor-proofs"
import { type PasskeyChallenge, takeCeremony } from "./passkey-challenges"
import { byCredential, PASSKEY_AMR, type UserPasskey } from "./passkeys"
import { relyingPartyOf } from "./relying-party"
import { finishStepUp, refuseProof } from "./step-up"
import { userPasskeys } from "./tables"
import { Assertion, readAssertion } from "./webauthn"

/** The fields by which somebody answers with a passkey. */
export const PasskeyAnswer = t.Object({
  challenge_id: id("The one of `passkeys/login/options`."),
  credential: Assertion,
})

export type GivenPasskey = Static<typeof PasskeyAnswer>

/** A signature that is right, until `take` finds a newer one: whose passkey it is, and what was asked. */
export interface PasskeyProof extends FactorProof {
  passkey: UserPasskey
  begun: PasskeyChallenge
}

/**
 * Looks at a signature, for a sign-in or a step-up. It uses its challenge up. Undefined where anything about it is
 * wrong. Throws 403 `forbidden` where passkeys work on no page.
 */
export async function provePasskey(
  { store }: Pick<AuthParts, "store">,
  environment: AuthEnvironment,
  request: Request,
  { challenge_id, credential }: GivenPasskey,
): Promise<PasskeyProof | undefined> {
  const party = relyingPartyOf(environment, request)
  const begun = await takeCeremony(store, environment, { id: challenge_id, kind: "login" })
  const passkey = begun && (await byCredential(store.read, environment, credential.id))
  if (!begun || !passkey || !isMeant(begun, passkey, credential)) return undefined
  const state = await readAssertion({ party, challenge: begun.challenge }, passkey, credential)
  if (!state) return undefined
  const take = (tx: Tx, user: EndUserRow) => noteUse(tx, user, passkey, state)
  return { method: "passkey", amr: PASSKEY_AMR, passkey, begun, take }
}

/** A step-up of the signed-in user. Throws 401 `invalid_verification`, and 403 `forbidden` as `provePasskey`. */
export async function stepUpByPasskey(
  parts: AuthParts,
  own: OwnSession,
  request: Request,
  given: GivenPasskey,
) {
  const proof = (await provePasskey(parts, own.environment, request, given)) ?? refuseProof()
  return parts.store.tx((tx) => finishStepUp(tx, parts, own, proof))
}

/** Whether it is of the user that was asked for, and of the user that it names. */
function isMeant(
  { user_id }: PasskeyChallenge,
  passkey: UserPasskey,
  { response: { userHandle } }: Static<typeof Assertion>,
): boolean {
  if (user_id !== null && user_id !== passkey.user_id) return false
  return !userHandle || Buffer.from(userHandle, "base64url").toString() === passkey.user_id
}

/**
 * False for a passkey of another user, or one that is gone, and for a counter that another signature has reached
 * meanwhile: then the passkey was copied. A counter that stays 0 counts nothing (WebAuthn, section 7.2, step 22).
 */
async function noteUse(
  tx: Tx,
  { id: user_id, project_id }: EndUserRow,
  { id }: UserPasskey,
  state: { counter: number; backed_up: boolean },
): Promise<boolean> {
  const { counter, ...table } = userPasskeys
  const grown = state.counter === 0 ? eq(counter, 0) : lt(counter, state.counter)
  const own = and(eq(table.project_id, project_id), eq(table.user_id, user_id), eq(table.id, id))
  const change = tx.update(userPasskeys).set({ ...state, last_used_at: now() })
  return (await change.where(and(own, grown)).returning()).length > 0
}
