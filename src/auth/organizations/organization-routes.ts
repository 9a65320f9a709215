import { Type as t } from "@sinclair/typebox"
import { Deleted, deleted, nameText } from "../../http/field-schemas"
import { answerOnce } from "../../http/idempotency"
import { listPage, pageQuery } from "../../http/page"
import { type AnyRoute, type CallerKind, route } from "../../http/route"
import { id } from "../../lib/record-fields"
import type { AuthParts } from "../auth-parts"
import { authRow, targetFields } from "../auth-rows"
import { environmentOf } from "../environments"
import { findOwned } from "../managed-users"
import { findOrganization } from "./organization-access"
import {
  NewOrganization,
  Organization,
  OrganizationPatch,
  readNewOrganization,
  readOrganizationPatch,
} from "./organization-schemas"
import * as organizations from "./organizations"

const ALL = "/v1/auth/organizations"
const ONE = `${ALL}/{organization_id}` as const

const EVERYBODY: CallerKind[] = ["user", "key", "console"]

const LONGEST_SEARCH = 200

const organizationQuery = pageQuery({
  ...targetFields,
  user_id: t.Optional(id("Only those of this user, with their `role`. Users get their own ones.")),
  q: t.Optional(nameText(LONGEST_SEARCH)),
})

/** Groups of the users of an environment. */
export const organizationRoutes = (parts: AuthParts): AnyRoute[] => [
  ...allRoutes(parts),
  ...oneRoutes(parts),
]

const allRoutes = ({ store, cursors }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ALL, EVERYBODY, "auth:read"),
    summary: "List organizations, newest first",
    description:
      "A user gets their own ones, with their `role`. `q` finds parts of the name and the slug. Without `environment` those of `live` are listed.",
    query: organizationQuery,
    response: Organization,
    errors: ["user_not_found"],
    handle: async (call) => {
      const { caller, query } = call
      const { read } = store
      const member =
        caller.end_user || query.user_id === undefined
          ? undefined
          : await findOwned(read, caller, query.user_id)
      const environment = member?.environment ?? (await environmentOf(read, call, query))
      const user_id = caller.end_user?.id ?? query.user_id
      const found = organizations.list(read, environment, { user_id, q: query.q })
      return listPage(call, cursors, found)
    },
  }),
  route({
    ...authRow("POST", ALL, EVERYBODY, "auth:write", 201),
    summary: "Make an organization",
    description:
      "A user becomes its owner, and needs `organization_creation: members` in the environment. Without `slug` it gets one that is made of the name.",
    body: NewOrganization,
    read: readNewOrganization,
    example: { name: "Acme", metadata: { plan: "gold" } },
    response: Organization,
    errors: ["plan_upgrade_required", "conflict", "forbidden"],
    idempotent: true,
    handle: async (call) => {
      const environment = await environmentOf(store.read, call, call.body)
      return answerOnce(store, call.claim, (tx) =>
        organizations.create(tx, call.caller, environment, call.body),
      )
    },
  }),
]

const oneRoutes = ({ store }: AuthParts): AnyRoute[] => [
  route({
    ...authRow("GET", ONE, EVERYBODY, "auth:read"),
    summary: "Show one organization",
    description: "A user has to be a member.",
    response: Organization,
    handle: async ({ caller, params }) => {
      const { read } = store
      const found = await findOrganization(read, caller, params.organization_id, "member")
      const { environment, organization } = found
      return { data: await organizations.shown(read, caller, environment, organization) }
    },
  }),
  route({
    ...authRow("PATCH", ONE, EVERYBODY, "auth:write"),
    summary: "Change an organization",
    description:
      "A user has to be an admin or owner of it. Fields that are absent stay as they are. `metadata` is replaced as a whole. After a change to a smaller plan only the Default organization can be changed.",
    body: OrganizationPatch,
    read: readOrganizationPatch,
    example: { mfa_required: true, allowed_email_domains: ["acme.example"] },
    response: Organization,
    errors: ["conflict", "forbidden", "plan_upgrade_required"],
    handle: ({ caller, params, body }) =>
      store.tx(async (tx) => ({
        data: await organizations.change(tx, caller, params.organization_id, body),
      })),
  }),
  route({
    ...authRow("DELETE", ONE, EVERYBODY, "auth:write"),
    summary: "Delete an organization",
    description:
      "A user has to be an owner of it. Its sessions move to the Default organization at their next refresh.",
    response: Deleted,
    errors: ["conflict", "forbidden"],
    handle: async ({ caller, params }) => {
      await store.tx((tx) => organizations.remove(tx, caller, params.organization_id))
      return deleted(params.organization_id)
    },
  }),
]
