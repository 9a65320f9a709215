import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, route } from "../http/route"
import * as recovery from "./password-recovery"
import { demandPassword, forgive, type ProofParts } from "./proof"
import { Email, LIMIT_BYTES, Password, PER_MINUTE, Success, Token } from "./schemas"
import { BUCKETS } from "./throttle"
import { emailKey } from "./users"

const Change = t.Object({ current_password: Password, new_password: Password })
const Forgotten = t.Object({ email: Email })
const Reset = t.Object({ token: Token, new_password: Password })

const open: Pick<AnyRoute, "method" | "callers" | "scope" | "status" | "per_minute" | "limit"> = {
  method: "POST",
  callers: ["none"],
  scope: "-",
  status: [200],
  per_minute: PER_MINUTE,
  limit: LIMIT_BYTES,
}

const DONE = { data: { success: true as const } }

export const passwordRoutes = (parts: ProofParts): AnyRoute[] => [
  route({
    ...open,
    callers: ["console"],
    scope: "role:any",
    path: "/v1/users/me/password",
    summary: "Change your password and end your other sessions",
    description:
      "Needs the current password. The last five passwords are refused. This session goes on. All other sessions end.",
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
      const user = await demandPassword(parts, caller.user_id ?? "", current_password)
      const session_id = caller.session_id ?? ""
      await recovery.change(parts.store, { user, session_id, new_password, ip })
      await parts.store.tx((tx) => forgive(parts, tx, user.id))
      return DONE
    },
  }),
  route({
    ...open,
    path: "/v1/password/forgot",
    summary: "Ask for a mail with a link to set a new password",
    description:
      "The answer is the same for addresses with and without a user. The mail has a link that works once.",
    body: Forgotten,
    example: { email: "ann@example.com" },
    response: Success,
    errors: ["login_rate_limit_exceeded"],
    handle: async ({ body, ip }) => {
      const email = emailKey(body.email)
      await parts.throttle.take([BUCKETS.forgot_address, ip], [BUCKETS.forgot, email])
      await parts.store.tx((tx) => recovery.forget(tx, email))
      return DONE
    },
  }),
  route({
    ...open,
    path: "/v1/password/reset",
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
