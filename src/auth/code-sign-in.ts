import type { Static } from "@sinclair/typebox"
import { ApiError, type ErrorCode, fail, invalid, meaningOf } from "../core/errors"
import { keepAnswer } from "../http/idempotency"
import type { Call } from "../http/route"
import type { Caller } from "../identity/caller"
import { issueCode, newCode, takeCode, tryCode } from "../sign-in/codes"
import type { Tx } from "../store/store"
import { isKnown, type NewProfile, signInByAddress } from "./address-sign-in"
import type { AuthParts } from "./auth-parts"
import { requireCaptcha } from "./captcha"
import type { CodeWay } from "./code-ways"
import * as endUsers from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countCheck, countSend, RESEND_SECONDS } from "./guesses"
import { requireAllowedDomain, requireEmailDomain, requireMethod } from "./methods"
import { pretend } from "./pretended"
import type { OtpSent, SignInAnswer } from "./schemas"
import type { UserClient } from "./sign-in"
import { type CodePurpose, userCodes } from "./tables"
import { CODE_SECONDS, codeAt, codeRow, codesOf } from "./user-codes"

/** What a code may be asked for at the routes of codes. */
export type AskedPurpose = Extract<CodePurpose, "login" | "register" | "reauthenticate">

interface CodeWish {
  /** Left out, it is that of the calling user. */
  address: string | undefined
  purpose: AskedPurpose
}

/** The request that asks for a code or a link. */
export type SendCall = Pick<
  Call<{ captcha_token?: string | undefined }>,
  "caller" | "ip" | "claim" | "body"
>

/** Whether the environment takes codes of this way now, and if not, the reason for programs. */
export async function availabilityOf(parts: AuthParts, way: CodeWay, environment: AuthEnvironment) {
  const reason = environment.settings.methods[way.method]
    ? await reasonOfSilence(way.requireSender(parts, environment))
    : "method_off"
  const purposes: ("login" | "register")[] = ["login", "register"]
  return { available: reason === null, reason, purposes }
}

const reasonOfSilence = (checked: Promise<unknown>): Promise<string | null> =>
  checked.then(
    () => null,
    (error) => (error instanceof ApiError ? error.code : Promise.reject(error)),
  )

/**
 * Sends a code that works once and for ten minutes; the one before it works no more. Where the environment hides
 * which accounts exist, an address for which there is nothing to send gets a code that nobody knows.
 */
export async function sendCode(
  parts: AuthParts,
  way: CodeWay,
  call: SendCall,
  environment: AuthEnvironment,
  wish: CodeWish,
): Promise<Static<typeof OtpSent>> {
  const { store, secrets } = parts
  const { caller, ip, claim } = call
  const { purpose } = wish
  requirePurpose(caller, purpose)
  if (purpose !== "reauthenticate") requireMethod(environment, way.method)
  const address = await addressOf(parts, way, caller, wish.address)
  way.requireAddress(address)
  if (purpose === "register") requireWelcome(way, environment, address)
  await requireCaptcha(parts, environment, call)
  const fixed = fixedCodeOf(way, environment, address)
  if (!fixed) await way.requireSender(parts, environment, address)
  const identifier = way.keyOf(address)
  await countSend(parts, environment, { identifier, ip })
  const user = await way.find(store.read, environment, address)
  const refusal = refusalOf(way, purpose, user)
  const hides = environment.settings.hide_account_existence && purpose !== "reauthenticate"
  if (refusal && !hides) return fail(refusal, meaningOf(refusal))
  // That a user is not active, the verification tells: only the owner of the address gets that far.
  const is_for_somebody = !refusal || refusal === "user_inactive"
  const code = fixed ?? newCode()
  const message = fixed ? undefined : await way.prepare(parts, environment, { address, code, user })
  const data: Static<typeof OtpSent> = {
    ...{ sent: true, destination: way.masked(address) },
    ...{ expires_in: CODE_SECONDS, resend_after: RESEND_SECONDS },
  }
  const accept = async (tx: Tx) => (await message?.accept(tx)) ?? null
  const [message_id] = await Promise.all([
    store.tx(async (tx) => {
      const message_id = is_for_somebody ? await accept(tx) : null
      const about = { user_id: user?.id ?? null, message_id }
      const row = codeRow(environment, { purpose, identifier }, about)
      const kept = { seconds: CODE_SECONDS, code: is_for_somebody ? code : newCode() }
      await issueCode(tx, codesOf(secrets), kept, row)
      await keepAnswer(tx, claim, { data })
      return message_id
    }),
    is_for_somebody || pretend(store, accept),
  ])
  // The wait would tell which numbers get a text.
  if (message_id && !hides) await way.requireAttempt?.(parts, environment, message_id)
  return data
}

