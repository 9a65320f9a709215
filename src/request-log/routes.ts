import { type Static, Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, projectRow, route } from "../http/route"
import type { Caller } from "../identity/caller"
import { count, id, maybe, rarely, text, time } from "../lib/record-fields"
import { find, list, type RequestLogFilter, type RequestLogRow } from "./request-log"

const filters = pageQuery({
  status: t.Optional(
    t.String({ maxLength: 3, description: "A status such as 404, or a class such as 4xx." }),
  ),
  path: t.Optional(
    t.String({ maxLength: 200, description: "Only this path and the paths below it." }),
  ),
  key_id: t.Optional(t.String({ maxLength: 64 })),
  request_id: t.Optional(t.String({ maxLength: 64 })),
})

type Query = Static<typeof filters>

const Entry = t.Object(
  {
    request_id: text("req_4f1d2e4c5b6a7d407c3e9b5a3f1d2e4c"),
    method: text("POST"),
    path: text("/v1/emails"),
    status: count(201),
    duration_ms: count(7),
    key_id: maybe(id()),
    ip: text("203.0.113.7"),
    error_code: rarely(text("validation_error")),
    created_at: time(),
  },
  { title: "RequestLogEntry" },
)

export const requestLogRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/request-log", "webhooks:read|role:operator|role:project_admin"),
    summary: "List requests and their answers, newest first",
    unlogged: true, // a follower would see its own requests
    description:
      "Shows the requests of the last 7 days with status, time and error code. Bodies are not kept.",
    query: filters,
    response: Entry,
    handle: async (call) => {
      const filter = filterOf(call.caller, call.query)
      const keyOf = async (id: string) => (await find(store.read, filter, id)).id
      return listPage(call, cursors, { keyOf, ...list(store.read, filter) }, toResponse)
    },
  }),
]

/** An operator that names no project sees the entries of all. */
function filterOf({ project_id, operator }: Caller, query: Query): RequestLogFilter {
  const { path, key_id, request_id } = query
  return {
    project_id: operator && project_id === "" ? undefined : project_id,
    ...statuses(query.status),
    path,
    key_id,
    request_id,
  }
}

function statuses(status: string | undefined) {
  if (status === undefined) return { least_status: undefined, most_status: undefined }
  if (/^[1-5]\d\d$/.test(status)) {
    return { least_status: Number(status), most_status: Number(status) }
  }
  if (!/^[1-5]xx$/i.test(status)) {
    throw invalid(
      "status",
      "invalid",
      "The value must be a status such as 404, or a class such as 4xx.",
    )
  }
  const least_status = Number(status[0]) * 100
  return { least_status, most_status: least_status + 99 }
}

const toResponse = ({ id: _, project_id: __, ...entry }: RequestLogRow) => entry
