import { type Static, Type as t } from "@sinclair/typebox"
import { and, asc, eq } from "drizzle-orm"
import { fail } from "../../core/errors"
import { newId } from "../../core/ids"
import { now } from "../../core/time"
import { nameText } from "../../http/field-schemas"
import { fieldsOf, flag, id, maybe, text, time } from "../../lib/record-fields"
import { rowById, rowList } from "../../store/rows"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { type EndUserRow, findForUpdate } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { requireMethod } from "../methods"
import type { OwnSession } from "../own-user"
import { requireWayIn } from "../ways-in"
import { SECOND_FACTOR } from "./factor-challenges"
import { addMethod, newBackupCodesFor, ofUser, removeMethod } from "./own-factors"
import { startCeremony, takeCeremony } from "./passkey-challenges"
import { relyingPartyOf } from "./relying-party"
import { noteFactor, requireProvenSession, requireStepUp } from "./step-up"
import { userPasskeys } from "./tables"
import { creationOptions, Registration, readRegistration } from "./webauthn"

export type UserPasskey = typeof userPasskeys.$inferSelect

/** A passkey, as its user sees it (contract 51, section 2). */
export const Passkey = t.Object(
  {
    id: id(),
    name: text("Ann's phone"),
    transports: t.Array(text("internal")),
    backed_up: flag(true),
    last_used_at: maybe(time()),
    created_at: time(),
  },
  { title: "Passkey" },
)

export const toResponse = (row: UserPasskey) => fieldsOf(Passkey, row)

/** What `amr` says of a passkey: a key on a device that recognized its person (RFC 8176). */
export const PASSKEY_AMR = ["pop", SECOND_FACTOR]

const MOST_PASSKEYS = 20
const UNNAMED = "Passkey"

type Owner = Pick<EndUserRow, "id" | "project_id">

/** The passkeys of a user, oldest first; there are few. */
export const passkeysOf = (db: Reader, user: Owner): Promise<UserPasskey[]> =>
  db.select().from(userPasskeys).where(ofUser(userPasskeys, user)).orderBy(asc(userPasskeys.id))

/** The same for the user's list. */
export const list = (db: Reader, user: Owner) =>
  rowList(db, userPasskeys, { of: ofUser(userPasskeys, user), missing: noPasskey })

const noPasskey = () => fail("not_found", "There is no such passkey.")

/** By the id that its authenticator gave it. */
export async function byCredential(
  db: Reader,
  { id, project_id }: AuthEnvironment,
  credential_id: string,
): Promise<UserPasskey | undefined> {
  const { environment_id, project_id: of_project, credential_id: known } = userPasskeys
  const named = and(eq(of_project, project_id), eq(environment_id, id), eq(known, credential_id))
  const [row] = await db.select().from(userPasskeys).where(named)
  return row
}

/**
 * Begins a registration. Throws 403 `forbidden` where passkeys are off or work on no page, 403 `mfa_required` in a
 * session that lacks the user's second factor, and 409 `conflict` for a passkey too many.
 */
export async function beginRegistration(
  { store }: AuthParts,
  { environment, user, session_id }: OwnSession,
  { request, ...call }: { request: Request; party_name: string; name: string | undefined },
) {
  requireMethod(environment, "passkey")
  const party = { ...relyingPartyOf(environment, request), name: call.party_name }
  await requireProvenSession(store.read, user, session_id)
  const own = await passkeysOf(store.read, user)
  requireRoom(own)
  const public_key = await creationOptions(party, shownOf(user), own)
  const { challenge } = public_key
  const begun = { kind: "register", challenge, user_id: user.id, name: call.name } as const
  const challenge_id = await startCeremony(store, environment, begun)
  return { challenge_id, public_key: { ...public_key } }
}

/** How an authenticator shows whose passkey it is. */
const shownOf = ({ id, email, phone_number, name }: EndUserRow) => ({
  id,
  name: email ?? phone_number ?? name ?? id,
  displayName: name ?? email ?? phone_number ?? "",
})

