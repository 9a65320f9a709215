import { Type as t } from "@sinclair/typebox"
import { type ErrorCode, invalid } from "../core/errors"
import { Deleted, deleted } from "../http/field-schemas"
import { type AnyRoute, type Call, type CallerKind, route } from "../http/route"
import { count, id, text } from "../lib/record-fields"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { askForEmail, confirmEmail } from "./change-email"
import {
  confirmByCode,
  confirmByToken,
  sendVerification,
  VERIFY_SECONDS,
} from "./email-verification"
import { type EndUserRow, toResponse } from "./end-users"
import { type AskedEnvironment, environmentOf } from "./environments"
import { refuseImpersonated } from "./impersonation"
import { leave } from "./leave"
import { ownUser, userMeant } from "./own-user"
import { changePassword } from "./password-reset"
import { SUCCESS, Success, UserRecord } from "./schemas"
import { clientOf } from "./sign-in"
import { codeField, passwordField, redirectField, tokenField, wantedEmail } from "./sign-in-fields"

const PasswordChange = t.Object({
  current_password: passwordField(),
  new_password: passwordField(),
})

const VerificationWish = t.Object({
  redirect_url: t.Optional(redirectField()),
  user_id: t.Optional(id("Whose address it is. Only keys say it.")),
})

const VerificationSent = t.Object({
  success: t.Literal(true),
  expires_in: count(VERIFY_SECONDS, "Seconds until the link expires."),
})

const Verification = t.Object({
  token: t.Optional(tokenField()),
  code: t.Optional(codeField()),
  ...targetFields,
})

const VerifiedEmail = t.Object({
  email: text("ann@example.com"),
  email_verified: t.Literal(true),
  user_id: id(),
})

const EmailChange = t.Object({
  new_email: wantedEmail(),
  password: t.Optional(passwordField()),
  code: t.Optional(codeField()),
})

const OWN: CallerKind[] = ["user"]

const PROOF_ERRORS: readonly ErrorCode[] = [
  "invalid_current_password",
  "invalid_otp",
  "otp_expired",
  "otp_max_attempts",
  "login_rate_limit_exceeded",
  "otp_verify_rate_limit_exceeded",
]

/** What users change of how they sign in. */
export const ownAccountRoutes = (parts: AuthParts): AnyRoute[] => [
  passwordRoute(parts),
  ...["send", "resend"].map((verb) => sendRoute(parts, `/v1/auth/verify-email/${verb}`)),
  confirmRoute(parts),
  ...emailRoutes(parts),
  leaveRoute(parts),
]

const passwordRoute = (parts: AuthParts) =>
  route({
    ...authRow("POST", "/v1/auth/change-password", OWN, "-"),
    summary: "Change your password",
    description: "The user's other sessions end. A mail tells the user of the change.",
    body: PasswordChange,
    example: { current_password: "Quiet-River-42", new_password: "Deep-Forest-17" },
    response: Success,
    errors: [
      "invalid_current_password",
      "weak_password",
      "password_recently_used",
      "login_rate_limit_exceeded",
    ],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { environment, user, session_id } = await ownUser(parts.store.read, call)
      await changePassword(parts, environment, user, { ...call.body, session_id }, clientOf(call))
      return SUCCESS
    },
  })

const sendRoute = (parts: AuthParts, path: string) =>
  route({
    ...authRow("POST", path, ["user", "key"], "auth:write"),
    summary: path.endsWith("/send")
      ? "Mail a link that verifies the email address"
      : "Mail that link again",
    description:
      "The mail also has a code, which the signed-in user may enter within ten minutes. The page of the link redirects to `redirect_url`.",
    body: VerificationWish,
    example: { redirect_url: "https://shop.example.com/verified" },
    response: VerificationSent,
    idempotent: true,
    errors: [
      "user_not_found",
      "already_verified",
      "invalid_url",
      "email_not_configured",
      "otp_send_rate_limit_exceeded",
    ],
    handle: async (call) => {
      const { environment, user } = await userMeant(parts.store.read, call, call.body.user_id)
      return sendVerification(parts, environment, user, call.body.redirect_url, call)
    },
  })

const confirmRoute = (parts: AuthParts) =>
  route({
    ...authRow("POST", "/v1/auth/verify-email/confirm", ["app", "user", "key"], "auth:write"),
    summary: "Verify an email address",
    description: "Send the `token` of the mail's link, or as the signed-in user its `code`.",
    body: Verification,
    example: { token: "belfry_verify_Zk3vX9" },
    response: VerifiedEmail,
    errors: ["invalid_otp", "otp_expired", "otp_max_attempts", "otp_verify_rate_limit_exceeded"],
    handle: async (call) => {
      const { email, id: user_id } = await confirmed(parts, call, call.body)
      return { data: { email: email ?? "", email_verified: true as const, user_id } }
    },
  })

async function confirmed(
  parts: AuthParts,
  call: Call,
  { token, code, ...asked }: { token?: string; code?: string } & AskedEnvironment,
): Promise<EndUserRow> {
  if (token !== undefined) {
    const environment = await environmentOf(parts.store.read, call, asked)
    return confirmByToken(parts, environment, token, call.ip)
  }
  if (code === undefined) throw invalid("token", "required", "The request needs the token.")
  if (call.caller.kind !== "user")
    throw invalid("code", "invalid", "Only the signed-in user may send a code. Send the token.")
  refuseImpersonated(call.caller)
  const { environment, user } = await ownUser(parts.store.read, call)
  return confirmByCode(parts, environment, user, code, call.ip)
}

const emailRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/change-email", OWN, "-"),
    summary: "Ask for another email address",
    description:
      "Needs the password or a code that email-otp or phone sent with `purpose: reauthenticate`. The new address gets a code, and the old one a notice.",
    body: EmailChange,
    example: { new_email: "ann@example.org", password: "Quiet-River-42" },
    response: Success,
    idempotent: true,
    errors: [
      ...PROOF_ERRORS,
      "conflict",
      "invalid_email",
      "email_not_configured",
      "otp_send_rate_limit_exceeded",
    ],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { environment, user } = await ownUser(parts.store.read, call)
      return askForEmail(parts, environment, user, call.body, call)
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/change-email/confirm", OWN, "-"),
    summary: "Take the new email address with its code",
    description:
      "The code is that of the mail to the new address, which it verifies. An address that gets codes of a second factor needs a step-up.",
    body: t.Object({ code: codeField() }),
    example: { code: "492039" },
    response: UserRecord,
    errors: [
      "conflict",
      "invalid_otp",
      "otp_expired",
      "otp_max_attempts",
      "otp_verify_rate_limit_exceeded",
      "mfa_required",
    ],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      return { data: toResponse(await confirmEmail(parts, own, call.body.code, call.ip)) }
    },
  }),
]

const leaveRoute = (parts: AuthParts) =>
  route({
    ...authRow("DELETE", "/v1/auth/users/me", OWN, "-"),
    before_factor: true,
    summary: "Delete yourself",
    description:
      "Needs the password or a code that email-otp or phone sent with `purpose: reauthenticate`. A user with a second factor steps up first. The address is free at once, and all sessions end.",
    body: t.Object({ password: t.Optional(passwordField()), code: t.Optional(codeField()) }),
    example: { password: "Quiet-River-42" },
    response: Deleted,
    errors: [...PROOF_ERRORS, "mfa_required"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      await leave(parts, own, call.body, call.ip)
      return deleted(own.user.id)
    },
  })
