import { Type as t } from "@sinclair/typebox"
import {
  Deleted,
  deleted,
  localeText,
  mailboxText,
  nameText,
  timeZoneText,
} from "../http/field-schemas"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, anonymousRow, route, selfRow } from "../http/route"
import { comparable } from "../lib/address"
import { requireSignUp, type SignUp, signUp } from "../tenancy/invitations"
import { removeUser } from "../tenancy/members"
import { type ProofParts, requirePassword } from "./console-sign-in"
import { ConsoleUser, LONG_EMAIL, Password, Session, SessionRecord, Token } from "./schemas"
import * as sessions from "./sessions"
import { BUCKETS } from "./sign-in-buckets"
import * as users from "./users"

const Newcomer = t.Object({
  email: mailboxText(LONG_EMAIL),
  password: Password,
  name: t.Optional(nameText()),
  invitation_token: t.Optional(Token),
})

const Patch = t.Partial(
  t.Object({
    name: t.Union([nameText(), t.Null()]),
    locale: localeText(),
    timezone: timeZoneText(),
  }),
)

const Farewell = t.Object({ password: Password })
const sessionQuery = pageQuery({})

export interface UserParts extends ProofParts, ListParts {
  sessions: sessions.Sessions
  sign_up: SignUp
}

const ME = "/v1/users/me"

export const userRoutes = (parts: UserParts): AnyRoute[] => [
  signUpRoute(parts),
  ...selfRoutes(parts),
  ...sessionListRoutes(parts),
]

const signUpRoute = (parts: UserParts) =>
  route({
    ...anonymousRow("POST", "/v1/users", 201),
    summary: "Sign up as a console user",
    description:
      "The person gets no account of their own. The operator's setting `sign_up` decides whether this works without an invitation.",
    body: Newcomer,
    example: { email: "ann@example.com", password: "Quiet-River-42", name: "Ann" },
    response: Session,
    errors: [
      "forbidden",
      "not_found",
      "conflict",
      "weak_password",
      "invalid_email",
      "login_rate_limit_exceeded",
    ],
    handle: async (call) => {
      const { email, password, name = null, invitation_token } = call.body
      requireSignUp(parts.sign_up, invitation_token !== undefined)
      await parts.throttle.consume(
        [BUCKETS.sign_up_address, call.ip],
        [BUCKETS.sign_up, comparable(email)],
      )
      const newcomer = { email, password, name, invitation_token }
      return { data: await signUp(parts, newcomer, sessions.clientOf(call)) }
    },
  })

const selfRoutes = (parts: UserParts): AnyRoute[] => [
  route({
    ...selfRow("GET", ME),
    summary: "You",
    description: "Shows the person of the session.",
    response: ConsoleUser,
    handle: async ({ caller }) => ({
      data: users.toResponse(await users.find(parts.store.read, caller.user_id ?? "")),
    }),
  }),
  route({
    ...selfRow("PATCH", ME),
    summary: "Change your name, language and time zone",
    description:
      "Fields that are absent stay as they are. You cannot change the email address here.",
    body: Patch,
    example: { name: "Ann", timezone: "Europe/Vienna" },
    response: ConsoleUser,
    handle: async ({ body, caller }) => {
      const user = await parts.store.tx((tx) => users.set(tx, caller.user_id ?? "", body))
      return { data: users.toResponse(user) }
    },
  }),
  route({
    ...selfRow("DELETE", ME),
    summary: "Delete yourself; what your accounts hold stays theirs",
    description:
      "Needs the password. The last owner of an account must transfer or delete it first.",
    body: Farewell,
    example: { password: "Quiet-River-42" },
    response: Deleted,
    errors: ["conflict", "invalid_current_password", "login_rate_limit_exceeded"],
    handle: async ({ body, caller, ip }) => {
      const user = await requirePassword(parts, caller.user_id ?? "", body.password)
      await parts.store.tx((tx) => removeUser(tx, user.id, users.asUser(user, ip)))
      return deleted(user.id)
    },
  }),
]

const sessionListRoutes = ({ store, cursors }: UserParts): AnyRoute[] => [
  route({
    ...selfRow("GET", `${ME}/sessions`),
    summary: "Where you are signed in, newest first",
    description:
      "Each browser and each program has a session of its own. End one of them with `DELETE /v1/users/me/sessions/{session_id}`.",
    query: sessionQuery,
    response: SessionRecord,
    handle: (call) => {
      const { user_id, session_id } = call.caller
      const rows = sessions.list(store.read, user_id ?? "")
      return listPage(call, cursors, rows, (row) => sessions.toResponse(row, session_id ?? ""))
    },
  }),
  route({
    ...selfRow("DELETE", `${ME}/sessions/{session_id}`),
    summary: "End one of your sessions",
    description: "Ends the session and its refresh token at once.",
    response: Deleted,
    handle: async ({ caller, params, ip }) => {
      const id = params.session_id
      await store.tx(async (tx) => {
        const user = await users.find(tx, caller.user_id ?? "")
        await sessions.revoke(tx, user, id, ip)
      })
      return deleted(id)
    },
  }),
]
