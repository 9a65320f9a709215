import type { Static } from "@sinclair/typebox"
import { fail, invalid, type Problems } from "../core/errors"
import { newId } from "../core/ids"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { comparable, notOneAddress, parseMailbox } from "../lib/address"
import type { Reader, Tx } from "../store/store"
import * as accounts from "../tenancy/accounts"
import * as webhooks from "../webhooks/webhooks"
import { MOST_HOPS, wasForwardedFrom } from "./forward"
import {
  comparableMatch,
  type InboundRoute,
  inOrder,
  matching,
  type RouteRule,
  readRoutes,
} from "./route-match"
import type * as schemas from "./schemas"
import { type InboundRow, inboundRoutes, type RouteAction } from "./tables"

/** Routes of one project: every mail asks a few of them by name, but people read them all. */
const MOST_ROUTES = 1000

const TOO_MANY = `A project may have ${MOST_ROUTES} routes. Delete one first.`
const FULL = { reason: "too_many", id: null }

const DEFAULT_PRIORITY = 100

interface RouteFields {
  match_to: string
  action: RouteAction
  target: string | null
  priority: number
}

/** Reads the body of a new route. */
export function readNewRoute(
  body: Static<typeof schemas.NewInboundRoute>,
  problems: Problems,
): RouteFields {
  const given = readRouteChange(body, problems)
  return { match_to: "", action: "drop", target: null, priority: DEFAULT_PRIORITY, ...given }
}

/** Reads the fields of a change. */
export function readRouteChange(
  { match, ...rest }: Static<typeof schemas.InboundRouteChange>,
  problems: Problems,
): Partial<RouteFields> {
  if (!match) return rest
  const match_to = comparableMatch(match.to) ?? problems.add("match.to", "invalid", BAD_MATCH)
  return { ...rest, match_to: match_to ?? "" }
}

const BAD_MATCH =
  "The value must be an address. Its local part may be *, or may end with +*, as in support+*@in.example.com."

/** What a project does with mail to some of its addresses. */
export const inboundRoute = noun({
  name: "inbound_route",
  table: inboundRoutes,
  missing: () => fail("not_found", "There is no such route."),
  unique: {
    column: "match_to",
    message: (match_to) => `This project already has a route for ${match_to}.`,
    reason: "exists",
  },
  toResponse,
  audited: toResponse,
})

/** The Route record of the contract. */
function toResponse(row: InboundRoute) {
  const { id, match_to, action, target, priority, created_at, updated_at } = row
  return { id, match: { to: match_to }, action, target, priority, created_at, updated_at }
}

/** Throws 409 where the project has a route for the same match, 422 for a loop, and 404 for an unknown endpoint. */
export async function create(tx: Tx, caller: Caller, fields: RouteFields) {
  const { account_id, project_id } = caller
  await accounts.findForUpdate(tx, account_id) // one change of routes at a time
  const all = (await inboundRoute.list(tx, project_id).total()) ?? MOST_ROUTES
  if (all >= MOST_ROUTES) fail("conflict", TOO_MANY, FULL)
  const row = { id: newId(), project_id, ...fields }
  return inboundRoute.insert(tx, caller, await checked(tx, row))
}

/** Throws as `create` does. A new action without a target loses the old target. */
export async function update(
  tx: Tx,
  caller: Caller,
  before: InboundRoute,
  changes: Partial<RouteFields>,
) {
  await accounts.findForUpdate(tx, caller.account_id) // one change of routes at a time
  const is_other = changes.action !== undefined && changes.action !== before.action
  const after = { ...before, ...(is_other && { target: null }), ...changes }
  return inboundRoute.update(tx, caller, before, await checked(tx, after))
}

/** With its target as it is stored. */
async function checked<Route extends RouteRule>(tx: Tx, route: Route): Promise<Route> {
  await inboundRoute.refuseTaken(tx, route)
  const row = { ...route, target: await targetOf(tx, route) }
  await refuseLoop(tx, row)
  return row
}

/** What the action does it to, checked. Throws 422, and 404 for an unknown endpoint. */
async function targetOf(db: Reader, { project_id, action, target }: RouteRule) {
  if (action === "webhook") {
    if (target !== null) await webhooks.find(db, project_id, target)
    return target
  }
  if (action === "drop") {
    if (target === null) return null
    throw invalid("target", "invalid", "A route that drops mail has no target.")
  }
  if (target === null) {
    throw invalid("target", "required", "A route that forwards mail needs the address as target.")
  }
  const mailbox = parseMailbox(target)
  if (!mailbox) throw invalid("target", "invalid_email", notOneAddress(target))
  return mailbox.email
}

// Mail that comes back is stopped when it arrives (`wasForwarded`), because others may send it back. What the routes
// of one project alone show is refused before.

/** The forward routes that mail to an address goes through, one after the other. */
function forwardsOf(routes: readonly RouteRule[], address: string): RouteRule[] {
  const way: RouteRule[] = []
  let at: string | null = address
  while (at !== null && way.length < MOST_HOPS) {
    const route: RouteRule | undefined = matching(routes, comparable(at))
    if (route?.action !== "forward" || way.includes(route)) break
    way.push(route)
    at = route.target
  }
  return way
}

/** Throws 422 where what the route forwards would come back to it. */
async function refuseLoop(db: Reader, route: RouteRule): Promise<void> {
  const { action, target, id, project_id, match_to } = route
  if (action !== "forward" || target === null) return
  const others = (await readRoutes(db, project_id)).filter((one) => one.id !== id)
  const way = forwardsOf(inOrder<RouteRule>([...others, route]), target)
  const back = way.findIndex((one) => one.id === id)
  if (back < 0) return
  const by = way.slice(0, back).map((one) => `the route for ${one.match_to} to ${one.target}`)
  const through = by.length > 0 ? `, then by ${by.join(", by ")}` : ""
  const said = `Mail to ${match_to} would come back for ever: it is forwarded to ${target}${through}. That is an address of this route again.`
  throw invalid("target", "invalid", said)
}

/** Throws 422 where a forward of this mail would bring it back to the address that it came to. */
export async function refuseReturn(db: Reader, row: InboundRow, to: string): Promise<void> {
  const ends = forwardsOf(await readRoutes(db, row.project_id), to).map(({ target }) => target)
  const addresses = [to, ...ends.flatMap((end) => end ?? [])].map(comparable)
  if (!addresses.includes(row.to_email) && !wasForwardedFrom(row, comparable(to))) return
  const said = `A forward to ${to} would bring this mail back: it came to ${row.to_email}, or it was forwarded from there before.`
  throw invalid("to", "invalid", said)
}
