import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted, nameText } from "../http/field-schemas"
import { type AnyRoute, anonymousRow, type Call, consoleRow, route, selfRow } from "../http/route"
import { count, flag, text } from "../lib/record-fields"
import { answerChallenge, type SignInParts, signIn } from "./console-sign-in"
import * as device from "./device-sign-in"
import {
  Challenged,
  ConsoleUser,
  Credentials,
  MfaAnswer,
  Seats,
  Session,
  SessionRecord,
  Token,
} from "./schemas"
import * as sessions from "./sessions"
import * as users from "./users"

const Refresh = t.Object({ refresh_token: Token })

const Program = t.Object({ client_name: nameText() })
const DeviceQuestion = t.Object({ device_code: Token })
const DeviceAnswer = t.Object({ user_code: t.String({ maxLength: 64 }), approve: t.Boolean() })

const DeviceSignIn = t.Object(
  {
    device_code: text("dc_Zk3vX9…", "The code with which the program asks for its session."),
    user_code: text("BCDF-GHJK", "The code that the person enters."),
    verification_uri: text("https://belfry.example.com/device"),
    expires_in: count(600, "Seconds until both codes expire."),
    interval: count(5, "Seconds to wait between two requests."),
  },
  { title: "DeviceSignIn" },
)

export interface SessionParts extends SignInParts, device.DeviceParts {}

const PATH = "/v1/session"

/** How people come in and go out; end users of a project have routes of their own. */
export const sessionRoutes = (parts: SessionParts): AnyRoute[] => [
  ...entryRoutes(parts),
  ...ownRoutes(parts),
  ...deviceRoutes(parts),
]

const entryRoutes = (parts: SessionParts): AnyRoute[] => [
  route({
    ...anonymousRow("POST", PATH),
    summary: "Sign in with email and password",
    description:
      "The answer is a session. If a second factor is on, it is a challenge, which `POST /v1/session/mfa` completes. A wrong address and a wrong password get the same answer.",
    body: Credentials,
    example: { email: "ann@example.com", password: "Quiet-River-42" },
    response: t.Union([Session, Challenged]),
    errors: ["unauthorized", "login_rate_limit_exceeded"],
    handle: async (call) => ({ data: await signIn(parts, call.body, sessions.clientOf(call)) }),
  }),
  route({
    ...anonymousRow("POST", `${PATH}/mfa`),
    summary: "Complete a sign-in with a code of the second factor",
    description:
      "Send the token of the challenge and a code. The code comes from the authenticator app, or is one of the backup codes. A challenge allows only a few attempts.",
    body: MfaAnswer,
    example: { token: "mc_Zk3vX9", code: "492039" },
    response: Session,
    errors: ["invalid_mfa", "invalid_totp", "invalid_backup_code", "login_rate_limit_exceeded"],
    handle: async (call) => ({
      data: await answerChallenge(parts, call.body, sessions.clientOf(call)),
    }),
  }),
  route({
    ...anonymousRow("POST", `${PATH}/refresh`),
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
    ...consoleRow("GET", PATH, "role:any"),
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
          user: users.toResponse(await users.find(store.read, user_id)),
          accounts: await users.accountsOf(store.read, user_id),
          session: sessions.toResponse(session, session_id),
        },
      }
    },
  }),
  route({
    ...consoleRow("DELETE", PATH, "role:any"),
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

/** Sign-in of a program on a machine without a browser (RFC 8628). */
const deviceRoutes = (parts: device.DeviceParts): AnyRoute[] => [
  route({
    ...anonymousRow("POST", `${PATH}/device`, 201),
    summary: "Begin a sign-in that is approved on another device",
    description:
      "For programs on machines without a browser (RFC 8628). Show `user_code` and `verification_uri` to the person, then ask `POST /v1/session/device/token` every `interval` seconds.",
    body: Program,
    example: { client_name: "belfry on laptop" },
    response: DeviceSignIn,
    handle: async ({ body, ip }) => ({ data: await device.begin(parts, body.client_name, ip) }),
  }),
  route({
    ...anonymousRow("POST", `${PATH}/device/token`),
    summary: "Ask whether the person approved the sign-in",
    description:
      "Answers 422 until the person approves the sign-in. `details.reason` is `authorization_pending`, `slow_down`, `expired` or `denied`. After the approval, the first answer has the session.",
    body: DeviceQuestion,
    example: { device_code: "dc_Zk3vX9" },
    response: Session,
    handle: async (call) => ({
      data: await device.collect(parts, call.body.device_code, sessions.clientOf(call)),
    }),
  }),
  route({
    ...selfRow("POST", `${PATH}/device/approve`),
    summary: "Approve or deny the sign-in of a program",
    description:
      "The person sends the code that the program shows. `approve: false` denies the sign-in.",
    body: DeviceAnswer,
    example: { user_code: "BCDF-GHJK", approve: true },
    response: t.Object({ approved: flag(true) }),
    errors: ["not_found"],
    handle: async ({ body, caller, ip }) => {
      const { store, secrets } = parts
      await store.tx(async (tx) => {
        const user = await users.find(tx, caller.user_id ?? "")
        await device.decide(tx, secrets, user, { ...body, ip })
      })
      return { data: { approved: body.approve } }
    },
  }),
]
