import { Type as t } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { invalid } from "../core/errors"
import { Deleted, deleted } from "../http/field-schemas"
import { listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Call, type CallerKind, route } from "../http/route"
import { count, EXAMPLE_ID, flag, id } from "../lib/record-fields"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { endSessions } from "./end-sessions"
import { environmentOf } from "./environments"
import { refuseImpersonated } from "./impersonation"
import { ownUser } from "./own-user"
import {
  AccessClaims,
  ActiveOrganization,
  StartedSession,
  SUCCESS,
  Success,
  Tokens,
  UserSession,
} from "./schemas"
import { userSessions } from "./tables"
import {
  findSession,
  introspect,
  list,
  refresh,
  revokeByToken,
  switchOrganization,
  toListed,
} from "./user-sessions"

/** Longer than every token of this server. */
const MOST_TOKEN_CHARACTERS = 16_384

const token = () => t.String({ minLength: 1, maxLength: MOST_TOKEN_CHARACTERS })

const Refresh = t.Object({
  ...targetFields,
  refresh_token: token(),
  organization_id: t.Optional(
    t.String({ description: "Moves the session to this organization of the user." }),
  ),
})

const Switch = t.Object({
  organization_id: id("One of the user's organizations."),
  refresh_token: t.Optional(token()),
})

const Revocation = t.Object({
  ...targetFields,
  refresh_token: t.Optional(token()),
})

const Refreshed = t.Object(
  { tokens: Tokens, session: StartedSession, organization: ActiveOrganization },
  { title: "RefreshedSession" },
)

const EXCEPT = "Whether the session of the request stays."
const RevokeAll = t.Object({
  except_current: t.Optional(t.Boolean({ default: true, description: EXCEPT })),
})

const Introspection = t.Object(
  { active: flag(true), ...t.Partial(AccessClaims).properties },
  { title: "TokenIntrospection" },
)

const USER: CallerKind[] = ["user"]
const PATH = "/v1/auth/sessions"

/** What follows a sign-in: new tokens, and the end of sessions. */
export const userSessionRoutes = (parts: AuthParts): AnyRoute[] => [
  ...tokenRoutes(parts),
  switchRoute(parts),
  ...ownRoutes(parts),
]

const tokenRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", `${PATH}/refresh`, ["app", "key"], "auth:write"),
    summary: "Exchange a refresh token of an end user for new tokens",
    description:
      "A refresh token works once, and the answer has the next one. The same request within ten seconds gets the same answer. If a used token is sent later, the session ends, because the token may be stolen.",
    body: Refresh,
    example: { refresh_token: "belfry_refresh_Zk3vX9" },
    response: Refreshed,
    errors: ["unauthorized", "not_found", "forbidden", "user_inactive", "mfa_required"],
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      return { data: await refresh(parts, environment, { ...call.body, ip: call.ip }) }
    },
  }),
  route({
    ...authRow("POST", `${PATH}/revoke`, ["app", "key", "user"], "auth:write"),
    summary: "End the session of a refresh token",
    description:
      "A user without a `refresh_token` ends the session of the request. The answer is the same for a token that nobody knows.",
    body: Revocation,
    example: { refresh_token: "belfry_refresh_Zk3vX9" },
    response: Success,
    handle: async (call) => {
      const {
        ip,
        caller: { end_user },
      } = call
      const { refresh_token } = call.body
      const environment = await environmentOf(parts.store.read, call, call.body)
      if (refresh_token !== undefined)
        await revokeByToken(parts, environment, { refresh_token, ip })
      else if (end_user) await revokeOne(parts, call, end_user.session_id)
      else throw invalid("refresh_token", "required", "The field is required.")
      return SUCCESS
    },
  }),
  route({
    ...authRow("POST", `${PATH}/introspect`, ["key"], "auth:read"),
    summary: "Show whether an access token is valid, and its claims",
    description:
      "For servers that want to know at once of a session that ended. Others verify the token by the keys of `jwks.json` alone.",
    body: t.Object({ token: token() }),
    example: { token: "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIwMTk5…" },
    response: Introspection,
    handle: async ({ body, caller }) => {
      const claims = await introspect(parts, caller, body.token)
      return { data: claims ? { active: true, ...claims } : { active: false } }
    },
  }),
]

const switchRoute = (parts: AuthParts): AnyRoute =>
  route({
    ...authRow("POST", `${PATH}/switch-organization`, USER, "-"),
    summary: "Move your session to another of your organizations",
    description:
      "The answer has new tokens. The old refresh token dies, also where it is not sent. An organization with `mfa_required` needs a session with a second factor.",
    body: Switch,
    example: { organization_id: EXAMPLE_ID },
    response: Refreshed,
    errors: ["unauthorized", "not_found", "forbidden", "mfa_required"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const own = await ownUser(parts.store.read, call)
      return { data: await switchOrganization(parts, own, { ...call.body, ip: call.ip }) }
    },
  })

const ownRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", `${PATH}/revoke-all`, USER, "-"),
    summary: "End your sessions",
    description: "Ends every session of the user, without `except_current` but for this one.",
    body: RevokeAll,
    example: { except_current: true },
    response: t.Object({ revoked: count(2) }),
    handle: async (call) => {
      const { environment, user, session_id } = await ownUser(parts.store.read, call)
      const except = call.body.except_current === false ? undefined : session_id
      const facts = { except, reason: "revoked", ip_address: call.ip }
      const revoked = await parts.store.tx((tx) => endSessions(tx, environment, user, facts))
      return { data: { revoked } }
    },
  }),
  route({
    ...authRow("GET", PATH, USER, "-"),
    summary: "List your sessions, newest first",
    description: "Each sign-in has a session of its own. `current` marks the one of the request.",
    query: pageQuery({}),
    response: UserSession,
    handle: async (call) => {
      const { store, cursors } = parts
      const { user, session_id } = await ownUser(store.read, call)
      return listPage(call, cursors, list(store.read, user), (row) => toListed(row, session_id))
    },
  }),
  route({
    ...authRow("DELETE", `${PATH}/{session_id}`, USER, "-"),
    summary: "End one of your sessions in an application",
    description: "Its tokens are refused from the next request on.",
    response: Deleted,
    errors: ["not_found"],
    handle: async (call) => deleted(await revokeOne(parts, call, call.params.session_id)),
  }),
]

/** Throws 404 for a session of somebody else. */
async function revokeOne({ store }: AuthParts, call: Call, id: string): Promise<string> {
  const { environment, user } = await ownUser(store.read, call)
  await findSession(store.read, user, id)
  const facts = { which: eq(userSessions.id, id), reason: "revoked", ip_address: call.ip }
  await store.tx((tx) => endSessions(tx, environment, user, facts))
  return id
}
