import { and, eq, isNull, ne } from "drizzle-orm"
import { now } from "../core/time"
import { keepAnswer } from "../http/idempotency"
import type { Call } from "../http/route"
import { messages } from "../messages/tables"
import { issueCode, newCode } from "../sign-in/codes"
import type { Reader, Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import {
  byEmail,
  type EndUserRow,
  emailKeyOf,
  findForUpdate,
  holdIdentifiers,
  setUser,
} from "./end-users"
import type { AuthEnvironment } from "./environments"
import { requireStepUp } from "./factors/step-up"
import { countSend } from "./guesses"
import { linkSubscriber } from "./linked-subscriber"
import { prepareNotice } from "./notices"
import type { OwnSession } from "./own-user"
import { pretend } from "./pretended"
import { requireOwnCode, requireOwnProof } from "./proof"
import { refuseTaken } from "./register"
import { SUCCESS } from "./schemas"
import { clientOf } from "./sign-in"
import { userCodes } from "./tables"
import { CODE_SECONDS, codeRow, codesOf } from "./user-codes"
import { emitUser } from "./user-events"

interface EmailWish {
  new_email: string
  password?: string | undefined
  code?: string | undefined
}

/**
 * A signed-in user wants another address: it gets a code, and the old one is told. Throws as `requireOwnProof`, and 409
 * `conflict` for an address that has a user, unless accounts are hidden: then its code is sent to nobody.
 */
export async function askForEmail(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  { new_email, ...proof }: EmailWish,
  call: Pick<Call, "ip" | "request" | "claim">,
): Promise<typeof SUCCESS> {
  const { store, mail, secrets } = parts
  const settle = await requireOwnProof(parts, environment, user, proof)
  const identifier = emailKeyOf(new_email)
  await mail.requireSender(environment, new_email)
  const is_taken = (await byEmail(store.read, environment, new_email)) !== undefined
  const is_own = identifier === user.email_key
  if (is_taken && (is_own || !environment.settings.hide_account_existence))
    return refuseTaken("new_email")
  await countSend(parts, environment, { identifier, ip: call.ip })

  const code = newCode()
  const { name, locale } = user
  const letter = await mail.prepare(environment, {
    ...{ type: "email_otp", to: { email: new_email, name, locale } },
    ...{ variables: { code }, ends_in_seconds: CODE_SECONDS },
  })
  const about = { type: "email_changed" as const, client: clientOf(call), new_email }
  const notice = await prepareNotice(parts, environment, user, about)
  if (is_taken) await pretend(store, (tx) => letter.accept(tx))
  await store.tx(async (tx) => {
    await settle(tx)
    const message_id = is_taken ? null : await letter.accept(tx)
    const place = { purpose: "change_email" as const, identifier }
    const row = codeRow(environment, place, { user_id: user.id, message_id })
    await issueCode(tx, codesOf(secrets), { seconds: CODE_SECONDS, code }, row)
    await closeOthers(tx, user, identifier)
    await notice.accept(tx)
    await keepAnswer(tx, call.claim, SUCCESS)
  })
  return SUCCESS
}

/** One change of the address at a time: what was sent to another one works no more. */
async function closeOthers(tx: Tx, { id, project_id }: EndUserRow, identifier: string) {
  const { user_id, purpose, used_at } = userCodes
  const theirs = and(eq(userCodes.project_id, project_id), eq(user_id, id), isNull(used_at))
  const others = and(theirs, eq(purpose, "change_email"), ne(userCodes.identifier, identifier))
  await tx.update(userCodes).set({ used_at: now() }).where(others)
}

/**
 * The code of the new address was right: it is the user's from now on, and verified. Throws 422 `invalid_otp`,
 * `otp_expired`, 400 `otp_max_attempts`, 409 `conflict` where somebody else has it by now, and 403 `mfa_required` where
 * it takes the codes of the second factor along, without a step-up.
 */
export async function confirmEmail(
  parts: AuthParts,
  { environment, user, session_id }: OwnSession,
  code: string,
  ip: string,
): Promise<EndUserRow> {
  const { store } = parts
  const { found, settle } = await requireOwnCode(parts, environment, user, "change_email", code)
  const email = await spelled(store.read, found)
  return store.tx(async (tx) => {
    await settle(tx)
    const same = await findForUpdate(tx, environment.project_id, user.id)
    if (same.mfa_methods.includes("email")) await requireStepUp(tx, same, session_id)
    await holdIdentifiers(tx, environment)
    if (await byEmail(tx, environment, email)) refuseTaken("new_email")
    const renamed = await setUser(tx, same, { email, email_verified: true })
    const changed = await linkSubscriber(tx, renamed)
    await emitUser(tx, environment, changed, "user.email_verified", { ip_address: ip })
    return changed
  })
}

/** As the user wrote it, which the mail knows; a code is kept for the compared form. */
async function spelled(
  db: Reader,
  { project_id, message_id, identifier }: typeof userCodes.$inferSelect,
): Promise<string> {
  if (!message_id) return identifier
  const mail = and(eq(messages.project_id, project_id), eq(messages.id, message_id))
  const [row] = await db.select({ to: messages.recipients }).from(messages).where(mail)
  return row?.to[0]?.email ?? identifier
}
