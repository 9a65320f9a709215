import type { TSchema } from "@sinclair/typebox"
import { type AppParts, routeTable } from "../../src/app"
import { newId } from "../../src/core/ids"
import type { GrownIds } from "./grown-project"

const ADDRESS = "ann@mailbox.test"
const NOBODY = "nobody@mailbox.test"
const PAGING = ["page", "per_page", "limit", "cursor", "after", "before"]

/** Of the rows of a grown project: what all of them have, what few have, and what none has. */
const VALUES: Record<string, string[]> = {
  search: ["receipt", "nothing", "ann"],
  subject: ["receipt", "nothing"],
  to: [ADDRESS, NOBODY],
  from: ["me@mailbox.test", NOBODY],
  email: [ADDRESS, NOBODY],
  address: ["user7@example.com", NOBODY],
  phone: ["+15550100", "+15550199"],
  external_id: ["u7", "nobody"],
  user_id: ["u7", "nobody"],
  device_id: ["d7", "none"],
  tag: ["receipt", "vip", "none"],
  domain: ["mailbox.test", "other.test"],
  category: ["news", "none"],
  topic: ["t7", "none"],
  action: ["thing.changed", "thing.gone"],
  target_type: ["thing", "nothing"],
  actor_id: [newId()],
  batch_id: [newId()],
  thread_id: [newId()],
  key_id: [newId()],
  event_id: [`evt_${newId()}`],
  request_id: ["req_same", "req_none_of_them"],
  path: ["/v1/emails", "/v1/nothing"],
  event_type: ["email.delivered", "email.bounced"],
  types: ["email.delivered", "topic.publish_completed"],
  diagnostic: ["mailbox", "nothing"],
  created_after: ["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"],
  created_before: ["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"],
  since: ["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"],
  offset: ["9000"],
  unread: ["true", "false"],
  phone_number: ["+15550100", "+15550199"],
  q: ["example", "nothing"],
}

/** The first look at the public key of a project makes it, so it is no read alone. */
const MAKING = "/v1/push/webpush/public-key"

/** Aliases, what another test reads, and waits. */
const LEFT_OUT = ["start_date", "end_date", "wait", "timeout", "extract", "project_id", "period"]
const NO_LISTS =
  /\/(stream|wait|openapi\.json|zonefile|raw|backups|doctor)$|\/v1\/(files|setup|invitations)/

/** The addresses of every GET that a caller of these may make, and for each value of each of its filters. */
export function readCalls(
  caller: "key" | "console",
  ids: GrownIds & { project_id: string },
): string[] {
  const named: Record<string, string> = {
    ...ids,
    topic_key: "t7",
    external_id: "u7",
    device_id: "d7",
    kind: "email_provider",
    user_id: ids.end_user_id,
    environment: "live",
  }
  const routes = routeTable({} as AppParts).filter(
    ({ method, path, page }) =>
      method === "GET" &&
      path.startsWith("/v1/") &&
      path !== MAKING &&
      page === undefined &&
      !NO_LISTS.test(path),
  )
  return routes.flatMap(({ path, callers, query }) => {
    if (!callers.includes(caller)) return []
    const place = path.replace(/\{(\w+)\}/g, (_, name: string) => named[name] ?? newId())
    const fields = Object.entries(
      (query as { properties?: Record<string, TSchema> })?.properties ?? {},
    )
    const filters = fields.filter(([name]) => !PAGING.includes(name) && !LEFT_OUT.includes(name))
    const asked = filters.flatMap(([name, schema]) =>
      valuesOf(path, name, schema, ids).map((value) => `?${name}=${encodeURIComponent(value)}`),
    )
    const deep = fields.some(([name]) => name === "page") ? ["?page=100&per_page=100"] : []
    return ["", ...deep, ...asked].map((search) => `${place}${search}`)
  })
}

function valuesOf(path: string, name: string, schema: TSchema, ids: GrownIds): string[] {
  if (name in ids) return [ids[name as keyof GrownIds], newId()]
  const literals = (schema.anyOf ?? [schema]).flatMap(({ const: one }: TSchema) =>
    one === undefined ? [] : [String(one)],
  )
  const found =
    literals.length > 0 ? literals : (VALUES[name] ?? (name === "status" ? ["2xx", "500"] : []))
  if (found.length === 0)
    throw new Error(`${path}: which values of "${name}" match all rows, few and none?`)
  return found
}