function requireRoom(own: UserPasskey[]): void {
  if (own.length < MOST_PASSKEYS) return
  fail("conflict", `A user has at most ${MOST_PASSKEYS} passkeys.`, { reason: "too_many" })
}

export const MadePasskey = t.Object({
  challenge_id: id("The one of `passkeys/register/options`."),
  credential: Registration,
  name: t.Optional(nameText()),
})

/**
 * Adds a passkey to the signed-in user, whose session has a second factor from now on. The first method brings backup
 * codes. Throws 401 `invalid_verification`, 409 `conflict` for a passkey that is known, and as `beginRegistration`.
 */
export async function register(
  { store, secrets }: AuthParts,
  { environment, user: { id: user_id, project_id }, session_id }: OwnSession,
  { request, ip }: { request: Request; ip: string },
  { challenge_id, credential, name }: Static<typeof MadePasskey>,
) {
  requireMethod(environment, "passkey")
  const party = relyingPartyOf(environment, request)
  const asked = { id: challenge_id, kind: "register", user_id } as const
  const begun = await takeCeremony(store, environment, asked)
  const made = begun && (await readRegistration({ party, challenge: begun.challenge }, credential))
  if (!made) return fail("invalid_verification", "This passkey does not verify. Begin anew.")
  return store.tx(async (tx) => {
    const user = await findForUpdate(tx, project_id, user_id)
    await requireProvenSession(tx, user, session_id)
    requireRoom(await passkeysOf(tx, user))
    const { transports = [] } = credential.response
    const named = { name: name ?? begun.name ?? UNNAMED, transports }
    const row = await insertPasskey(tx, environment, { ...made, ...named, user_id })
    await addMethod(tx, environment, user, "passkey", { session_id, ip_address: ip })
    await noteFactor(tx, user, session_id, { amr: PASSKEY_AMR })
    const is_first = user.mfa_methods.length === 0
    const backup_codes = is_first ? await newBackupCodesFor(tx, secrets, user) : undefined
    return { ...toResponse(row), ...(backup_codes && { backup_codes }) }
  })
}

async function insertPasskey(
  tx: Tx,
  { id: environment_id, project_id }: AuthEnvironment,
  made: Omit<UserPasskey, "id" | "project_id" | "environment_id" | "last_used_at" | "created_at">,
): Promise<UserPasskey> {
  const fresh = { last_used_at: null, created_at: now() }
  const row = { id: newId(), project_id, environment_id, ...made, ...fresh }
  const [kept] = await tx.insert(userPasskeys).values(row).onConflictDoNothing().returning()
  return kept ?? fail("conflict", "This passkey is registered already.", { reason: "known" })
}

/** Throws 404 for another's. */
export async function rename(
  tx: Tx,
  user: Owner,
  passkey_id: string,
  name: string,
): Promise<UserPasskey> {
  const row =
    (await rowById(tx, userPasskeys, passkey_id, ofUser(userPasskeys, user))) ?? noPasskey()
  await tx
    .update(userPasskeys)
    .set({ name })
    .where(and(ofUser(userPasskeys, user), eq(userPasskeys.id, row.id)))
  return { ...row, name }
}

/**
 * Removes a passkey. Throws 404 for another's, 403 `mfa_required` without a step-up, and 409 `conflict` for the last way
 * in. The last method takes the backup codes with it.
 */
export async function remove(
  tx: Tx,
  { environment, user: { id: user_id, project_id }, session_id }: OwnSession,
  passkey_id: string,
  ip_address: string,
): Promise<void> {
  const user = await findForUpdate(tx, project_id, user_id)
  const own = await passkeysOf(tx, user)
  if (!own.some((row) => row.id === passkey_id)) noPasskey()
  await requireStepUp(tx, user, session_id)
  await tx
    .delete(userPasskeys)
    .where(and(ofUser(userPasskeys, user), eq(userPasskeys.id, passkey_id)))
  if (own.length > 1) return
  const facts = { session_id, ip_address }
  requireWayIn(environment, await removeMethod(tx, environment, user, "passkey", facts))
}
