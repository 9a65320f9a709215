import type { Static } from "@sinclair/typebox"
import { asc, eq } from "drizzle-orm"
import { fail, invalid, type Problems } from "../core/errors"
import { newId } from "../core/ids"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { comparable, isMailbox, notOneAddress, parseMailbox } from "../lib/address"
import { cached } from "../store/cached"
import type { Reader, Tx } from "../store/store"
import * as accounts from "../tenancy/accounts"
import * as webhooks from "../webhooks/webhooks"
import { MOST_HOPS, wasForwardedFrom } from "./forward"
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

export type InboundRoute = typeof inboundRoutes.$inferSelect

type RouteRule = Omit<InboundRoute, "created_at" | "updated_at">

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

const routesOf = cached<InboundRoute[]>({ tables: ["inbound_routes"], most: 1000 })

/**
 * The route of the project for an address in comparable form, or undefined. The lowest priority number is first;
 * among equal numbers the longer match, then the older route.
 */
export async function routeFor(
  db: Reader,
  project_id: string,
  address: string,
): Promise<InboundRoute | undefined> {
  const routes = await routesOf(db, project_id, () => readRoutes(db, project_id), TRUSTED_MS)
  return matching(routes, address)
}

/** The first of them that matches. */
const matching = <Rule extends RouteRule>(routes: readonly Rule[], address: string) =>
  routes.find(({ match_to }) => isMatch(match_to, address))

/** All of a project, in the order in which they decide. */
async function readRoutes(db: Reader, project_id: string): Promise<InboundRoute[]> {
  const ours = eq(inboundRoutes.project_id, project_id)
  return inOrder(await db.select().from(inboundRoutes).where(ours).orderBy(asc(inboundRoutes.id)))
}

/** Routes that rise by their ids, in the order in which they decide. */
const inOrder = <Rule extends RouteRule>(rows: Rule[]): Rule[] =>
  rows.sort((one, other) => one.priority - other.priority || detail(other) - detail(one))

/** An exact address says most, then the one with the longest text before `*`. */
const detail = ({ match_to }: RouteRule) =>
  match_to.includes("*") ? match_to.indexOf("*") : Number.MAX_SAFE_INTEGER

/** `match` is an address of which `*` stands for any text at the end of the local part. */
export function isMatch(match: string, address: string): boolean {
  const { local, domain } = split(match)
  const given = split(address)
  if (domain !== given.domain) return false
  if (local === "*") return true
  if (!local.endsWith("+*")) return local === given.local
  return given.local.startsWith(local.slice(0, -1))
}

function split(address: string) {
  const at = address.lastIndexOf("@")
  return { local: address.slice(0, at), domain: address.slice(at + 1) }
}

/**
 * What a route may match, in comparable form: an address, `name+*@domain` or `*@domain`. Undefined for
 * every other text.
 */
export function comparableMatch(text: string): string | undefined {
  const given = text.trim()
  const sample = given.replace(/^\*@/, "any@").replace(/\+\*@/, "+any@")
  if (sample.includes("*") || !isMailbox(sample)) return undefined
  return comparable(given)
}
