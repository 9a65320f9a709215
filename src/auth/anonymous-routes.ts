import { Type as t } from "@sinclair/typebox"
import { checkMetadata, metadataObject, nameText, ONE_LINE } from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { NO_PATH_NAME, reservedProblem } from "../lib/reserved-names"
import { convert } from "./anonymous-convert"
import { signInByDevice } from "./anonymous-sign-in"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { environmentOf } from "./environments"
import { refuseImpersonated } from "./impersonation"
import { ownUser } from "./own-user"
import { SignInAnswer, signedInAs } from "./schemas"
import { clientOf } from "./sign-in"
import { passwordField, wantedEmail } from "./sign-in-fields"

const ofDevice = t.String({
  ...{ minLength: 8, maxLength: 255, pattern: ONE_LINE, not: NO_PATH_NAME },
  description:
    "A random text that the app makes once and keeps: it is like a password. Two that differ in one byte are two devices.",
})

const Device = t.Object({
  device_id: ofDevice,
  metadata: t.Optional(
    metadataObject("Your own data about a new user, at most 50 keys and 16 KiB."),
  ),
  ...targetFields,
})

const NamedPerson = t.Object({
  email: wantedEmail(),
  password: passwordField(),
  name: t.Optional(nameText()),
})

/** Users give nothing but their device, until they want to be known. */
export const anonymousRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/anonymous", ["app", "key"], "auth:write", 201, 200),
    summary: "Sign in with nothing but a device",
    description:
      "The first time makes an anonymous user; later the same device is that user. Needs the method `anonymous`, which is off at first. An access token of theirs has `anonymous` in `amr`.",
    body: Device,
    read: (body, problems) => {
      checkMetadata(body.metadata ?? {}, problems)
      const reserved = reservedProblem(body.device_id)
      if (reserved !== undefined) problems.add("device_id", "reserved", reserved)
      return body
    },
    example: { device_id: "4f2a9c1e-77b0-4f0a-9c7e-0b6c1f2d3a4b" },
    response: SignInAnswer,
    errors: ["forbidden", "user_inactive", "login_rate_limit_exceeded", "payment_required"],
    handle: async (call) => {
      const { device_id, metadata = {} } = call.body
      const environment = await environmentOf(parts.store.read, call, call.body)
      const wish = { device_id, metadata, client: clientOf(call) }
      const data = await signInByDevice(parts, environment, wish)
      return signedInAs(data)
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/anonymous/convert", ["user"], "-"),
    summary: "Give yourself an address and a password",
    description:
      "The user keeps their id and everything that is theirs. Their device signs them in no more, and their sessions end; the answer has a new one. Where the environment sets `require_verified_email`, `tokens` and `session` are null, and a mail with a link leaves.",
    body: NamedPerson,
    example: { email: "ann@example.com", password: "Quiet-River-42", name: "Ann" },
    response: SignInAnswer,
    errors: [
      "conflict",
      "forbidden",
      "weak_password",
      "invalid_email",
      "login_rate_limit_exceeded",
      "email_not_configured",
    ],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      return { data: await convert(parts, own, call.body, clientOf(call)) }
    },
  }),
]
