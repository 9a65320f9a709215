import { type Static, Type as t } from "@sinclair/typebox"
import { conflict, Problems } from "../core/errors"
import { Deleted, deleted, mailboxText, nameText } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Call, consoleRow, route } from "../http/route"
import { Password, PER_MINUTE, Session } from "../identity/schemas"
import { clientOf, type SessionReply, type Sessions } from "../identity/sessions"
import type { ConsoleMail } from "../identity/system-mail"
import * as users from "../identity/users"
import { flag, text, time } from "../lib/record-fields"
import * as invitations from "./invitations"
import { requireSignUp, type SignUp, signUp } from "./invitations"
import { AccountRole, Invitation, InvitationStatus, ProjectRole } from "./schemas"

const MOST_PROJECTS = 50

const NewInvitation = t.Object({
  email: mailboxText(),
  role: AccountRole,
  projects: t.Optional(
    t.Array(t.Object({ project_id: t.String(), role: ProjectRole }), { maxItems: MOST_PROJECTS }),
  ),
})

const invitationQuery = pageQuery({ status: t.Optional(InvitationStatus) })

const Acceptance = t.Partial(t.Object({ name: nameText(), password: Password }))

const InvitationPreview = t.Object(
  {
    email: text("ben@example.com"),
    account_name: text("Acme"),
    role: AccountRole,
    expires_at: time(),
    user_exists: flag(false, "Whether a user with this address exists already."),
  },
  { title: "InvitationPreview" },
)

export interface InvitationParts extends ConsoleMail, ListParts {
  sessions: Pick<Sessions, "start">
  sign_up: SignUp
}

const MINE = "/v1/accounts/me/invitations"
const BY_TOKEN = "/v1/invitations/{token}"
const ADMIN = "role:account_admin"

export function invitationRoutes(parts: InvitationParts): AnyRoute[] {
  const { store, cursors } = parts
  return [
    route({
      ...consoleRow("POST", "/v1/accounts/me/members/invite", ADMIN, 201),
      summary: "Invite a person by mail",
      description:
        "Sends a mail with a link that works for 7 days. `projects` gives roles in single projects.",
      body: NewInvitation,
      example: { email: "ben@example.com", role: "member" },
      read: readInvitation,
      response: Invitation,
      errors: ["conflict", "invalid_email"],
      idempotent: true,
      handle: (call) => {
        const { caller, body } = call
        return answerOnce(store, call.claim, (tx) => invitations.invite(tx, parts, body, caller))
      },
    }),
    route({
      ...consoleRow("GET", MINE, ADMIN),
      summary: "List the invitations of the account",
      description:
        "The list includes accepted, revoked and expired invitations. `status` filters them.",
      query: invitationQuery,
      response: Invitation,
      handle: (call) => {
        const { caller, query } = call
        const rows = invitations.list(store.read, caller.account_id, query.status)
        return listPage(call, cursors, rows, invitations.toResponse)
      },
    }),
    route({
      ...consoleRow("POST", `${MINE}/{invitation_id}/resend`, ADMIN),
      summary: "Send an invitation again with a new link",
      description: "The old link stops working. The new one works for 7 days.",
      response: Invitation,
      idempotent: true,
      handle: (call) => {
        const { caller, params } = call
        return answerOnce(store, call.claim, (tx) =>
          invitations.renew(tx, parts, params.invitation_id, caller),
        )
      },
    }),
    route({
      ...consoleRow("DELETE", `${MINE}/{invitation_id}`, ADMIN),
      summary: "Revoke an invitation",
      description: "The link stops working. The invitation stays in the list as `revoked`.",
      response: Deleted,
      errors: ["conflict"],
      handle: async ({ caller, params }) => {
        const id = params.invitation_id
        await store.tx((tx) => invitations.revoke(tx, id, caller))
        return deleted(id)
      },
    }),
    ...acceptRoutes(parts),
  ]
}

function readInvitation(
  { email, role, projects = [] }: Static<typeof NewInvitation>,
  problems: Problems,
): invitations.NewInvitation {
  if (role === "billing_admin" && projects.length > 0) {
    problems.add(
      "projects",
      "invalid",
      "A billing admin has no role in projects. Leave `projects` out.",
    )
  }
  return { email, role, projects }
}

/** The token of an invitation is all the proof that these need. */
const byToken = {
  credentials: ["token"],
  scope: "-",
  status: [200] as [number],
  per_minute: PER_MINUTE,
}

const acceptRoutes = (parts: InvitationParts): AnyRoute[] => [
  route({
    ...byToken,
    method: "GET",
    path: BY_TOKEN,
    callers: ["none"],
    summary: "Show an invitation by its token",
    description: "The token of the link in the mail is the only credential.",
    response: InvitationPreview,
    handle: async ({ params }) => {
      const seen = await invitations.open(parts.store.read, params.token)
      const { invitation, account_name, user } = seen
      const { email, role, expires_at } = invitation
      return { data: { email, account_name, role, expires_at, user_exists: user !== undefined } }
    },
  }),
  route({
    ...byToken,
    method: "POST",
    path: `${BY_TOKEN}/accept`,
    callers: ["none", "console"],
    summary: "Accept an invitation as a new or an existing user",
    description:
      "A new person sends a name and a password, and gets a session. A person with a user signs in first, and sends an empty body.",
    body: Acceptance,
    example: { name: "Ben", password: "Quiet-River-42" },
    response: Session,
    errors: ["forbidden", "conflict", "weak_password", "plan_limit_exceeded"],
    handle: async (call) => {
      const seen = await invitations.open(parts.store.read, call.params.token)
      if (!seen.user) return { data: await acceptAnew(parts, call, seen.invitation.email) }
      requireSelf(call, seen.user.id)
      return { data: await acceptAsUser(parts, call) }
    },
  }),
]

type AcceptCall = Call<Static<typeof Acceptance>, unknown, { token: string }>

/** The token proves that mail arrived, not that the user with its address wants to join. */
function requireSelf({ caller }: AcceptCall, user_id: string) {
  if (caller.user_id === user_id) return
  const [reason = "", text = ""] =
    caller.kind === "console"
      ? ["other_user", "The invitation is for another address. Sign in with the invited address."]
      : ["user_exists", SIGN_IN_FIRST]
  conflict(reason, null, text)
}

const SIGN_IN_FIRST =
  "A user with this address exists already. Sign in as that user with POST /v1/session. Then " +
  "accept with that access token and an empty body, or open the page /invitation/{token}."

function acceptAnew(parts: InvitationParts, call: AcceptCall, email: string) {
  requireSignUp(parts.sign_up, true) // an invitation opens no door that the operator shut
  if (call.caller.kind === "console") {
    const text =
      "The invitation is for another address. Send the request without your access token."
    conflict("other_user", null, text)
  }
  const { name = null, password = "" } = call.body
  const problems = new Problems()
  for (const field of ["name", "password"] as const) {
    if (call.body[field] === undefined) problems.add(field, "required", "The field is required.")
  }
  problems.throwIfAny()
  const person = { email, name, password, invitation_token: call.params.token }
  return signUp(parts, person, clientOf(call))
}

function acceptAsUser({ store, sessions }: InvitationParts, call: AcceptCall) {
  return store.tx(async (tx): Promise<SessionReply> => {
    const user = await users.findForUpdate(tx, call.caller.user_id ?? "")
    await invitations.accept(tx, call.params.token, user, users.asUser(user, call.ip))
    return sessions.start(tx, user, clientOf(call))
  })
}
