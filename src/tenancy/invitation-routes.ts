import { type Static, Type as t } from "@sinclair/typebox"
import { Deleted, deleted, oneOf } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { asPage, type Cursors, keyById, pageQuery, windowOf } from "../http/page"
import type { Problems } from "../http/problems"
import type { Call } from "../http/route"
import { type AnyRoute, route } from "../http/route"
import { check } from "../http/validate"
import { isMailbox, notOneAddress } from "../lib/address"
import { id, maybe, text, time, word } from "../lib/record-fields"
import { type AcceptParts, acceptRoutes } from "./accept-routes"
import { type Post, sendInvitation } from "./invitation-mail"
import * as invitations from "./invitations"

const MOST_PROJECTS = 50

const STATUSES = ["pending", "accepted", "revoked", "expired"] as const

const Role = oneOf("owner", "admin", "billing_admin", "member")
const ProjectRole = oneOf("admin", "developer", "viewer")
const Grant = t.Object({ project_id: t.String(), role: ProjectRole })

const NewInvitation = t.Object({
  email: t.String(),
  role: Role,
  projects: t.Optional(t.Array(Grant, { maxItems: MOST_PROJECTS })),
})

const Invitation = t.Object(
  {
    id: id(),
    email: text("ben@example.com"),
    role: Role,
    projects: t.Array(t.Object({ project_id: id(), role: ProjectRole })),
    status: word(STATUSES),
    expires_at: time(),
    invited_by: maybe(id()),
    created_at: time(),
  },
  { title: "Invitation" },
)

const invitationQuery = pageQuery({
  status: t.Optional(word(STATUSES)),
})

export interface InvitationParts extends Post, AcceptParts {
  cursors: Cursors
}

const PATH = "/v1/accounts/me/invitations"

export function invitationRoutes(parts: InvitationParts): AnyRoute[] {
  const { store, cursors } = parts
  return [
    route({
      ...admin("POST", "/v1/accounts/me/members/invite"),
      status: [201],
      summary: "Invite a person by mail",
      description:
        "Sends a mail with a link that works for 7 days. `projects` gives roles in single projects.",
      body: NewInvitation,
      example: { email: "ben@example.com", role: "member" },
      read: readWanted,
      response: Invitation,
      errors: ["conflict", "invalid_email"],
      idempotent: true,
      handle: (call) => invite(parts, call),
    }),
    route({
      ...admin("GET", PATH),
      summary: "List the invitations of the account",
      description:
        "The list includes accepted, revoked and expired invitations. `status` filters them.",
      query: invitationQuery,
      response: Invitation,
      handle: async (call) => {
        const { account_id } = call.caller
        const { status } = call.query
        const byId = keyById((id) => invitations.find(store.read, account_id, id))
        const window = await windowOf(call, cursors, byId)
        const rows = await invitations.list(store.read, account_id, { status, ...window })
        const total = () => invitations.total(store.read, account_id, { status })
        return asPage(call, cursors, { rows, total })
      },
    }),
    route({
      ...admin("POST", `${PATH}/{invitation_id}/resend`),
      summary: "Send an invitation again with a new link",
      description: "The old link stops working. The new one works for 7 days.",
      response: Invitation,
      idempotent: true,
      handle: (call) => resend(parts, call),
    }),
    route({
      ...admin("DELETE", `${PATH}/{invitation_id}`),
      summary: "Revoke an invitation",
      description: "The link stops working. The invitation stays in the list as `revoked`.",
      response: Deleted,
      errors: ["conflict"],
      handle: async ({ caller, params }) => {
        const id = params.invitation_id
        await store.tx((tx) => invitations.revoke(tx, caller.account_id, id, caller))
        return deleted(id)
      },
    }),
    ...acceptRoutes(parts),
  ]
}

const admin = <const Path extends string>(method: AnyRoute["method"], path: Path) => ({
  method,
  path,
  callers: ["console"] as AnyRoute["callers"],
  scope: "role:account_admin",
  status: [200] as [number],
})

function invite(parts: InvitationParts, { caller, body, claim }: Call<invitations.Wanted>) {
  return answerOnce(parts.store, claim, async (tx) => {
    const issued = await invitations.invite(tx, caller.account_id, body, caller)
    await sendInvitation(tx, parts, issued)
    return invitations.invitationRecord(issued.invitation)
  })
}

function resend(
  parts: InvitationParts,
  { caller, params, claim }: Call<unknown, unknown, { invitation_id: string }>,
) {
  return answerOnce(parts.store, claim, async (tx) => {
    const issued = await invitations.renew(tx, caller.account_id, params.invitation_id, caller)
    await sendInvitation(tx, parts, issued)
    return invitations.invitationRecord(issued.invitation)
  })
}

function readWanted(body: unknown, problems: Problems): invitations.Wanted {
  check(NewInvitation, body, problems)
  const { email, role, projects = [] } = (body ?? {}) as Static<typeof NewInvitation>
  if (typeof email === "string" && !isMailbox(email)) {
    problems.add("email", "invalid_email", notOneAddress(email))
  }
  if (role === "billing_admin" && Array.isArray(projects) && projects.length > 0) {
    problems.add(
      "projects",
      "invalid",
      "A billing admin has no role in projects. Leave `projects` out.",
    )
  }
  return { email, role, projects }
}
