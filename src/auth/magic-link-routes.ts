import { Type as t } from "@sinclair/typebox"
import { oneOf } from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { count } from "../lib/record-fields"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { environmentOf } from "./environments"
import { sendMagicLink, verifyMagicLink } from "./magic-links"
import { SignInAnswer, Success, signedInAs } from "./schemas"
import { clientOf } from "./sign-in"
import { captchaField, redirectField, tokenField, wantedEmail } from "./sign-in-fields"

const Wish = t.Object({
  email: wantedEmail(),
  redirect_url: redirectField(),
  purpose: t.Optional(oneOf("login", "register")),
  captcha_token: t.Optional(captchaField()),
  ...targetFields,
})

const LinkSent = t.Composite([
  Success,
  t.Object({ expires_in: count(900), resend_after: count(30) }),
])

/** Sign-in by a link in a mail. */
export const magicLinkRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/magic-link/send", ["app", "key"], "auth:write"),
    summary: "Mail a link that signs in",
    description:
      "The link works once and for 15 minutes. Its page sends the browser to `redirect_url` with a `code`. An address without a user gets a mail only with `purpose` `register`.",
    body: Wish,
    example: { email: "ann@example.com", redirect_url: "https://app.example.com/signed-in" },
    response: LinkSent,
    sends: true,
    idempotent: true,
    errors: [
      "not_found",
      "forbidden",
      "invalid_email",
      "invalid_url",
      "user_inactive",
      "email_not_configured",
      "otp_send_rate_limit_exceeded",
    ],
    handle: async (call) => {
      const { email, redirect_url, purpose = "login" } = call.body
      const environment = await environmentOf(parts.store.read, call, call.body)
      const wish = { email, redirect_url, purpose }
      return { data: await sendMagicLink(parts, call, environment, wish) }
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/magic-link/verify", ["app", "key"], "auth:write", 200, 201),
    summary: "Sign in with the code of a link",
    description: "The code that the page of the link appended works once and for a minute.",
    body: t.Object({ token: tokenField(), ...targetFields }),
    example: { token: "belfry_code_Zk3vX9…" },
    response: SignInAnswer,
    errors: ["not_found", "forbidden", "otp_expired", "user_inactive", "payment_required"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      const data = await verifyMagicLink(parts, environment, call.body.token, clientOf(call))
      return signedInAs(data)
    },
  }),
]
