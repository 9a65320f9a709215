import { ApiError, type ErrorCode, fail } from "../core/errors"
import { isMailbox, notOneAddress } from "../lib/address"
import { maskedEmail, maskedPhone } from "../lib/masked"
import { isPhone, NOT_A_PHONE } from "../lib/phone"
import type { Reader } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { byEmail, byPhone, type EndUserRow, emailKeyOf, type NewEndUser } from "./end-users"
import type { MailType } from "./environment-settings"
import type { AuthEnvironment } from "./environments"
import type { ReadyMessage } from "./sending"
import { CODE_SECONDS } from "./user-codes"

/** What a message needs to bring a code. */
interface CodeMessage {
  address: string
  code: string
  user: EndUserRow | undefined
}

/** How codes reach people: by email, or by text. */
export interface CodeWay {
  method: "email_otp" | "phone_otp"
  /** Of a request, of a user, and of a test identifier. */
  field: "email" | "phone_number"
  verified: "email_verified" | "phone_verified"
  verified_event: "user.email_verified" | "user.phone_verified"
  unknown: ErrorCode
  taken: ErrorCode
  amr: string[]
  /** Throws 400 for a text that is no address. */
  requireAddress(text: string): void
  keyOf(address: string): string
  masked(address: string): string
  find(db: Reader, environment: AuthEnvironment, address: string): Promise<EndUserRow | undefined>
  newcomer(address: string): NewEndUser
  /** Throws what nobody's code could be sent with. */
  requireSender(parts: AuthParts, environment: AuthEnvironment, address?: string): Promise<unknown>
  prepare(parts: AuthParts, environment: AuthEnvironment, what: CodeMessage): Promise<ReadyMessage>
  /** Waits a little for the first attempt. Throws where it was refused. */
  requireAttempt?(parts: AuthParts, environment: AuthEnvironment, message_id: string): Promise<void>
}

export const BY_EMAIL: CodeWay = {
  method: "email_otp",
  field: "email",
  verified: "email_verified",
  verified_event: "user.email_verified",
  unknown: "email_not_found",
  taken: "email_already_registered",
  amr: ["otp"],
  requireAddress: (text) => {
    if (!isMailbox(text)) notAnAddress("invalid_email", "email", notOneAddress(text))
  },
  keyOf: emailKeyOf,
  masked: maskedEmail,
  find: byEmail,
  newcomer: (email) => ({ email }),
  requireSender: ({ mail }, environment, address) => mail.requireSender(environment, address),
  prepare: mailOf("email_otp"),
}

/** A code for a second factor says in its mail what it is for. */
export const BY_FACTOR_MAIL: CodeWay = { ...BY_EMAIL, prepare: mailOf("mfa_code") }

export const BY_TEXT: CodeWay = {
  method: "phone_otp",
  field: "phone_number",
  verified: "phone_verified",
  verified_event: "user.phone_verified",
  unknown: "phone_not_found",
  taken: "phone_already_registered",
  amr: ["otp", "sms"],
  requireAddress: (text) => {
    if (!isPhone(text)) notAnAddress("invalid_phone", "phone_number", NOT_A_PHONE)
  },
  keyOf: (number) => number,
  masked: maskedPhone,
  find: byPhone,
  newcomer: (phone_number) => ({ phone_number }),
  requireSender: ({ texts }, environment, address) => texts.requireTexts(environment, address),
  prepare: ({ texts }, environment, { address, code, user }) =>
    texts.prepare(environment, {
      ...{ to: address, code, locale: user?.locale ?? null },
      ends_in_seconds: CODE_SECONDS,
    }),
  requireAttempt: async ({ texts }, environment, message_id) => {
    const outcome = await texts.waitForFirstAttempt(environment, message_id)
    if (outcome === "refused") fail("sms_send_failed", "The provider refused this text.")
  },
}

function mailOf(type: MailType): CodeWay["prepare"] {
  return ({ mail }, environment, { address, code, user }) =>
    mail.prepare(environment, {
      type,
      to: { email: address, name: user?.name ?? null, locale: user?.locale ?? null },
      variables: { code },
      ends_in_seconds: CODE_SECONDS,
    })
}

/** On these routes 400, as the interface says; elsewhere it is 422. */
function notAnAddress(code: ErrorCode, field: string, reason: string): never {
  throw new ApiError(code, `${field}: ${reason}`, { field, reason }, { status: 400 })
}
