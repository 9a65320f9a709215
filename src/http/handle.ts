import { Type } from "@sinclair/typebox"
import type { Call } from "./call"
import { Problems } from "./problems"
import type { Answer, AnyRoute } from "./route"
import { queryOf } from "./target"
import { check, readQuery, refuseUnknown } from "./validate"

/** A request whose body and query nobody has read yet. */
export type Unread = Omit<Call, "body" | "query">

/** Reads body and query by the row, tells everything that is wrong with them, then runs it. */
export function handle(route: AnyRoute, call: Unread, raw: unknown): Promise<Answer> | Answer {
  const problems = new Problems()
  const strict = call.request.headers.get("x-strict") === "1"
  const body = readBody(route, raw, strict, problems)
  const query = readSearch(route, call.request, strict, problems)
  problems.throwIfAny()
  return route.handle({ ...call, body, query } as Call<never, never>)
}

/** What a route without a schema knows. */
const NOTHING = Type.Object({})

function readBody(route: AnyRoute, raw: unknown, strict: boolean, problems: Problems): unknown {
  if (strict) refuseUnknown(route.body ?? NOTHING, raw, problems)
  if (route.read) return route.read(raw, problems)
  if (route.body) check(route.body, raw, problems)
  return raw
}

function readSearch(route: AnyRoute, request: Request, strict: boolean, problems: Problems) {
  if (!route.query && !strict) return {}
  const given = queryOf(request)
  if (strict) refuseUnknown(route.query ?? NOTHING, Object.fromEntries(given), problems)
  return route.query ? readQuery(route.query, given, problems) : {}
}