function requirePurpose({ kind }: Caller, purpose: AskedPurpose): void {
  if ((kind === "user") === (purpose === "reauthenticate")) return
  const message =
    kind === "user"
      ? "With a user's token the purpose must be reauthenticate."
      : "The purpose reauthenticate needs the token of the user."
  throw invalid("purpose", "invalid", message)
}

/** Throws 403 `forbidden` where a user names another's address, 422 where there is none to take. */
async function addressOf(
  { store }: AuthParts,
  { field, keyOf }: CodeWay,
  { end_user, project_id }: Caller,
  given: string | undefined,
): Promise<string> {
  const own = end_user && (await endUsers.find(store.read, project_id, end_user.id))[field]
  const address = given ?? own
  if (!address) throw invalid(field, "required", `The field ${field} is required.`)
  if (end_user && (!own || keyOf(own) !== keyOf(address)))
    return fail("forbidden", `A user can prove only the own ${field} again.`)
  return address
}

function requireWelcome({ field }: CodeWay, environment: AuthEnvironment, address: string): void {
  if (field === "email") requireEmailDomain(environment, address)
  else requireAllowedDomain(environment.allowed_email_domains, null)
}

/** The code of a tester of a store of apps. */
const fixedCodeOf = (
  { field, keyOf }: CodeWay,
  { settings }: AuthEnvironment,
  address: string,
): string | undefined =>
  settings.test_identifiers.find((one) => {
    const known = one[field]
    return known !== undefined && keyOf(known) === keyOf(address)
  })?.code

/** Why there is nothing to send. An invited person has no account yet, but their address is taken. */
function refusalOf(
  { unknown, taken }: CodeWay,
  purpose: AskedPurpose,
  user: endUsers.EndUserRow | undefined,
): ErrorCode | undefined {
  if (purpose === "register") return user && taken
  if (!isKnown(user)) return unknown
  return user.status === "active" ? undefined : "user_inactive"
}

interface TypedCode {
  address: string
  code: string
  purpose: "login" | "register"
  client: UserClient
  /** Of a new user. */
  profile: NewProfile
}

/**
 * Signs in the holder of the code, and makes the user where the code was sent to register. The try is counted for the
 * address before the code is looked at: a new code gives nobody new tries.
 */
export async function verifyCode(
  parts: AuthParts,
  way: CodeWay,
  environment: AuthEnvironment,
  { address, code, purpose, client, profile }: TypedCode,
): Promise<Static<typeof SignInAnswer>> {
  const { store, secrets } = parts
  requireMethod(environment, way.method)
  way.requireAddress(address)
  if (purpose === "register") requireWelcome(way, environment, address)
  const identifier = way.keyOf(address)
  await countCheck(parts, environment, identifier)
  const is_known = isKnown(await way.find(store.read, environment, address))
  if (purpose === "login" && !is_known && !environment.settings.hide_account_existence)
    return fail(way.unknown, meaningOf(way.unknown))
  const place = codeAt(environment, { purpose, identifier })
  const tried = await tryCode(store, codesOf(secrets), place, code)
  if (tried.verdict !== "right") return refuse(tried.verdict)
  const proof = { address, client, provider: way.method, amr: way.amr }
  return store.tx(async (tx) => {
    if (!(await takeCode(tx, userCodes, tried.row))) return refuse("expired")
    const wanted = purpose === "register" ? profile : undefined
    const signed_in = await signInByAddress(tx, parts, way, environment, {
      ...proof,
      profile: wanted,
    })
    return signed_in ?? refuse("wrong")
  })
}

const REFUSALS = {
  wrong: ["otp_invalid", "This code is wrong."],
  used_up: ["otp_max_attempts", "This code was tried too often. Ask for a new one."],
  expired: [
    "otp_expired",
    "There is no code to try: it has expired or was used. Ask for a new one.",
  ],
} as const

function refuse(verdict: keyof typeof REFUSALS): never {
  const [code, message] = REFUSALS[verdict]
  throw new ApiError(code, message, {}, { status: 400 })
}
