import { type TProperties, Type as t } from "@sinclair/typebox"
import type { ErrorCode } from "../core/errors"
import {
  aliasOf,
  checkMetadata,
  metadataObject,
  nameText,
  oneOf,
  orNull,
} from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { flag, maybe, text, word } from "../lib/record-fields"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { availabilityOf, sendCode, verifyCode } from "./code-sign-in"
import { BY_EMAIL, BY_TEXT, type CodeWay } from "./code-ways"
import { environmentOf } from "./environments"
import { OtpSent, SignInAnswer, signedInAs } from "./schemas"
import { clientOf } from "./sign-in"
import { captchaField, claimedEmail, codeField } from "./sign-in-fields"

const Wish = {
  purpose: t.Optional(oneOf("login", "register", "reauthenticate")),
  captcha_token: t.Optional(captchaField()),
  ...targetFields,
}

const Typed = {
  code: codeField(),
  purpose: t.Optional(oneOf("login", "register")),
  name: t.Optional(orNull(nameText())),
  metadata: t.Optional(
    metadataObject("Your own data about a new user, at most 50 keys and 16 KiB."),
  ),
  ...targetFields,
}

const Availability = t.Object({
  available: flag(true),
  reason: maybe(text("method_off", "`method_off`, or the code that a send is refused with.")),
  purposes: t.Array(word(["login", "register"])),
})

const phone = () => t.String({ maxLength: 40, examples: ["+4915112345678"] })
const PHONE_ALIAS = aliasOf("phone_number", phone())

/** Sign-in by a code of six digits: `email-otp` and `phone`. */
export const codeRoutes = (parts: AuthParts): AnyRoute[] => [
  ...rowsOf(parts, {
    way: BY_EMAIL,
    path: "/v1/auth/email-otp",
    noun: "email",
    optional: { email: t.Optional(claimedEmail()) },
    required: { email: claimedEmail() },
    example: { email: "ann@example.com" },
    send_errors: [["invalid_email", 400], "email_not_configured"],
    errors: [["invalid_email", 400]],
  }),
  ...rowsOf(parts, {
    way: BY_TEXT,
    path: "/v1/auth/phone",
    noun: "text",
    optional: { phone_number: t.Optional(phone()), phone: PHONE_ALIAS },
    required: { phone_number: phone(), phone: PHONE_ALIAS },
    example: { phone_number: "+4915112345678" },
    send_errors: ["invalid_phone", "sms_send_failed", ["sms_not_configured", 503]],
    errors: ["invalid_phone"],
  }),
]

type RowErrors = (ErrorCode | readonly [ErrorCode, number])[]

interface CodeRows {
  way: CodeWay
  path: "/v1/auth/email-otp" | "/v1/auth/phone"
  noun: "email" | "text"
  /** The field of the address. A signed-in user may leave it out. */
  optional: TProperties
  required: TProperties
  example: Record<string, string>
  send_errors: RowErrors
  errors: RowErrors
}

const rowsOf = (parts: AuthParts, rows: CodeRows): AnyRoute[] => [
  availabilityRow(parts, rows),
  sendRow(parts, rows),
  verifyRow(parts, rows),
]

const availabilityRow = (parts: AuthParts, { way, path, noun }: CodeRows) =>
  route({
    ...authRow("GET", `${path}/availability`, ["app"], "-"),
    summary: `Whether people can sign in by a code in ${noun === "text" ? "a text" : "an email"}`,
    description: "Ask before you show the form. `reason` says why a code cannot be sent.",
    response: Availability,
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call)
      return { data: await availabilityOf(parts, way, environment) }
    },
  })

const sendRow = (parts: AuthParts, { way, path, noun, optional, example, send_errors }: CodeRows) =>
  route({
    ...authRow("POST", `${path}/send`, ["app", "user", "key"], "auth:write"),
    summary: `Send a code by ${noun}`,
    description:
      "The code works once and for ten minutes. A new one takes its place. With `purpose` `reauthenticate` a signed-in user proves their identity; that code signs nobody in.",
    body: t.Object({ ...optional, ...Wish }),
    example,
    response: OtpSent,
    sends: true,
    idempotent: true,
    errors: [
      "not_found",
      "forbidden",
      way.unknown,
      way.taken,
      "user_inactive",
      "otp_send_rate_limit_exceeded",
      ...send_errors,
    ],
    handle: async (call) => {
      const { purpose = "login" } = call.body
      const environment = await environmentOf(parts.store.read, call, call.body)
      const wish = { address: addressIn(call.body, way), purpose }
      return { data: await sendCode(parts, way, call, environment, wish) }
    },
  })

const verifyRow = (parts: AuthParts, { way, path, required, example, errors }: CodeRows) =>
  route({
    ...authRow("POST", `${path}/verify`, ["app", "key"], "auth:write", 200, 201),
    summary: path.includes("phone") ? "Sign in with a code by text" : "Sign in with a code by mail",
    description:
      "With `purpose` `register` the user is made, with `name` and `metadata`. Five tries count for a code, 15 an hour for an address.",
    body: t.Object({ ...required, ...Typed }),
    read: (body, problems) => {
      checkMetadata(body.metadata ?? {}, problems)
      return body
    },
    example: { ...example, code: "123456" },
    response: SignInAnswer,
    errors: [
      "not_found",
      "forbidden",
      "otp_invalid",
      ["otp_expired", 400],
      "otp_max_attempts",
      way.unknown,
      "user_inactive",
      "otp_verify_rate_limit_exceeded",
      "payment_required",
      ...errors,
    ],
    handle: async (call) => {
      const { code, purpose = "login", name = null, metadata = {} } = call.body
      const environment = await environmentOf(parts.store.read, call, call.body)
      const typed = { address: addressIn(call.body, way) ?? "", code, purpose }
      const person = { client: clientOf(call), profile: { name, metadata } }
      const data = await verifyCode(parts, way, environment, { ...typed, ...person })
      return signedInAs(data)
    },
  })

const addressIn = (body: object, { field }: CodeWay): string | undefined =>
  (body as Partial<Record<CodeWay["field"], string>>)[field]
