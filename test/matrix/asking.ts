import { expect } from "bun:test"
import type { AnyRoute, CallerKind } from "../../src/http/route"
import { type Ask, client, type Reply } from "../harness/client"
import type { Person } from "../harness/people"
import type { TestService } from "../harness/service"
import { type Ids, ROWS, ROWS_OF_AUTH, type Row } from "./rows"

/** What no answer to an outsider may hold. */
export const MARK = "CANARY7Q"

export type Caller = Pick<Person, "call">

export const withKey = ({ app }: TestService, key: string): Caller => client(app, key)

export function withToken({ anybody }: TestService, token: string): Caller {
  const bearer = { authorization: `Bearer ${token}` }
  return {
    call: (method, path, ask = {}) =>
      anybody.call(method, path, { ...ask, headers: { ...bearer, ...ask.headers } }),
  }
}

let addresses = 0

/** From an address of its own each time: what is counted by address is tested elsewhere. */
export function ask(
  route: AnyRoute,
  who: Caller,
  ids: Ids,
  headers: Record<string, string> = {},
  query?: string,
): Promise<Reply> {
  const { body } = rowOf(route)
  addresses += 1
  const address = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`
  const request: Ask = { headers: { "x-forwarded-for": address, ...headers } }
  if (body) request.body = body(ids)
  return who.call(route.method, pathOf(route, ids, query), request)
}

export const nameOf = ({ method, path }: AnyRoute) => `${method} ${path}`

export const isOfAuth = ({ path }: AnyRoute) => path.startsWith("/v1/auth/")

export function rowOf(route: AnyRoute): Row {
  const row = isOfAuth(route)
    ? { ...rowOfAuth(route), ...ROWS_OF_AUTH[nameOf(route)] }
    : ROWS[nameOf(route)]
  if (!row) throw new Error(`${nameOf(route)} has no row in the matrix`)
  return row
}

/** The example that the reference shows, for the application of the world. */
function rowOfAuth({ example, body, query }: AnyRoute): Row {
  const is_named = (schema: AnyRoute["body"]) => schema?.properties.application_id !== undefined
  const own = is_named(body)
  const named = ({ application_id }: Ids) => (own ? { application_id } : {})
  return {
    ...(body && { body: (ids) => ({ ...(example as object), ...named(ids) }) }),
    inBody: own ? ["application_id"] : [],
    inQuery: is_named(query) ? ["application_id"] : [],
    fixed: { environment: "live" },
  }
}

/** Parameters of a path that are words of the contract, and nobody's. */
const WORDS = ["kind", "provider"]

const OF_END_USERS = ["user_id", "session_id", "key_id", "invitation_id"]

/** End users have ids, sessions, keys and invitations of their own beside those of the console. */
const idName = (route: AnyRoute, name: string) =>
  isOfAuth(route) && OF_END_USERS.includes(name) ? `end_${name}` : name

/** The ids that a request of a caller of this kind names, in its path, its body and its query. */
export function namesIn(route: AnyRoute, kind: CallerKind = "key"): string[] {
  const { fixed = {}, inBody = [], inQuery = [] } = rowOf(route)
  const in_path = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const own = in_path.filter((name) => !WORDS.includes(name) && !(name in fixed))
  const says_target = !isOfAuth(route) || kind === "key" || kind === "console"
  return [...own, ...(says_target ? [...inBody, ...inQuery] : [])].map((name) =>
    idName(route, name),
  )
}

/** With what the row and the test have in the query. */
export function pathOf(route: AnyRoute, ids: Ids, more?: string): string {
  const { fixed = {}, query, inQuery = [] } = rowOf(route)
  const known = (name: string) => {
    const id = fixed[name] ?? ids[idName(route, name)]
    if (id === undefined) throw new Error(`the matrix has no id for {${name}}`)
    return id
  }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => known(name))
  const ours = inQuery.map((name) => `${name}=${known(name)}`)
  const named = [...ours, query, more].filter((one) => one !== undefined)
  return named.length > 0 ? `${path}?${named.join("&")}` : path
}

/** Each id alone, then all of them. */
export const swaps = (names: string[]): string[][] =>
  names.length > 1 ? [...names.map((name) => [name]), names] : names.map((name) => [name])

export const exchanged = (ids: Ids, names: string[], pick: (name: string) => string): Ids => ({
  ...ids,
  ...Object.fromEntries(names.map((name) => [name, pick(name)])),
})

/** Status and error, whichever id was asked for. */
export function alike({ status, body }: Reply, ids: Ids) {
  const text = Object.values(ids).reduce(
    (rest, id) => rest.replaceAll(id, "ID"),
    JSON.stringify(body?.error ?? null),
  )
  return { status, text }
}

/** The answer tells nothing of theirs, in whatever case; header values are searched too. */
export function expectNoLeak({ text, headers, status }: Reply) {
  const all = `${text}${JSON.stringify([...headers])}`.toLowerCase()
  expect(all).not.toContain(MARK.toLowerCase())
  const is_unready =
    status === 503 && /"code":"(email|sms)_not_configured"|"reason":"gateway"/.test(text)
  if (!is_unready) expect(status).toBeLessThan(500)
}

export function expectRefused(answer: Reply, status: number, code: string) {
  expectNoLeak(answer)
  expect([answer.status, answer.body.error.code]).toEqual([status, code])
}
