import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, anonymousRow, route, selfRow } from "../http/route"
import {
  forgiveProof,
  type ProofParts,
  refuseCode,
  requireCode,
  requirePassword,
} from "./console-sign-in"
import * as mfa from "./mfa"
import * as recovery from "./password-recovery"
import { Email, Enrolled, Password, Success, Token } from "./schemas"
import { BUCKETS } from "./sign-in-buckets"
import * as users from "./users"

const Change = t.Object({ current_password: Password, new_password: Password })
const Forgotten = t.Object({ email: Email })
const Reset = t.Object({ token: Token, new_password: Password })
const Code = t.Object({ code: t.String({ maxLength: 64 }) })

interface CredentialParts extends ProofParts {
  base_url: () => string
}

/** What people prove themselves with: a password, and a second factor. */
export const credentialRoutes = (parts: CredentialParts): AnyRoute[] => [
  ...mfaRoutes(parts),
  ...passwordRoutes(parts),
]

const mfaRoutes = (parts: CredentialParts): AnyRoute[] => [
  route({
    ...selfRow("POST", "/v1/users/me/mfa/enroll"),
    summary: "Begin to turn on a second factor",
    description:
      "Shows a secret for an authenticator app, and backup codes. They cannot be shown again. The second factor is not on yet. Send a first code to `POST /v1/users/me/mfa/verify` within 15 minutes.",
    response: Enrolled,
    errors: ["mfa_already_enabled"],
    handle: async ({ caller }) => {
      const issuer = `Belfry ${new URL(parts.base_url()).host}`
      const { store, secrets } = parts
      const name = issuer.replaceAll(":", " ")
      return { data: await store.tx((tx) => mfa.begin(tx, secrets, caller.user_id ?? "", name)) }
    },
  }),
  route({
    ...selfRow("POST", "/v1/users/me/mfa/verify"),
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
      const pending = mfa.pendingOf(secrets, user)
      await throttle.consume([BUCKETS.proof, user.id])
      const step = await mfa.proveFirst(pending, body.code)
      await store.tx(async (tx) => {
        await mfa.complete(tx, secrets, user, { pending, step, ip })
        await forgiveProof(parts, tx, user.id)
      })
      return { data: { enabled: true as const } }
    },
  }),
  route({
    ...selfRow("POST", "/v1/users/me/mfa/disable"),
    summary: "Turn the second factor off with a code",
    description: "Needs a valid code of the authenticator app, or a backup code.",
    body: Code,
    example: { code: "492039" },
    response: t.Object({ enabled: t.Literal(false) }),
    errors: ["mfa_not_enabled", "invalid_verification", "login_rate_limit_exceeded"],
    handle: async ({ body, caller, ip }) => {
      const { user, proof } = await requireCode(parts, caller.user_id ?? "", body.code)
      await parts.store.tx(async (tx) => {
        if (!(await mfa.spend(tx, user.id, proof))) refuseCode()
        await mfa.clear(tx, user.id)
        await forgiveProof(parts, tx, user.id)
        await users.recordOwn(tx, user, ip, "mfa.disabled")
      })
      return { data: { enabled: false as const } }
    },
  }),
]

const DONE = { data: { success: true as const } }

const passwordRoutes = (parts: CredentialParts): AnyRoute[] => [
  route({
    ...selfRow("POST", "/v1/users/me/password"),
    summary: "Change your password and end your other sessions",
    description:
      "Needs the current password. The last five passwords are refused. This session stays valid. All other sessions end.",
    body: Change,
    example: { current_password: "Quiet-River-42", new_password: "Windy-Bridge-73" },
    response: Success,
    errors: [
      "invalid_current_password",
      "weak_password",
      "password_recently_used",
      "login_rate_limit_exceeded",
    ],
    handle: async ({ body, caller, ip }) => {
      const { current_password, new_password } = body
      const user = await requirePassword(parts, caller.user_id ?? "", current_password)
      const session_id = caller.session_id ?? ""
      await recovery.change(parts.store, { user, session_id, new_password, ip })
      await parts.store.tx((tx) => forgiveProof(parts, tx, user.id))
      return DONE
    },
  }),
  route({
    ...anonymousRow("POST", "/v1/password/forgot"),
    summary: "Ask for a mail with a link to set a new password",
    description:
      "The answer is the same for addresses with and without a user. The mail has a link that works once.",
    body: Forgotten,
    example: { email: "ann@example.com" },
    response: Success,
    errors: ["login_rate_limit_exceeded"],
    handle: async ({ body, ip }) => {
      const email = users.emailKey(body.email)
      await parts.throttle.consume([BUCKETS.forgot_address, ip], [BUCKETS.forgot, email])
      await parts.store.tx((tx) => recovery.forget(tx, email))
      return DONE
    },
  }),
  route({
    ...anonymousRow("POST", "/v1/password/reset"),
    summary: "Set a new password with the token of the mail; all your sessions end",
    description: "The token comes from the mail and works once. All sessions of the person end.",
    body: Reset,
    example: { token: "rt_Zk3vX9", new_password: "Windy-Bridge-73" },
    response: Success,
    errors: ["otp_expired", "weak_password", "password_recently_used"],
    handle: async ({ body, ip }) => {
      await recovery.reset(parts.store, { ...body, ip })
      return DONE
    },
  }),
]
