import { type Static, Type as t } from "@sinclair/typebox"
import {
  asPage,
  type Cursors,
  dateFilters,
  datesOf,
  keyById,
  pageQuery,
  windowOf,
} from "../http/page"
import { type AnyRoute, route } from "../http/route"
import { oneOf, orNull } from "../http/texts"
import type { Store } from "../store/store"
import { countAll, find, list } from "./list"

const filters = pageQuery({
  actor_id: t.Optional(t.String()),
  action: t.Optional(t.String()),
  target_type: t.Optional(t.String()),
  ...dateFilters,
})

const Entry = t.Object({
  id: t.String(),
  actor: t.Object({
    type: oneOf("key", "user", "local", "system"),
    id: orNull(t.String()),
    name: orNull(t.String()),
  }),
  action: t.String(),
  target: t.Object({ type: t.String(), id: orNull(t.String()) }),
  project_id: orNull(t.String()),
  ip: orNull(t.String()),
  before: t.Unknown(),
  after: t.Unknown(),
  created_at: t.String(),
})

export interface AuditParts {
  store: Store
  cursors: Cursors
}

/** Reading only: nothing changes or removes what was recorded. */
export const auditRoutes = ({ store, cursors }: AuditParts): AnyRoute[] => [
  route<unknown, Static<typeof filters>>({
    method: "GET",
    path: "/v1/audit-log",
    callers: ["console"],
    scope: "role:account_admin",
    status: [200],
    summary: "Who changed what in the account",
    query: filters,
    response: Entry,
    handle: async (call) => {
      const { caller, query } = call
      const { actor_id, action, target_type } = query
      const filter = { actor_id, action, target_type, ...datesOf(query) }
      const { account_id } = caller
      const byId = keyById((id) => find(store.read, account_id, id))
      const rows = await list(store.read, account_id, filter, await windowOf(call, cursors, byId))
      const total = () => countAll(store.read, account_id, filter)
      return asPage(call, cursors, { rows, total })
    },
  }),
]
