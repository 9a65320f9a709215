import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, route } from "../http/route"
import { text } from "../lib/record-fields"
import { spend } from "./mfa-codes"
import * as enrolment from "./mfa-enrolment"
import { demandCode, forgive, type ProofParts, wrongCode } from "./proof"
import { LIMIT_BYTES } from "./schemas"
import { BUCKETS } from "./throttle"
import { asUser, recordForUser } from "./user-log"
import * as users from "./users"

const Code = t.Object({ code: t.String({ maxLength: 64 }) })

const Enrolled = t.Object(
  {
    secret: text("JBSWY3DPEHPK3PXP"),
    otpauth_url: text("otpauth://totp/Belfry:ann%40example.com?secret=JBSWY3DPEHPK3PXP"),
    qr_code: text("data:image/svg+xml;base64,PHN2Zy4uLg==", "An SVG image as a data URL."),
    backup_codes: t.Array(text("k3vx-9zqt")),
  },
  { title: "MfaEnrolment" },
)

const own: Pick<AnyRoute, "method" | "callers" | "scope" | "status" | "limit"> = {
  method: "POST",
  callers: ["console"],
  scope: "role:any",
  status: [200],
  limit: LIMIT_BYTES,
}

export interface MfaParts extends ProofParts {
  base_url: () => string
}

const PATH = "/v1/users/me/mfa"

export const mfaRoutes = (parts: MfaParts): AnyRoute[] => [
  route({
    ...own,
    path: `${PATH}/enroll`,
    summary: "Begin to turn on a second factor",
    description:
      "Shows a secret for an authenticator app, and backup codes. They cannot be shown again. The second factor is not on yet. Send a first code to `POST /v1/users/me/mfa/verify` within 15 minutes.",
    response: Enrolled,
    errors: ["mfa_already_enabled"],
    handle: async ({ caller }) => {
      const issuer = `Belfry ${new URL(parts.base_url()).host}`
      const { store, secrets } = parts
      const begin = store.tx((tx) =>
        enrolment.begin(tx, secrets, caller.user_id ?? "", issuer.replaceAll(":", " ")),
      )
      return { data: await begin }
    },
  }),
  route({
    ...own,
    path: `${PATH}/verify`,
    summary: "Turn the second factor on with a first code",
    description:
      "The code proves that the authenticator app has the secret. From then on, each sign-in asks for a code.",
    body: Code,
    example: { code: "492039" },
    response: t.Object({ enabled: t.Literal(true) }),
    errors: ["invalid_code", "no_pending_enrollment", "login_rate_limit_exceeded"],
    handle: async ({ body, caller, ip }) => {
      const { store, secrets, throttle } = parts
      const user = await users.find(store.read, caller.user_id ?? "")
      const pending = enrolment.pendingOf(secrets, user)
      await throttle.take([BUCKETS.proof, user.id])
      const step = await enrolment.proveFirst(pending, body.code)
      await store.tx(async (tx) => {
        await enrolment.complete(tx, secrets, user, { pending, step, ip })
        await forgive(parts, tx, user.id)
      })
      return { data: { enabled: true as const } }
    },
  }),
  route({
    ...own,
    path: `${PATH}/disable`,
    summary: "Turn the second factor off with a code",
    description: "Needs a valid code of the authenticator app, or a backup code.",
    body: Code,
    example: { code: "492039" },
    response: t.Object({ enabled: t.Literal(false) }),
    errors: ["mfa_not_enabled", "invalid_verification", "login_rate_limit_exceeded"],
    handle: async ({ body, caller, ip }) => {
      const { user, proof } = await demandCode(parts, caller.user_id ?? "", body.code)
      await parts.store.tx(async (tx) => {
        if (!(await spend(tx, user.id, proof))) wrongCode()
        await enrolment.clear(tx, user.id)
        await forgive(parts, tx, user.id)
        await recordForUser(tx, user, asUser(user, ip), "mfa.disabled")
      })
      return { data: { enabled: false as const } }
    },
  }),
]
