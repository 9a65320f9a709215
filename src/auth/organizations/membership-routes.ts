import { Deleted, deleted } from "../../http/field-schemas"
import { answerOnce } from "../../http/idempotency"
import { listPage, pageQuery } from "../../http/page"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import { EXAMPLE_ID, fieldsOf } from "../../lib/record-fields"
import type { AuthParts } from "../auth-parts"
import { authRow } from "../auth-rows"
import { SUCCESS, Success } from "../schemas"
import { findOrganization } from "./organization-access"
import * as members from "./organization-members"
import { MemberPatch, Membership, NewMember, OrganizationMember } from "./organization-schemas"

const ONE = "/v1/auth/organizations/{organization_id}"
const ALL = `${ONE}/members` as const
const MEMBER = `${ALL}/{user_id}` as const

const EVERYBODY: CallerKind[] = ["user", "key", "console"]

/** The members of an organization, with their roles. */
export const memberRoutes = (parts: AuthParts): AnyRoute[] => [
  ...allRoutes(parts),
  ...oneRoutes(parts),
  leaveRoute(parts),
]

const allRoutes = ({ store, cursors }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, EVERYBODY, "auth:read"),
    summary: "List the members of an organization, newest first",
    description: "With their email addresses and names. A user has to be a member, too.",
    query: pageQuery({}),
    response: OrganizationMember,
    handle: async (call) => {
      const { caller, params } = call
      const found = await findOrganization(store.read, caller, params.organization_id, "member")
      return listPage(call, cursors, members.list(store.read, found.organization), (row) =>
        fieldsOf(OrganizationMember, { ...row, end_user_id: row.user_id }),
      )
    },
  }),
  route({
    ...authRow("POST", ALL, ["key", "console"], "auth:write", 201),
    summary: "Make a user a member of an organization",
    description: "Needs no consent of the user. To ask them, invite them instead.",
    body: NewMember,
    example: { user_id: EXAMPLE_ID, role: "admin", permissions: ["invoices:read"] },
    response: Membership,
    errors: ["user_not_found", "conflict", "forbidden", "plan_upgrade_required"],
    idempotent: true,
    handle: ({ caller, params, body, claim }) =>
      answerOnce(store, claim, (tx) => members.add(tx, caller, params.organization_id, body)),
  }),
]

const oneRoutes = ({ store }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("PATCH", MEMBER, EVERYBODY, "auth:write"),
    summary: "Change the role or the permissions of a member",
    description:
      "A user has to be an admin of the organization, and an owner to change or make owners. The tokens of the member show it from their next refresh on.",
    body: MemberPatch,
    example: { role: "admin", permissions: ["invoices:read"] },
    response: Membership,
    errors: ["conflict", "forbidden", "plan_upgrade_required"],
    handle: ({ caller, params, body }) =>
      store.tx(async (tx) => {
        const { organization_id, user_id } = params
        return { data: await members.change(tx, caller, organization_id, user_id, body) }
      }),
  }),
  route({
    ...authRow("DELETE", MEMBER, EVERYBODY, "auth:write"),
    summary: "Remove a member from an organization",
    description:
      "A user has to be an admin of the organization, and an owner to remove owners. The member's sessions in it move to the Default organization at their next refresh.",
    response: Deleted,
    errors: ["conflict", "forbidden"],
    handle: async ({ caller, params: { organization_id, user_id } }) => {
      await store.tx((tx) => members.remove(tx, caller, organization_id, user_id))
      return deleted(user_id)
    },
  }),
]

const leaveRoute = ({ store }: AuthParts): AnyRoute =>
  route({
    ...authRow("POST", `${ONE}/leave`, ["user"], "-"),
    summary: "Leave an organization",
    description:
      "The last owner cannot leave, and nobody leaves the Default organization. The session moves to that one at its next refresh.",
    response: Success,
    errors: ["conflict"],
    handle: async ({ caller, params }) => {
      await store.tx((tx) => members.leave(tx, caller, params.organization_id))
      return SUCCESS
    },
  })
