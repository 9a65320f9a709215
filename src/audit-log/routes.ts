import { Type as t } from "@sinclair/typebox"
import { dateFilters, datesOf, type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, consoleRow, route } from "../http/route"
import { EXAMPLE_ID, id, maybe, text, time, word } from "../lib/record-fields"
import * as audit from "./audit-log"
import { ACTOR_TYPES } from "./tables"

const filters = pageQuery({
  actor_id: t.Optional(t.String()),
  action: t.Optional(t.String()),
  target_type: t.Optional(t.String()),
  ...dateFilters,
})

const Entry = t.Object(
  {
    id: id(),
    actor: t.Object({ type: word(ACTOR_TYPES), id: maybe(id()), name: maybe(text("Ann")) }),
    action: text("api_key.revoked"),
    target: t.Object({ type: text("api_key"), id: maybe(text(EXAMPLE_ID)) }),
    project_id: maybe(id()),
    ip: maybe(text("203.0.113.7")),
    before: t.Unknown({
      examples: [{ status: "active" }],
      description: "The fields before the change. Null when the action created the target.",
    }),
    after: t.Unknown({
      examples: [{ status: "revoked" }],
      description: "The fields after the change. Null when the action removed the target.",
    }),
    created_at: time(),
  },
  { title: "AuditEntry" },
)

/** Reading only: nothing changes or removes what was recorded. */
export const auditRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", "/v1/audit-log", "role:account_admin"),
    summary: "List the changes in the account, newest first",
    description:
      "Entries are never changed or removed. `before` and `after` have the fields that changed, without secrets.",
    query: filters,
    response: Entry,
    handle: (call) => {
      const { account_id } = call.caller
      const { actor_id, action, target_type } = call.query
      const filter = { actor_id, action, target_type, ...datesOf(call.query) }
      return listPage(call, cursors, audit.list(store.read, account_id, filter), audit.toResponse)
    },
  }),
]
