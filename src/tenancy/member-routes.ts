import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type Cursors, type ListCall, type ListParts, listPage, pageQuery } from "../http/page"
import type { Call } from "../http/route"
import { type AnyRoute, consoleRow, route } from "../http/route"
import { isMailbox, notOneAddress } from "../lib/address"
import { flag, id, maybe, text, time } from "../lib/record-fields"
import { cursorText } from "../store/moment-cursor"
import type { ListWindow, RowList } from "../store/rows"
import * as members from "./members"
import * as projectMembers from "./project-members"
import type { ProjectHome } from "./projects"
import { AccountRole, ProjectRole } from "./schemas"

const Member = t.Object(
  {
    user_id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    role: AccountRole,
    mfa_enabled: flag(true),
    joined_at: time(),
    last_active_at: maybe(time()),
  },
  { title: "Member" },
)

const ProjectMember = t.Object(
  {
    user_id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    role: ProjectRole,
    inherited: flag(false, "Whether the role comes from the account."),
    added_at: time(),
  },
  { title: "ProjectMember" },
)

const NewProjectMember = t.Object({
  user_id: t.Optional(t.String()),
  email: t.Optional(t.String()),
  role: ProjectRole,
})

const memberQuery = pageQuery({})

const ALL = "/v1/accounts/me/members"
const OF_PROJECT = "/v1/projects/{project_id}/members"

/** The people of an account, and those of a project. */
export const memberRoutes = (parts: ListParts): AnyRoute[] => [
  ...accountMemberRoutes(parts),
  ...projectMemberRoutes(parts),
]

interface MemberList<Member> extends RowList<Member> {
  find: (user_id: string) => Promise<Member>
  /** The moment in whose order the list is. */
  at: (member: Member) => string
}

/** A page of people: a cursor names a moment and a person. */
async function memberPage<Member extends { user_id: string }>(
  call: ListCall,
  cursors: Cursors,
  { find, list, total, at }: MemberList<Member>,
) {
  const keyOf = (member: Member) => cursorText({ at: at(member), id: member.user_id })
  const people = {
    keyOf: async (user_id: string) => keyOf(await find(user_id)),
    list: async (window: ListWindow) => {
      const { rows } = await list(window)
      return { rows: rows.map((member) => ({ id: keyOf(member), member })) }
    },
    total,
  }
  return listPage(call, cursors, people, ({ member }) => member)
}

const accountMemberRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", ALL, "role:member"),
    summary: "List the members of the account",
    description: "Lists the owners and all people that accepted an invitation.",
    query: memberQuery,
    response: Member,
    handle: (call) => {
      const { account_id } = call.caller
      return memberPage(call, cursors, {
        find: (user_id) => members.find(store.read, account_id, user_id),
        list: async (window) => ({ rows: await members.list(store.read, account_id, window) }),
        total: () => members.count(store.read, account_id),
        at: ({ joined_at }) => joined_at,
      })
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
      const home = homeOf(call)
      return memberPage(call, cursors, {
        find: (user_id) => projectMembers.find(store.read, home, user_id),
        list: async (window) => ({ rows: await projectMembers.list(store.read, home, window) }),
        total: () => projectMembers.total(store.read, home),
        at: ({ added_at }) => added_at,
      })
    },
  }),
  route({
    ...consoleRow("POST", OF_PROJECT, "role:project_admin", 201),
    summary: "Give a member of the account a role in the project",
    description:
      "Name the person by `user_id` or by `email`. They must be a member of the account already.",
    body: NewProjectMember,
    example: { email: "ann@example.com", role: "developer" },
    read: readNewMember,
    response: ProjectMember,
    errors: ["invalid_email", "user_not_found"],
    idempotent: true,
    handle: (call) =>
      answerOnce(store, call.claim, (tx) =>
        projectMembers.add(tx, homeOf(call), call.body, call.caller),
      ),
  }),
  route({
    ...consoleRow("PATCH", `${OF_PROJECT}/{user_id}`, "role:project_admin"),
    summary: "Change the role of a member of the project",
    description: "A role that comes from the account (`inherited`) cannot be changed here.",
    body: t.Object({ role: ProjectRole }),
    example: { role: "viewer" },
    response: ProjectMember,
    errors: ["conflict"],
    handle: async (call) => {
      const wanted = { user_id: call.params.user_id, role: call.body.role }
      const change = projectMembers.setRole
      return { data: await store.tx((tx) => change(tx, homeOf(call), wanted, call.caller)) }
    },
  }),
  route({
    ...consoleRow("DELETE", `${OF_PROJECT}/{user_id}`, "role:project_admin"),
    summary: "Remove a member from the project",
    description:
      "The person stays a member of the account. A role that comes from the account cannot be removed here.",
    response: Deleted,
    errors: ["conflict"],
    handle: async (call) => {
      const { user_id } = call.params
      await store.tx((tx) => projectMembers.remove(tx, homeOf(call), user_id, call.caller))
      return deleted(user_id)
    },
  }),
]

const homeOf = ({ caller }: Pick<Call, "caller">): ProjectHome => ({
  account_id: caller.account_id,
  project_id: caller.project_id,
})

/** A person is named by id or by address, and by one of them only. */
function readNewMember(
  wanted: Static<typeof NewProjectMember>,
  problems: Problems,
): projectMembers.NewProjectMember {
  const { user_id, email } = wanted
  if (!user_id && !email)
    problems.add("user_id", "required", "Name the person by `user_id` or by `email`.")
  if (user_id && email)
    problems.add("email", "invalid", "Give either `user_id` or `email`, not both.")
  if (email && !isMailbox(email)) problems.add("email", "invalid_email", notOneAddress(email))
  return wanted
}
