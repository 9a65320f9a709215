import { Deleted, deleted } from "../../http/field-schemas"
import { listPage, pageQuery } from "../../http/page"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import type { AuthParts } from "../auth-parts"
import { authRow } from "../auth-rows"
import { refuseImpersonated } from "../impersonation"
import { ownUser } from "../own-user"
import { AcceptedInvitation, NewOrgInvitation, OrgInvitation } from "./invitation-schemas"
import { findOrganization } from "./organization-access"
import * as invitations from "./organization-invitations"
import { toMembership } from "./organization-members"
import { Membership } from "./organization-schemas"

const ALL = "/v1/auth/organizations/{organization_id}/invitations"

const EVERYBODY: CallerKind[] = ["user", "key", "console"]

/** How people come into an organization that they chose to join. */
export const invitationRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, EVERYBODY, "auth:read"),
    summary: "List the invitations to an organization, newest first",
    description:
      "Also those that were accepted, revoked, or have expired. A user has to be an admin.",
    query: pageQuery({}),
    response: OrgInvitation,
    handle: async (call) => {
      const { store, cursors } = parts
      const { caller, params } = call
      const found = await findOrganization(store.read, caller, params.organization_id, "admin")
      const rows = invitations.list(store.read, found.organization)
      return listPage(call, cursors, rows, invitations.toInvitation)
    },
  }),
  route({
    ...authRow("POST", ALL, EVERYBODY, "auth:write", 201),
    summary: "Invite somebody to an organization by mail",
    description:
      "The link works for seven days. Its page sends them to the `redirect_url` with a `code`, for `organizations/invitations/accept` or as the `invitation_token` of a registration. To mail it again, delete the invitation first. A user has to be an admin, and an owner to invite owners.",
    body: NewOrgInvitation,
    example: {
      email: "ann@example.com",
      role: "member",
      redirect_url: "https://app.example.com/welcome",
    },
    response: OrgInvitation,
    errors: [
      "conflict",
      "forbidden",
      "invalid_email",
      "email_not_configured",
      "invalid_url",
      "plan_upgrade_required",
    ],
    idempotent: true,
    handle: (call) => invitations.invite(parts, call, call.params.organization_id, call.body),
  }),
  route({
    ...authRow("DELETE", `${ALL}/{invitation_id}`, EVERYBODY, "auth:write"),
    summary: "Revoke an invitation to an organization",
    description: "Its link works no more. A user has to be an admin.",
    response: Deleted,
    errors: ["conflict", "forbidden"],
    handle: async ({ caller, params }) => {
      const { organization_id, invitation_id } = params
      await parts.store.tx((tx) => invitations.revoke(tx, caller, organization_id, invitation_id))
      return deleted(invitation_id)
    },
  }),
  route({
    ...authRow("POST", "/v1/auth/organizations/invitations/accept", ["user"], "-"),
    summary: "Accept an invitation to an organization",
    description:
      "Makes the signed-in user a member, if the invitation went to their verified email address. The token is that of the mail, or the code that its page handed over.",
    body: AcceptedInvitation,
    example: { token: "inv_4f2a9c1e7d40" },
    response: Membership,
    errors: ["forbidden", "otp_expired", "conflict", "plan_upgrade_required"],
    handle: async (call) => {
      refuseImpersonated(call.caller)
      const { environment, user } = await ownUser(parts.store.read, call)
      const made = await invitations.accept(parts, environment, user, call.body.token)
      return { data: toMembership(made) }
    },
  }),
]
