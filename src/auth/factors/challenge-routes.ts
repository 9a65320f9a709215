import { Type as t } from "@sinclair/typebox"
import { oneOf } from "../../http/field-schemas"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import type { AuthParts } from "../auth-parts"
import { authRow, targetFields } from "../auth-rows"
import { environmentOf } from "../environments"
import { AuthResult, OtpSent } from "../schemas"
import { clientOf } from "../sign-in"
import { codeField, tokenField } from "../sign-in-fields"
import { recover, sendChallengeCode, verify } from "./challenge-answers"
import { Recovered } from "./schemas"

const APPS: CallerKind[] = ["app", "key"]

const challenge_token = tokenField()

/** The second factor of a sign-in. */
export const challengeRoutes = (parts: AuthParts): AnyRoute[] => [
  ...answerRoutes(parts),
  sendRoute(parts),
]

const answerRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/mfa/verify", APPS, "auth:write"),
    summary: "Sign in with a second factor",
    description:
      "Answers the `mfa_challenge` of a sign-in, with `totp_code`, `backup_code`, or the `code` that `method` brought. Five tries count for a challenge, 15 an hour for a user.",
    body: t.Object({
      challenge_token,
      totp_code: t.Optional(codeField()),
      backup_code: t.Optional(codeField()),
      method: t.Optional(oneOf("sms", "email")),
      code: t.Optional(codeField()),
      ...targetFields,
    }),
    example: { challenge_token: "belfry_mfa_Zk3vX9", totp_code: "492039" },
    response: AuthResult,
    errors: [
      "not_found",
      "invalid_mfa",
      "invalid_totp",
      "invalid_backup_code",
      "invalid_otp",
      "otp_expired",
      "user_inactive",
      "otp_verify_rate_limit_exceeded",
    ],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      return { data: await verify(parts, environment, call.body, clientOf(call)) }
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/mfa/recovery", APPS, "auth:write"),
    summary: "Sign in with a backup code",
    description: "As `mfa/verify`. Each code works once.",
    body: t.Object({ challenge_token, backup_code: codeField(), ...targetFields }),
    example: { challenge_token: "belfry_mfa_Zk3vX9", backup_code: "k7m2p-x9q4r" },
    response: Recovered,
    errors: [
      "not_found",
      "invalid_mfa",
      "invalid_recovery_code",
      "user_inactive",
      "otp_verify_rate_limit_exceeded",
    ],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      return { data: await recover(parts, environment, call.body, clientOf(call)) }
    },
  }),
]

const sendRoute = (parts: AuthParts) =>
  route({
    ...authRow("POST", "/v1/auth/mfa/challenge/send", APPS, "auth:write"),
    summary: "Send a code for the second factor",
    description: "To the number or address of the user. The code works once and for ten minutes.",
    body: t.Object({ challenge_token, method: oneOf("sms", "email"), ...targetFields }),
    example: { challenge_token: "belfry_mfa_Zk3vX9", method: "sms" },
    response: OtpSent,
    sends: true,
    idempotent: true,
    errors: [
      "not_found",
      "invalid_mfa",
      "sms_send_failed",
      ["sms_not_configured", 503],
      "email_not_configured",
      "otp_send_rate_limit_exceeded",
    ],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      return { data: await sendChallengeCode(parts, environment, call.body, call) }
    },
  })
