import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted } from "../http/field-schemas"
import { asPage, pageQuery, windowOf } from "../http/page"
import { type AnyRoute, route } from "../http/route"
import { flag, id, maybe, text, time, word } from "../lib/record-fields"
import { type InvitationParts, invitationRoutes } from "./invitation-routes"
import * as members from "./members"
import { partOf, placeText } from "./place"

const AccountRoles = word(["owner", "admin", "billing_admin", "member"])

const Changed = t.Object({ role: AccountRoles })

const Member = t.Object(
  {
    user_id: id(),
    email: text("ann@example.com"),
    name: maybe(text("Ann")),
    role: AccountRoles,
    mfa_enabled: flag(true),
    joined_at: time(),
    last_active_at: maybe(time()),
  },
  { title: "Member" },
)

const memberQuery = pageQuery({})
const PATH = "/v1/accounts/me/members"
const console: AnyRoute["callers"] = ["console"]

export function memberRoutes(parts: InvitationParts): AnyRoute[] {
  const { store, cursors } = parts
  return [
    route({
      method: "GET",
      path: PATH,
      callers: console,
      scope: "role:member",
      status: [200],
      summary: "List the members of the account",
      description: "Lists the owners and all people that accepted an invitation.",
      query: memberQuery,
      response: Member,
      handle: async (call) => {
        const { account_id } = call.caller
        const keyOf = ({ joined_at: at, user_id }: members.Member) => placeText({ at, user_id })
        const byId = async (id: string) => keyOf(await members.find(store.read, account_id, id))
        const window = await windowOf(call, cursors, byId)
        const list = await members.list(store.read, account_id, partOf(window))
        const rows = list.map((member) => ({ id: keyOf(member), member }))
        const total = () => members.count(store.read, account_id)
        return asPage(call, cursors, { rows, total }, ({ member }) => member)
      },
    }),
    route({
      ...one("PATCH"),
      summary: "Change a member's role in the account",
      description: "Only owners can change owners and admins. The last owner keeps the role.",
      body: Changed,
      example: { role: "admin" },
      response: Member,
      errors: ["conflict", "plan_limit_exceeded"],
      handle: async ({ caller, params, body }) => {
        const { account_id } = caller
        const wanted = { account_id, user_id: params.user_id, role: body.role }
        return { data: await store.tx((tx) => members.setRole(tx, wanted, caller)) }
      },
    }),
    route({
      ...one("DELETE"),
      self: "user_id",
      summary: "Remove a member from the account, or leave it",
      description: "The member's access ends at once. The last owner cannot be removed.",
      response: Deleted,
      errors: ["conflict"],
      handle: async ({ caller, params }) => {
        const user_id = params.user_id
        await store.tx((tx) => members.remove(tx, caller.account_id, user_id, caller))
        return deleted(user_id)
      },
    }),
    ...invitationRoutes(parts),
  ]
}

const one = (method: AnyRoute["method"]) => ({
  method,
  path: `${PATH}/{user_id}` as const,
  callers: console,
  scope: "role:account_admin",
  status: [200] as [number],
})
