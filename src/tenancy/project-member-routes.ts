import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted, oneOf } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { asPage, type Cursors, pageQuery, windowOf } from "../http/page"
import type { Problems } from "../http/problems"
import type { Call } from "../http/route"
import { type AnyRoute, route } from "../http/route"
import { check } from "../http/validate"
import { isMailbox, notOneAddress } from "../lib/address"
import { flag, id, maybe, text, time } from "../lib/record-fields"
import type { Store } from "../store/store"
import { partOf, placeText } from "./place"
import * as members from "./project-members"

const Role = oneOf("admin", "developer", "viewer")

const Newcomer = t.Object({
  user_id: t.Optional(t.String()),
  email: t.Optional(t.String()),
  role: Role,
})

const Changed = t.Object({ role: Role })

const Member = t.Object(
  {
    user_id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    role: Role,
    inherited: flag(false, "Whether the role comes from the account."),
    added_at: time(),
  },
  { title: "ProjectMember" },
)

const memberQuery = pageQuery({})
const PATH = "/v1/projects/{project_id}/members"
const console: AnyRoute["callers"] = ["console"]

export interface ProjectMemberParts {
  store: Store
  cursors: Cursors
}

export const projectMemberRoutes = ({ store, cursors }: ProjectMemberParts): AnyRoute[] => [
  route({
    method: "GET",
    path: PATH,
    callers: console,
    scope: "role:project_viewer",
    status: [200],
    summary: "List the members of the project",
    description: "The list includes owners and admins of the account. Their role is `inherited`.",
    query: memberQuery,
    response: Member,
    handle: async (call) => {
      const home = homeOf(call)
      const keyOf = ({ added_at: at, user_id }: members.ProjectMember) => placeText({ at, user_id })
      const byId = async (id: string) => keyOf(await members.find(store.read, home, id))
      const window = await windowOf(call, cursors, byId)
      const list = await members.list(store.read, home, partOf(window))
      const rows = list.map((member) => ({ id: keyOf(member), member }))
      const total = () => members.total(store.read, homeOf(call))
      return asPage(call, cursors, { rows, total }, ({ member }) => member)
    },
  }),
  route({
    method: "POST",
    path: PATH,
    callers: console,
    scope: "role:project_admin",
    status: [201],
    summary: "Give a member of the account a role in the project",
    description:
      "Name the person by `user_id` or by `email`. They must be a member of the account already.",
    body: Newcomer,
    example: { email: "ann@example.com", role: "developer" },
    read: readNewcomer,
    response: Member,
    errors: ["invalid_email", "user_not_found"],
    idempotent: true,
    handle: (call) => add(store, call),
  }),
  route({
    ...one("PATCH"),
    summary: "Change the role of a member of the project",
    description: "A role that comes from the account (`inherited`) cannot be changed here.",
    body: Changed,
    example: { role: "viewer" },
    response: Member,
    errors: ["conflict"],
    handle: async (call) => {
      const wanted = { user_id: call.params.user_id, role: call.body.role }
      const data = await store.tx((tx) => members.setRole(tx, homeOf(call), wanted, call.caller))
      return { data }
    },
  }),
  route({
    ...one("DELETE"),
    summary: "Remove a member from the project",
    description:
      "The person stays a member of the account. A role that comes from the account cannot be removed here.",
    response: Deleted,
    errors: ["conflict"],
    handle: async (call) => {
      const user_id = call.params.user_id
      await store.tx((tx) => members.remove(tx, homeOf(call), user_id, call.caller))
      return deleted(user_id)
    },
  }),
]

const one = (method: AnyRoute["method"]) => ({
  method,
  path: `${PATH}/{user_id}` as const,
  callers: console,
  scope: "role:project_admin",
  status: [200] as [number],
})

const homeOf = ({ caller }: Pick<Call, "caller">): members.Home => ({
  account_id: caller.account_id,
  project_id: caller.project_id,
})

const add = (store: Store, call: Call<members.Newcomer>) =>
  answerOnce(store, call.claim, (tx) => members.add(tx, homeOf(call), call.body, call.caller))

/** Somebody is named by id or by address, and by one of them only. */
function readNewcomer(body: unknown, problems: Problems): members.Newcomer {
  check(Newcomer, body, problems)
  const newcomer = (body ?? {}) as members.Newcomer
  if (problems.any) return newcomer
  const { user_id, email } = newcomer
  if (!user_id && !email)
    problems.add("user_id", "required", "Name the person by `user_id` or by `email`.")
  if (user_id && email)
    problems.add("email", "invalid", "Give either `user_id` or `email`, not both.")
  if (email && !isMailbox(email)) problems.add("email", "invalid_email", notOneAddress(email))
  return newcomer
}
