import { Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import { Deleted, deleted, nameText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { listPage, pageQuery } from "../http/page"
import { type AnyRoute, type CallerKind, route } from "../http/route"
import { readPhone } from "../lib/phone"
import { count, id, text, time, word } from "../lib/record-fields"
import type { AuthParts } from "./auth-parts"
import { authRow, targetFields } from "./auth-rows"
import { endSessions } from "./end-sessions"
import { toServerResponse } from "./end-users"
import { environmentOf } from "./environments"
import * as users from "./managed-users"
import { StartedSession, SUCCESS, Success, UserRecord, UserSession } from "./schemas"
import { USER_STATUSES } from "./tables"
import { importUsers } from "./user-import"
import * as input from "./user-input"
import { invite, readInvitation } from "./user-invitations"
import { list } from "./user-list"
import * as sessions from "./user-sessions"
import { activate, givePassword, impersonate, suspend } from "./user-standing"

const ALL = "/v1/auth/users"
const ONE = `${ALL}/{user_id}` as const

const SERVERS: CallerKind[] = ["key", "console"]

const MOST_REASON = 500

/** As `subscribers/bulk`. */
const IMPORT_BYTES = 8_388_608
const IMPORT_KEYS = 50_000

const MOST_IMPERSONATION_SECONDS = 3600

const userQuery = pageQuery({
  ...targetFields,
  email: t.Optional(t.String({ maxLength: 320 })),
  phone_number: t.Optional(t.String()),
  status: t.Optional(word(USER_STATUSES)),
  organization_id: t.Optional(t.String({ description: "Only members of this organization." })),
  q: t.Optional(
    nameText(200), // as other searches
  ),
})

const Invited = t.Object(
  {
    id: id("The id of the user."),
    email: text("ann@example.com"),
    status: t.Literal("invited"),
    expires_at: time(),
  },
  { title: "InvitedUser" },
)

const Impersonation = t.Object(
  {
    access_token: text("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIwMTk5…", "There is no refresh token."),
    expires_in: count(900),
    session: StartedSession,
  },
  { title: "Impersonation" },
)

/** What servers and people of the console do with the users of an application. */
export const endUserRoutes = (parts: AuthParts): AnyRoute[] => [
  ...listRoutes(parts),
  ...manyRoutes(parts),
  ...oneRoutes(parts),
  ...standingRoutes(parts),
  ...sessionRoutes(parts),
]

const by = <const Path extends string>(method: AnyRoute["method"], path: Path, status = 200) =>
  authRow(method, path, SERVERS, method === "GET" ? "auth:read" : "auth:write", status)

const listRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List users, newest first",
    description:
      "Filters can be combined. `q` finds parts of the email address, the number and the name. Without `environment` the users of `live` are listed.",
    query: userQuery,
    response: UserRecord,
    errors: ["invalid_email", "invalid_phone_number"],
    handle: async (call) => {
      const { store, cursors } = parts
      const { query } = call
      const problems = new Problems()
      const email = query.email && input.readEmail(query.email, problems)
      if (query.phone_number) readPhone(query.phone_number, "phone_number", problems)
      problems.throwIfAny()
      const environment = await environmentOf(store.read, call, query)
      const found = list(store.read, environment, { ...query, email })
      return listPage(call, cursors, found, toServerResponse)
    },
  }),
  route({
    ...by("POST", ALL, 201),
    summary: "Add a user",
    description:
      "The user can sign in at once. Without a password they need another way, such as a magic link.",
    body: input.UserInput,
    example: { email: "ann@example.com", name: "Ann", email_verified: true },
    read: input.readNew,
    response: UserRecord,
    errors: ["conflict", "forbidden", "weak_password", "invalid_email", "invalid_phone_number"],
    idempotent: true,
    handle: async (call) => {
      const { target, user } = call.body
      const environment = await environmentOf(parts.store.read, call, target)
      return users.create(parts, environment, call.caller, user, call.claim)
    },
  }),
]

const manyRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...by("POST", `${ALL}/invite`, 201),
    summary: "Invite a user by mail",
    description:
      "The link works for seven days. The user is `invited` until they register with the `invitation_token`. To invite them anew, delete the user first.",
    body: input.UserInvitation,
    example: { email: "ann@example.com", redirect_url: "https://app.example.com/welcome" },
    read: readInvitation,
    response: Invited,
    errors: [
      "conflict",
      "forbidden",
      "plan_upgrade_required",
      "invalid_email",
      "email_not_configured",
      "invalid_url",
    ],
    idempotent: true,
    handle: async (call) => {
      const environment = await environmentOf(parts.store.read, call, call.body)
      return invite(parts, environment, call.caller, call.body, call.claim)
    },
  }),
  route({
    ...by("POST", `${ALL}/import`),
    summary: "Import up to 1,000 users",
    description:
      "`failed` names those that are not added. A `password_hash` of another system works until the first sign-in, which replaces it. No event tells of imported users.",
    body: input.UserImport,
    example: { users: [{ email: "ann@example.com", email_verified: true }] },
    readRaw: input.readImport,
    response: input.UsersImported,
    errors: ["invalid_email", "invalid_phone_number"],
    limit: IMPORT_BYTES,
    most_keys: IMPORT_KEYS,
    idempotent: true,
    handle: async (call) => {
      const { target, ...items } = call.body
      const environment = await environmentOf(parts.store.read, call, target)
      return importUsers(parts, environment, call.caller, items, call.claim)
    },
  }),
]

const oneRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...by("GET", ONE),
    summary: "Show a user",
    description: "Shows `app_metadata`, too. A deleted user is not found any more.",
    response: UserRecord,
    errors: ["user_not_found"],
    handle: async ({ caller, params }) => {
      const { user } = await users.findOwned(parts.store.read, caller, params.user_id)
      return { data: toServerResponse(user) }
    },
  }),
  route({
    ...by("PATCH", ONE),
    summary: "Change a user",
    description:
      "Fields that are absent stay as they are. `metadata` and `app_metadata` are replaced as a whole. A new address or number is not verified, unless you say so.",
    body: input.UserPatch,
    example: { name: "Ann Example", app_metadata: { role: "editor" } },
    read: input.readChanges,
    response: UserRecord,
    errors: ["user_not_found", "conflict", "invalid_email", "invalid_phone_number"],
    handle: async ({ caller, params, body }) => ({
      data: await parts.store.tx((tx) => users.change(tx, caller, params.user_id, body)),
    }),
  }),
  route({
    ...by("DELETE", ONE),
    summary: "Delete a user",
    description:
      "Their sessions end, and the address and the number are free for others. The invitation of an invited user works no more.",
    response: Deleted,
    errors: ["user_not_found"],
    handle: async ({ caller, params }) => {
      await users.removeFor(parts, caller, params.user_id)
      return deleted(params.user_id)
    },
  }),
]

const standingRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...by("POST", `${ONE}/suspend`),
    summary: "Suspend a user",
    description: "Their sessions end, and they cannot sign in until somebody activates them.",
    body: t.Object({ reason: t.Optional(nameText(MOST_REASON)) }),
    example: { reason: "abuse" },
    response: UserRecord,
    errors: ["user_not_found", "conflict"],
    handle: async ({ caller, params, body }) => ({
      data: await parts.store.tx((tx) => suspend(tx, caller, params.user_id, body.reason)),
    }),
  }),
  route({
    ...by("POST", `${ONE}/activate`),
    summary: "Activate a suspended user, or lift a lockout",
    description:
      "After too many wrong passwords a user cannot use theirs for 15 minutes. This ends that time, too.",
    response: UserRecord,
    errors: ["user_not_found", "conflict"],
    handle: async ({ caller, params }) => ({
      data: await activate(parts, caller, params.user_id),
    }),
  }),
  route({
    ...by("POST", `${ONE}/password`),
    summary: "Set the password of a user",
    description: "Their sessions end, unless `keep_sessions` is true, and a mail tells them.",
    body: t.Object({
      password: input.password(),
      keep_sessions: t.Optional(t.Boolean({ default: false })),
    }),
    example: { password: "correct-Horse-7" },
    response: Success,
    errors: ["user_not_found", "conflict", "weak_password", "password_recently_used"],
    handle: async (call) => {
      await givePassword(parts, call, call.params.user_id, call.body)
      return SUCCESS
    },
  }),
  route({
    ...by("POST", `${ONE}/impersonate`, 201),
    summary: "Act as a user",
    description:
      "The token has the claim `act`, and cannot be renewed. It changes no password, address or second factor. An event and the audit log name the actor and the reason.",
    body: t.Object({
      reason: nameText(MOST_REASON),
      ttl_seconds: t.Optional(
        t.Integer({ minimum: 1, maximum: MOST_IMPERSONATION_SECONDS, default: 900 }),
      ),
    }),
    example: { reason: "ticket 4711", ttl_seconds: 900 },
    response: Impersonation,
    errors: ["user_not_found", "user_inactive"],
    idempotent: true,
    sealed: true,
    handle: (call) =>
      answerOnce(parts.store, call.claim, (tx) =>
        impersonate(tx, parts, call, call.params.user_id, call.body),
      ),
  }),
]

const sessionRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...by("GET", `${ONE}/sessions`),
    summary: "List the sessions of a user, newest first",
    description: "Each sign-in has a session of its own. Only open ones are listed.",
    query: pageQuery({}),
    response: UserSession,
    errors: ["user_not_found"],
    handle: async (call) => {
      const { store, cursors } = parts
      const { user } = await users.findOwned(store.read, call.caller, call.params.user_id)
      const found = sessions.list(store.read, user)
      return listPage(call, cursors, found, (row) => sessions.toListed(row, null))
    },
  }),
  route({
    ...by("DELETE", `${ONE}/sessions`),
    summary: "End all sessions of a user",
    description: "Their tokens are refused from the next request on.",
    response: t.Object({ revoked: count(2) }),
    errors: ["user_not_found"],
    handle: async ({ caller, params }) => {
      const revoked = await parts.store.tx(async (tx) => {
        const { environment, user } = await users.ownedForUpdate(tx, caller, params.user_id)
        const facts = { ...users.actorFacts(caller), reason: "revoked" }
        const ended = await endSessions(tx, environment, user, facts)
        await users.recordUser(tx, caller, user, "sessions_revoked", { after: { ended } })
        return ended
      })
      return { data: { revoked } }
    },
  }),
]
