import type { Static } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import { answerOnce } from "../http/idempotency"
import { nounRows } from "../http/noun-rows"
import { datesOf, type ListParts, listPage } from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import * as schemas from "./schemas"
import * as list from "./suppression-list"
import { exported } from "./suppression-list"
import { toResponse } from "./suppressions"

const BULK_LIMIT_BYTES = 8_388_608

const ALL = "/v1/suppressions"
const ONE = `${ALL}/{suppression_id}` as const

const READ = "suppressions:read"
const WRITE = "suppressions:write"

export const suppressionRoutes = (parts: ListParts): AnyRoute[] => [
  listRoute(parts),
  ...bulkRoutes(parts),
  ...plainRoutes(parts),
]

const plainRoutes = (parts: ListParts): AnyRoute[] => {
  const rows = nounRows(list.suppression, schemas.Suppression, [READ, WRITE], parts)
  return [
    rows.create(ALL, {
      summary: "Suppress an address",
      description:
        "Nothing is sent to the address any more. 409 means that it is suppressed already.",
      body: schemas.NewSuppression,
      example: { email: "ann@example.com", note: "Asked by telephone." },
      read: list.readSuppression,
      errors: ["conflict", "invalid_email", "invalid_phone_number"],
      create: list.create,
    }),
    rows.get(ONE, {
      summary: "Show one suppression",
      description: "Why the address is suppressed, and until when.",
    }),
    rows.remove(ONE, {
      summary: "Remove a suppression",
      description: "The address gets messages again. The audit log keeps what was removed.",
      remove: list.remove,
    }),
  ]
}

/** Its totals are counters, also with one filter. */
const listRoute = ({ store, cursors }: ListParts): AnyRoute =>
  route({
    ...projectRow("GET", ALL, READ),
    summary: "List suppressed addresses, newest first",
    description: "A suppressed address gets no messages. Filters can be combined.",
    query: schemas.suppressionQuery,
    response: schemas.Suppression,
    handle: (call) => {
      const { reason, channel, address, origin, diagnostic } = call.query
      const { after: created_after } = datesOf(call.query)
      const filter = { reason, channel, address, origin, diagnostic, created_after }
      return listPage(call, cursors, list.list(store.read, call.project_id, filter), toResponse)
    },
  })

const bulkRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...projectRow("POST", `${ALL}/bulk`, WRITE),
    summary: "Suppress up to 1,000 addresses",
    description:
      "Addresses that are suppressed already stay as they are. `failed` names those that cannot be read.",
    body: schemas.BulkSuppressions,
    example: { emails: [{ email: "ann@example.com", reason: "unsubscribe" }] },
    readRaw: list.readBulk,
    response: schemas.BulkAdded,
    limit: BULK_LIMIT_BYTES,
    idempotent: true,
    handle: ({ project_id, body, claim }) =>
      answerOnce(store, claim, (tx) => list.addAll(tx, project_id, body), project_id),
  }),
  route({
    ...projectRow("POST", `${ALL}/bulk-remove`, WRITE),
    summary: "Remove the suppressions of up to 1,000 email addresses",
    description: "`not_found` names the addresses that were not suppressed.",
    body: schemas.BulkRemoval,
    example: { emails: ["ann@example.com", "ben@example.com"] },
    response: schemas.BulkRemoved,
    limit: BULK_LIMIT_BYTES,
    idempotent: true,
    handle: ({ caller, project_id, body, claim }) =>
      answerOnce(store, claim, (tx) => list.removeAll(tx, caller, body.emails), project_id),
  }),
  route({
    ...projectRow("GET", `${ALL}/check`, "suppressions:read|email:read"),
    summary: "Ask whether an address is suppressed",
    description:
      "Without `category` and `topic` the answer is about mail without them, so Belfry looks only at what holds for the whole project.",
    query: schemas.checkQuery,
    response: schemas.SuppressionCheck,
    errors: ["invalid_email", "invalid_phone_number"],
    handle: async (call) => ({ data: await checked(call, store.read) }),
  }),
  route({
    ...projectRow("GET", `${ALL}/export`, READ),
    summary: "Export all suppressions as CSV, oldest first",
    description:
      "A spreadsheet would run a cell that begins with =, +, - or @ as a formula. Such a cell begins with an apostrophe instead.",
    produces: "text/csv",
    handle: ({ project_id, request }) => exported(store.read, project_id, request.signal),
  }),
]

async function checked(
  { project_id, query }: Call<unknown, Static<typeof schemas.checkQuery>>,
  read: ListParts["store"]["read"],
) {
  const problems = new Problems()
  const contact = list.readContact(query, problems)
  problems.throwIfAny()
  const { category, topic } = query
  return list.check(read, project_id, contact ?? list.NO_CONTACT, { category, topic })
}
