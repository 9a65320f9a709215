import { and, eq } from "drizzle-orm"
import { issueCode, newCode } from "../../sign-in/codes"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { BY_FACTOR_MAIL, BY_TEXT, type CodeWay } from "../code-ways"
import type { EndUserRow } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { countSend, RESEND_SECONDS } from "../guesses"
import { CODE_SECONDS, codeRow, codesOf } from "../user-codes"
import { type FactorCodePurpose, factorPlace, type SentMethod } from "./factor-proofs"
import { ofUser } from "./own-factors"
import { userFactors } from "./tables"

/** How the codes of a method reach people. */
export const WAY_OF: Record<SentMethod, CodeWay> = { sms: BY_TEXT, email: BY_FACTOR_MAIL }

interface WantedFactorCode {
  method: SentMethod
  /** The number or the address, for which sends count as those of sign-in do. */
  to: string
  purpose: FactorCodePurpose
}

/**
 * A code for a second factor; it works from the transaction of `accept` on, which resolves with the message's id.
 * Throws 429, 503 `sms_not_configured` and `email_not_configured`, and what a send is refused with.
 */
export async function prepareFactorCode(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  { method, to, purpose }: WantedFactorCode,
  ip: string,
) {
  const way = WAY_OF[method]
  await way.requireSender(parts, environment, to)
  await countSend(parts, environment, { identifier: way.keyOf(to), ip, purpose })
  const code = newCode()
  const message = await way.prepare(parts, environment, { address: to, code, user })
  const place = { purpose, identifier: factorPlace(user, method) }
  const accept = async (tx: Tx) => {
    const message_id = await message.accept(tx)
    const row = codeRow(environment, place, { user_id: user.id, message_id })
    await issueCode(tx, codesOf(parts.secrets), { seconds: CODE_SECONDS, code }, row)
    return message_id
  }
  const sent = { sent: true as const, destination: way.masked(to) }
  return { data: { ...sent, expires_in: CODE_SECONDS, resend_after: RESEND_SECONDS }, accept }
}

/** The number or the address of a factor that is on; undefined for a method that the user does not have. */
export async function destinationOf(
  db: Reader,
  user: EndUserRow,
  method: SentMethod,
): Promise<string | null | undefined> {
  if (!user.mfa_methods.includes(method)) return undefined
  if (method === "email") return user.email
  const sms = and(ofUser(userFactors, user), eq(userFactors.method, "sms"))
  const [factor] = await db.select().from(userFactors).where(sms)
  return factor?.phone_number
}
