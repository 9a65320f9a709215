import { Type as t } from "@sinclair/typebox"
import { oneOf } from "../../http/field-schemas"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import { id } from "../../lib/record-fields"
import type { AuthParts } from "../auth-parts"
import { authRow } from "../auth-rows"
import { refuseImpersonated } from "../impersonation"
import { ownUser, userMeant } from "../own-user"
import { UserRecord } from "../schemas"
import { codeField } from "../sign-in-fields"
import { enroll, verifyEnrollment } from "./enrolment"
import { disable, factorsOf, renewBackupCodes, resetFactors } from "./factor-changes"
import { PasskeyAnswer, stepUpByPasskey } from "./passkey-proof"
import {
  BackupCodes,
  Enrolment,
  FactorOn,
  FactorsLeft,
  NextStep,
  OwnFactors,
  StepUpAnswer,
} from "./schemas"
import { sendStepUpCode, stepUp } from "./step-up"

const MFA = "/v1/auth/mfa"

const USER: CallerKind[] = ["user"]
const USER_OR_KEY: CallerKind[] = ["user", "key"]

const SEND_ERRORS = [
  ["sms_not_configured", 503],
  "email_not_configured",
  "otp_send_rate_limit_exceeded",
] as const

const PROOF_ERRORS = [
  "mfa_not_enabled",
  "invalid_verification",
  "otp_verify_rate_limit_exceeded",
] as const

const method = () => t.Optional(oneOf("totp", "sms", "email"))
const user_id = () => t.Optional(id("Whose factor it is. Only keys say it."))
const code = () => t.Optional(codeField())

/** The second factors of a user, for the user and for servers. */
export const ownFactorRoutes = (parts: AuthParts): AnyRoute[] => [
  ...enrolmentRoutes(parts),
  ...changeRoutes(parts),
  resetRoute(parts),
]

/** A session that lacks its factor reaches them. */
const ownRow = <const Path extends string>(
  verb: AnyRoute["method"],
  path: Path,
  callers: CallerKind[] = USER,
) => ({
  ...authRow(verb, path, callers, callers.includes("key") ? "auth:write" : "-"),
  before_factor: true as const,
})

const enrolmentRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...ownRow("GET", MFA),
    summary: "Show your second factors",
    description: "Passkeys have one entry together.",
    response: OwnFactors,
    handle: async (call) => {
      const { read } = parts.store
      return { data: await factorsOf(read, (await ownUser(read, call)).user) }
    },
  }),
  route({
    ...ownRow("POST", `${MFA}/enroll`, USER_OR_KEY),
    summary: "Begin with a second factor",
    description:
      "It is on once its first code is verified, within 15 minutes. Then its `backup_codes` are valid, and those before them are not. A user with a factor proves it in this session first.",
    body: t.Object({
      method: method(),
      phone_number: t.Optional(
        t.String({ maxLength: 40, description: "For `sms`. Without it the user's own number." }),
      ),
      user_id: user_id(),
    }),
    example: { method: "totp" },
    response: Enrolment,
    meta: NextStep,
    sends: true,
    idempotent: true,
    sealed: true,
    errors: [
      "user_not_found",
      "forbidden",
      "email_required",
      "mfa_already_enabled",
      "mfa_required",
      "user_inactive",
      "invalid_phone_number",
      ...SEND_ERRORS,
    ],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { user_id, method = "totp", phone_number } = call.body
      const enrolling = await userMeant(parts.store.read, call, user_id)
      return enroll(parts, enrolling, { method, phone_number }, call)
    },
  }),
  route({
    ...ownRow("POST", `${MFA}/verify-enrollment`, USER_OR_KEY),
    summary: "Turn a second factor on with its first code",
    description:
      "Without `method` the code is for the newest enrolment. The user's session has the factor.",
    body: t.Object({ code: codeField(), method: method(), user_id: user_id() }),
    example: { code: "492039" },
    response: FactorOn,
    errors: [
      "user_not_found",
      "invalid_code",
      "no_pending_enrollment",
      "mfa_already_enabled",
      "mfa_required",
      "user_inactive",
      "otp_verify_rate_limit_exceeded",
    ],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const enrolling = await userMeant(parts.store.read, call, call.body.user_id)
      return { data: await verifyEnrollment(parts, enrolling, call.body, call) }
    },
  }),
]

const changeRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...ownRow("POST", `${MFA}/step-up`),
    summary: "Prove your second factor again",
    description:
      "For ten minutes, calls that ask for a code need none. A passkey answers with `challenge_id` and `credential`. Without a code one is sent, by `method` sms or email.",
    body: t.Object({
      ...{ totp_code: code(), backup_code: code() },
      ...{ method: t.Optional(oneOf("sms", "email")), code: code() },
      ...t.Partial(PasskeyAnswer).properties,
    }),
    example: { totp_code: "492039" },
    response: StepUpAnswer,
    sends: true,
    idempotent: true,
    errors: ["forbidden", ...PROOF_ERRORS, ...SEND_ERRORS],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      const { totp_code, backup_code, code, method, challenge_id, credential } = call.body
      if (challenge_id !== undefined && credential !== undefined) {
        const given = { challenge_id, credential }
        return { data: await stepUpByPasskey(parts, own, call.request, given) }
      }
      const has_code = [totp_code, backup_code, code].some((one) => one !== undefined)
      if (has_code) return { data: await stepUp(parts, own, call.body) }
      return { data: await sendStepUpCode(parts, own, method, call) }
    },
  }),
  route({
    ...ownRow("POST", `${MFA}/disable`),
    summary: "Turn a second factor off",
    description:
      "Within ten minutes of a step-up it needs no code. Without `method` the authenticator app is turned off, where there is one. Backup codes end with the last method.",
    body: t.Object({ totp_code: code(), backup_code: code(), method: method() }),
    example: { totp_code: "492039" },
    response: FactorsLeft,
    errors: [...PROOF_ERRORS, "invalid_backup_code"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      return { data: await disable(parts, own, call.body, call.ip) }
    },
  }),
  route({
    ...ownRow("POST", `${MFA}/backup-codes`),
    summary: "Make new backup codes",
    description: "The old ones work no more. Within ten minutes of a step-up it needs no code.",
    body: t.Object({ totp_code: code() }),
    example: { totp_code: "492039" },
    response: BackupCodes,
    idempotent: true,
    sealed: true,
    errors: [...PROOF_ERRORS],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      return renewBackupCodes(parts, own, call.body, call)
    },
  }),
]

const resetRoute = (parts: AuthParts) =>
  route({
    ...authRow("DELETE", "/v1/auth/users/{user_id}/mfa", ["key", "console"], "auth:write"),
    summary: "Remove the second factors of a user",
    description:
      "For a user that lost a phone or an app. Passkeys are removed too, and their sessions end.",
    response: UserRecord,
    errors: ["user_not_found", "mfa_not_enabled"],
    handle: async ({ caller, params }) => ({
      data: await parts.store.tx((tx) => resetFactors(tx, caller, params.user_id)),
    }),
  })
