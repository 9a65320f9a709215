import { Type } from "@sinclair/typebox"
import type { Call } from "./call"
import { demandChange, settleNames } from "./field-names"
import { Problems } from "./problems"
import type { Answer, AnyRoute } from "./route"
import { queryOf } from "./target"
import { check, readQuery, refuseUnknown } from "./validate"

/** A request whose body and query nobody has read yet. */
export type Unread = Omit<Call<unknown, unknown, Record<string, string>>, "body" | "query">

/** Reads body and query by the row, tells everything that is wrong with them, then runs it. */
export function handle(route: AnyRoute, call: Unread, raw: unknown): Promise<Answer> | Answer {
  const problems = new Problems()
  const strict = call.request.headers.get("x-strict") === "1"
  const body = readBody(route, raw, strict, problems)
  const query = readSearch(route, call.request, strict, problems)
  problems.throwIfAny()
  return route.handle({ ...call, body, query } as Call<never, never, never>)
}

/** What a route without a schema knows. */
const NOTHING = Type.Object({})

function readBody(route: AnyRoute, raw: unknown, strict: boolean, problems: Problems): unknown {
  const given = settleNames(route.body, raw, problems)
  if (strict) refuseUnknown(route.body ?? NOTHING, raw, problems)
  const body = route.read ? route.read(given, problems) : given
  if (route.body && !route.read) check(route.body, given, problems)
  if (route.method === "PATCH" || route.changes) demandChange(route.body, raw, problems)
  return body
}

function readSearch(route: AnyRoute, request: Request, strict: boolean, problems: Problems) {
  if (!route.query && !strict) return {}
  const given = queryOf(request)
  if (strict) refuseUnknown(route.query ?? NOTHING, Object.fromEntries(given), problems)
  return route.query ? readQuery(route.query, given, problems) : {}
}
