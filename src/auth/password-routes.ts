import { Type as t } from "@sinclair/typebox"
import { checkMetadata, localeText, metadataObject, nameText } from "../http/field-schemas"
import { type AnyRoute, type CallerKind, route } from "../http/route"
import { maskedEmail } from "../lib/masked"
import { flag, maybe, text } from "../lib/record-fields"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { requireCaptcha } from "./captcha"
import { environmentOf } from "./environments"
import { login } from "./login"
import { forgetPassword, ownerOfReset, resetPassword } from "./password-reset"
import { register } from "./register"
import { AuthResult, SignInAnswer, SUCCESS, Success } from "./schemas"
import { clientOf } from "./sign-in"
import {
  captchaField,
  claimedEmail,
  passwordField,
  redirectField,
  tokenField,
  wantedEmail,
} from "./sign-in-fields"

const Newcomer = t.Object({
  email: wantedEmail(),
  password: passwordField(),
  name: t.Optional(nameText()),
  locale: t.Optional(localeText()),
  metadata: t.Optional(metadataObject("Your own data, at most 50 keys and 16 KiB.")),
  captcha_token: t.Optional(captchaField()),
  invitation_token: t.Optional(tokenField()),
  ...targetFields,
})

const TypedPassword = t.Object({
  email: claimedEmail(),
  password: passwordField(),
  organization_id: t.Optional(t.String({ description: "Where the session begins." })),
  ...targetFields,
})

const Forgotten = t.Object({
  email: claimedEmail(),
  redirect_url: t.Optional(redirectField()),
  captcha_token: t.Optional(captchaField()),
  ...targetFields,
})
const ResetQuestion = t.Object({ token: tokenField(), ...targetFields })
const NewPassword = t.Object({
  token: tokenField(),
  new_password: passwordField(),
  ...targetFields,
})

const ResetState = t.Object({
  valid: flag(true),
  email_hint: maybe(text("a••@example.com", "Whose password it sets, for people to see.")),
})

const CALLERS: CallerKind[] = ["app", "key"]
const EXAMPLE = { email: "ann@example.com", password: "Quiet-River-42" }

/** Ways in by password, and back to one. */
export const passwordRoutes = (parts: AuthParts): AnyRoute[] => [
  ...entryRoutes(parts),
  ...resetRoutes(parts),
]

const entryRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/users/register", CALLERS, "auth:write", 201),
    summary: "Register a user with a password",
    description:
      "The answer is a session. Where the environment sets `require_verified_email`, `tokens` and `session` are null, and a mail with a link leaves. An invited user sends the `invitation_token` of the mail.",
    body: Newcomer,
    read: (body, problems) => {
      checkMetadata(body.metadata ?? {}, problems)
      return body
    },
    example: { ...EXAMPLE, name: "Ann" },
    response: AuthResult,
    idempotent: true,
    sealed: true,
    errors: [
      "conflict",
      "forbidden",
      "otp_expired",
      "weak_password",
      "invalid_email",
      "login_rate_limit_exceeded",
      "payment_required",
      "email_not_configured",
    ],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      await requireCaptcha(parts, environment, call)
      const data = await register(parts, environment, call.body, clientOf(call), call.claim)
      return { data }
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/users/login", CALLERS, "auth:write"),
    summary: "Sign a user in with email and password",
    description:
      "An unknown address and a wrong password get the same answer. After ten tries within 15 minutes an address takes no password until the window ends.",
    body: TypedPassword,
    example: EXAMPLE,
    response: SignInAnswer,
    errors: ["unauthorized", "user_inactive", "forbidden", "login_rate_limit_exceeded"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      return { data: await login(parts, environment, call.body, clientOf(call)) }
    },
  }),
]

const resetRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/forgot-password", CALLERS, "auth:write"),
    summary: "Mail a link for a new password",
    description:
      "The answer is the same for every address. The link works once, for 15 minutes. Its page redirects to `redirect_url` with a `code`, which reset-password takes as `token`.",
    body: Forgotten,
    example: { email: EXAMPLE.email },
    response: Success,
    idempotent: true,
    errors: ["forbidden", "invalid_url", "email_not_configured", "login_rate_limit_exceeded"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      await requireCaptcha(parts, environment, call)
      return forgetPassword(parts, environment, call.body, call)
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/validate-reset-token", CALLERS, "auth:write"),
    summary: "Ask whether a token still sets a password",
    description: "The token stays as it is.",
    body: ResetQuestion,
    example: { token: "belfry_reset_Zk3vX9" },
    response: ResetState,
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      const owner = await ownerOfReset(parts.store.read, environment, call.body.token)
      const email_hint = owner?.email ? maskedEmail(owner.email) : null
      return { data: { valid: owner !== undefined, email_hint } }
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/reset-password", CALLERS, "auth:write"),
    summary: "Set a new password with the token of a mail",
    description: "All sessions of the user end. A mail tells the user of the change.",
    body: NewPassword,
    example: { token: "belfry_reset_Zk3vX9", new_password: "Deep-Forest-17" },
    response: Success,
    errors: ["otp_expired", "weak_password", "password_recently_used"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      await resetPassword(parts, environment, call.body, clientOf(call))
      return SUCCESS
    },
  }),
]
