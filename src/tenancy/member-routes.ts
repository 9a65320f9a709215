import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { Deleted, deleted, notBoth } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, consoleRow, route } from "../http/route"
import { isMailbox, notOneAddress } from "../lib/address"
import * as members from "./members"
import { AccountRole, Member, NewProjectMember, ProjectMember, ProjectRole } from "./schemas"

const memberQuery = pageQuery({})

const ALL = "/v1/accounts/me/members"
const OF_PROJECT = "/v1/projects/{project_id}/members"

/** The people of an account, and those of a project. */
export const memberRoutes = (parts: ListParts): AnyRoute[] => [
  ...accountMemberRoutes(parts),
  ...projectMemberRoutes(parts),
]

const accountMemberRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", ALL, "role:member"),
    summary: "List the members of the account",
    description: "Lists the owners and all people that accepted an invitation.",
    query: memberQuery,
    response: Member,
    handle: (call) => {
      const people = members.ofAccount(store.read, call.caller.account_id)
      return listPage(call, cursors, people, ({ member }) => member)
    },
  }),
  route({
    ...consoleRow("PATCH", `${ALL}/{user_id}`, "role:account_admin"),
    summary: "Change a member's role in the account",
    description: "Only owners can change owners and admins. The last owner keeps the role.",
    body: t.Object({ role: AccountRole }),
    example: { role: "admin" },
    response: Member,
    errors: ["conflict", "plan_limit_exceeded"],
    handle: async ({ caller, params, body }) => {
      const wanted = { account_id: caller.account_id, user_id: params.user_id, role: body.role }
      return { data: await store.tx((tx) => members.setRole(tx, wanted, caller)) }
    },
  }),
  route({
    ...consoleRow("DELETE", `${ALL}/{user_id}`, "role:account_admin"),
    self: "user_id",
    summary: "Remove a member from the account, or leave it",
    description: "The member's access ends at once. The last owner cannot be removed.",
    response: Deleted,
    errors: ["conflict"],
    handle: async ({ caller, params }) => {
      await store.tx((tx) => members.remove(tx, caller.account_id, params.user_id, caller))
      return deleted(params.user_id)
    },
  }),
]

const projectMemberRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", OF_PROJECT, "role:project_viewer"),
    summary: "List the members of the project",
    description: "The list includes owners and admins of the account. Their role is `inherited`.",
    query: memberQuery,
    response: ProjectMember,
    handle: (call) => {
      const people = members.ofProject(store.read, call.caller)
      return listPage(call, cursors, people, ({ member }) => member)
    },
  }),
  route({
    ...consoleRow("POST", OF_PROJECT, "role:project_admin", 201),
    summary: "Give a member of the account a role in the project",
    description:
      "Name the person by `user_id` or by `email`. They must be a member of the account already.",
    body: { ...NewProjectMember, ...notBoth("user_id", "email") },
    example: { email: "ann@example.com", role: "developer" },
    read: readNewMember,
    response: ProjectMember,
    errors: ["invalid_email", "user_not_found"],
    idempotent: true,
    handle: ({ claim, caller, body }) =>
      answerOnce(store, claim, (tx) => members.add(tx, caller, body)),
  }),
  route({
    ...consoleRow("PATCH", `${OF_PROJECT}/{user_id}`, "role:project_admin"),
    summary: "Change the role of a member of the project",
    description: "A role that comes from the account (`inherited`) cannot be changed here.",
    body: t.Object({ role: ProjectRole }),
    example: { role: "viewer" },
    response: ProjectMember,
    errors: ["conflict"],
    handle: async ({ caller, params, body }) => {
      const wanted = { user_id: params.user_id, role: body.role }
      return { data: await store.tx((tx) => members.setProjectRole(tx, caller, wanted)) }
    },
  }),
  route({
    ...consoleRow("DELETE", `${OF_PROJECT}/{user_id}`, "role:project_admin"),
    summary: "Remove a member from the project",
    description:
      "The person stays a member of the account. A role that comes from the account cannot be removed here.",
    response: Deleted,
    errors: ["conflict"],
    handle: async ({ caller, params: { user_id } }) => {
      await store.tx((tx) => members.removeFromProject(tx, caller, user_id))
      return deleted(user_id)
    },
  }),
]

/** A person is named by id or by address, and by one of them only. */
function readNewMember(wanted: members.NewProjectMember, problems: Problems) {
  const { user_id, email } = wanted
  if (!user_id && !email)
    problems.add("user_id", "required", "Name the person by `user_id` or by `email`.")
  if (user_id && email)
    problems.add("email", "invalid", "Give either `user_id` or `email`, not both.")
  if (email && !isMailbox(email)) problems.add("email", "invalid_email", notOneAddress(email))
  return wanted
}
