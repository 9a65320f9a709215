import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { invalid } from "../../core/errors"
import { issueCode, newCode } from "../../sign-in/codes"
import type { Reader, Tx } from "../../store/store"
import type { AuthParts } from "../auth-parts"
import { BY_FACTOR_MAIL, BY_TEXT, type CodeWay } from "../code-ways"
import type { EndUserRow } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { countSend, RESEND_SECONDS } from "../guesses"
import type { OtpSent } from "../schemas"
import { CODE_SECONDS, codeRow, codesOf } from "../user-codes"
import { type FactorCodePurpose, factorPlace, type SentMethod } from "./factor-proofs"
import { userFactors } from "./tables"

/** How the codes of a method reach people. */
export const WAY_OF: Record<SentMethod, CodeWay> = { sms: BY_TEXT, email: BY_FACTOR_MAIL }

interface WantedFactorCode {
  method: SentMethod
  /** The number or the address. */
  to: string
  purpose: FactorCodePurpose
}

/** A code that is ready to leave. */
interface FactorCode {
  data: Static<typeof OtpSent>
  /** The code works from this transaction on, and the one before it no more. Resolves with the message's id. */
  accept(tx: Tx): Promise<string>
}

/**
 * A code for a second factor. Sends count for the address, as those of sign-in do. Throws 429, 503
 * `sms_not_configured` and `email_not_configured`, and what a send is refused with.
 */
export async function prepareFactorCode(
  parts: AuthParts,
  environment: AuthEnvironment,
  user: EndUserRow,
  { method, to, purpose }: WantedFactorCode,
  ip: string,
): Promise<FactorCode> {
  const way = WAY_OF[method]
  await way.requireSender(parts, environment, to)
  await countSend(parts, environment, { identifier: way.keyOf(to), ip })
  const code = newCode()
  const message = await way.prepare(parts, environment, { address: to, code, user })
  const place = { purpose, identifier: factorPlace(user, method) }
  return {
    data: {
      ...{ sent: true, destination: way.masked(to) },
      ...{ expires_in: CODE_SECONDS, resend_after: RESEND_SECONDS },
    },
    accept: async (tx) => {
      const message_id = await message.accept(tx)
      const row = codeRow(environment, place, { user_id: user.id, message_id })
      await issueCode(tx, codesOf(parts.secrets), { seconds: CODE_SECONDS, code }, row)
      return message_id
    },
  }
}

/** The number or the address of a factor that is on; undefined for a method that the user does not have. */
export async function destinationOf(
  db: Reader,
  { id, project_id, email, mfa_methods }: EndUserRow,
  method: SentMethod,
): Promise<string | null | undefined> {
  if (!mfa_methods.includes(method)) return undefined
  if (method === "email") return email
  const own = and(eq(userFactors.project_id, project_id), eq(userFactors.user_id, id))
  const sms = and(own, eq(userFactors.method, "sms"))
  const [factor] = await db.select().from(userFactors).where(sms)
  return factor?.phone_number
}

/** The method that is asked for, else the first one of the user whose codes a message brings. */
export function sentMethodOf({ mfa_methods }: EndUserRow, asked: SentMethod | undefined) {
  const usual = mfa_methods.find((one) => one === "sms" || one === "email")
  const method = asked ?? usual
  if (!method) throw invalid("totp_code", "required", "The request needs a code.")
  return method
}
