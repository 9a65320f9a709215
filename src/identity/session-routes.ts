import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted } from "../http/field-schemas"
import type { Call } from "../http/route"
import { type AnyRoute, route } from "../http/route"
import { deviceRoutes } from "./device-routes"
import type { DeviceParts } from "./device-sign-in"
import { mfaRoutes } from "./mfa-routes"
import { passwordRoutes } from "./password-routes"
import {
  Challenged,
  ConsoleUser,
  Email,
  LIMIT_BYTES,
  Password,
  PER_MINUTE,
  Seats,
  Session,
  SessionRecord,
  Token,
} from "./schemas"
import * as sessions from "./sessions"
import { answerChallenge, signIn } from "./sign-in"
import { type UserParts, userRoutes } from "./user-routes"
import * as users from "./users"

const Credentials = t.Object({ email: Email, password: Password })
const Answer = t.Object({ token: Token, code: t.String({ maxLength: 64 }) })
const Refresh = t.Object({ refresh_token: Token })

export interface SessionParts extends UserParts, DeviceParts {}

const open: Pick<AnyRoute, "method" | "callers" | "scope" | "status" | "per_minute" | "limit"> = {
  method: "POST",
  callers: ["none"],
  scope: "-",
  status: [200],
  per_minute: PER_MINUTE,
  limit: LIMIT_BYTES,
}

const PATH = "/v1/session"

/** How people come in and go out; end users of a project have routes of their own. */
export const sessionRoutes = (parts: SessionParts): AnyRoute[] => [
  ...entryRoutes(parts),
  ...ownRoutes(parts),
  ...deviceRoutes(parts),
  ...userRoutes(parts),
  ...mfaRoutes(parts),
  ...passwordRoutes(parts),
]

const clientOf = ({ ip, request }: Pick<Call, "ip" | "request">): sessions.Client => ({
  ip,
  user_agent: request.headers.get("user-agent"),
  client_name: null,
})

const entryRoutes = (parts: SessionParts): AnyRoute[] => [
  route({
    ...open,
    path: PATH,
    summary: "Sign in with email and password",
    description:
      "The answer is a session. If a second factor is on, it is a challenge, which `POST /v1/session/mfa` completes. A wrong address and a wrong password get the same answer.",
    body: Credentials,
    example: { email: "ann@example.com", password: "Quiet-River-42" },
    response: t.Union([Session, Challenged]),
    errors: ["unauthorized", "login_rate_limit_exceeded"],
    handle: async (call) => ({ data: await signIn(parts, call.body, clientOf(call)) }),
  }),
  route({
    ...open,
    path: `${PATH}/mfa`,
    summary: "Complete a sign-in with a code of the second factor",
    description:
      "Send the token of the challenge and a code. The code comes from the authenticator app, or is one of the backup codes. A challenge allows only a few attempts.",
    body: Answer,
    example: { token: "mc_Zk3vX9", code: "492039" },
    response: Session,
    errors: ["invalid_mfa", "invalid_totp", "invalid_backup_code", "login_rate_limit_exceeded"],
    handle: async (call) => ({ data: await answerChallenge(parts, call.body, clientOf(call)) }),
  }),
  route({
    ...open,
    path: `${PATH}/refresh`,
    summary: "Exchange a refresh token for new tokens",
    description:
      "A refresh token works once. The answer has the next one. If a used token is sent again, the whole session ends, because the token may be stolen.",
    body: Refresh,
    example: { refresh_token: "rt_Zk3vX9" },
    response: Session,
    errors: ["unauthorized"],
    handle: async ({ body, ip }) => ({
      data: await parts.sessions.refresh(body.refresh_token, ip),
    }),
  }),
]

const ownRoutes = ({ store }: SessionParts): AnyRoute[] => [
  route({
    ...open,
    callers: ["console"],
    scope: "role:any",
    method: "GET",
    path: PATH,
    summary: "Show yourself, your accounts and this session",
    description:
      "Shows the person, their accounts with their roles, and the session of the request.",
    response: t.Object(
      { user: ConsoleUser, accounts: Seats, session: SessionRecord },
      { title: "WhoAmI" },
    ),
    handle: async ({ caller }) => {
      const { user_id, session_id } = own(caller)
      const session = await sessions.find(store.read, user_id, session_id)
      return {
        data: {
          user: users.userRecord(await users.find(store.read, user_id)),
          accounts: await users.accountsOf(store.read, user_id),
          session: sessions.sessionRecord(session, session_id),
        },
      }
    },
  }),
  route({
    ...open,
    callers: ["console"],
    scope: "role:any",
    method: "DELETE",
    path: PATH,
    summary: "Sign out",
    description: "Ends the session of the request. Its refresh token stops working at once.",
    response: Deleted,
    handle: async ({ caller, ip }) => {
      const { user_id, session_id } = own(caller)
      await store.tx(async (tx) => {
        await sessions.revoke(tx, await users.find(tx, user_id), session_id, ip)
      })
      return deleted(session_id)
    },
  }),
]

const own = ({ user_id, session_id }: Call["caller"]) => ({
  user_id: user_id ?? "",
  session_id: session_id ?? "",
})
