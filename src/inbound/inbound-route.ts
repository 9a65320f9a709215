import type { Static } from "@sinclair/typebox"
import { and, eq, ne } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail, invalid, type Problems } from "../core/errors"
import { newId } from "../core/ids"
import { now } from "../core/time"
import { check } from "../http/validate"
import type { Caller } from "../identity/caller"
import { notOneAddress, parseMailbox } from "../lib/address"
import { rowById, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import * as accounts from "../tenancy/accounts"
import * as webhooks from "../webhooks/webhooks"
import { refuseLoop } from "./route-loops"
import { comparableMatch, type InboundRoute } from "./route-match"
import * as schemas from "./schemas"
import { inboundRoutes, type RouteAction } from "./tables"

/** Routes of one project: every mail asks a few of them by name, but people read them all. */
const MOST_ROUTES = 1000

const TOO_MANY = `A project may have ${MOST_ROUTES} routes. Delete one first.`
const FULL = { reason: "too_many", id: null }

const DEFAULT_PRIORITY = 100

/** The fields of a route, in the words of the table. */
interface RouteFields {
  match_to: string
  action: RouteAction
  target: string | null
  priority: number
}

type InboundRouteRecord = Static<typeof schemas.InboundRoute>

/** The Route record of the contract. */
export const shown = (row: InboundRoute): InboundRouteRecord => {
  const { id, match_to, action, target, priority, created_at, updated_at } = row
  return { id, match: { to: match_to }, action, target, priority, created_at, updated_at }
}

/** Reads the body of a new route. */
export function readNewRoute(body: unknown, problems: Problems): RouteFields {
  check(schemas.NewInboundRoute, body, problems)
  const given = readFields(problems.any ? {} : body, problems)
  return { match_to: "", action: "drop", target: null, priority: DEFAULT_PRIORITY, ...given }
}

/** Reads the fields of a change. */
export function readRouteChange(body: unknown, problems: Problems): Partial<RouteFields> {
  check(schemas.InboundRouteChange, body, problems)
  return readFields(problems.any ? {} : body, problems)
}

function readFields(body: unknown, problems: Problems): Partial<RouteFields> {
  const { match, ...rest } = body as Static<typeof schemas.InboundRouteChange>
  if (!match) return rest
  const match_to = comparableMatch(match.to) ?? problems.add("match.to", "invalid", BAD_MATCH)
  return { ...rest, match_to: match_to ?? "" }
}

const BAD_MATCH =
  "The value must be an address. Its local part may be *, or may end with +*, as in support+*@in.example.com."

const gone = () => fail("not_found", "There is no such route.")

const of = (project_id: string) => eq(inboundRoutes.project_id, project_id)

export const lookup = (db: Reader, project_id: string, id: string) =>
  rowById(db, inboundRoutes, id, of(project_id))

/** The routes of a project, newest first. Its `find` throws 404. */
export const ofProject = (db: Reader, project_id: string) =>
  rowList(db, inboundRoutes, { of: of(project_id), missing: gone })

/** Throws 404. */
export const find = async (db: Reader, project_id: string, id: string): Promise<InboundRoute> =>
  (await lookup(db, project_id, id)) ?? gone()

/** Throws 409 where the project has a route for the same match, 422 for a loop, and 404 for an unknown endpoint. */
export async function create(tx: Tx, caller: Caller, fields: RouteFields) {
  const { account_id, project_id } = caller
  await accounts.hold(tx, account_id) // one change of routes at a time
  const all = (await ofProject(tx, project_id).total()) ?? MOST_ROUTES
  if (all >= MOST_ROUTES) fail("conflict", TOO_MANY, FULL)
  const at = now()
  const row = { id: newId(), project_id, ...fields, created_at: at, updated_at: at }
  await refuseTaken(tx, row)
  const checked = { ...row, target: await targetOf(tx, row) }
  await refuseLoop(tx, checked)
  await tx.insert(inboundRoutes).values(checked)
  await log(tx, caller, row.id, "inbound_route.created", { after: shown(checked) })
  return shown(checked)
}

/** Throws as `create` does. A new action without a target loses the old target. */
export async function update(tx: Tx, caller: Caller, id: string, changes: Partial<RouteFields>) {
  const { account_id, project_id } = caller
  await accounts.hold(tx, account_id) // one change of routes at a time
  const before = await find(tx, project_id, id)
  const is_other = changes.action !== undefined && changes.action !== before.action
  const whole = { ...before, ...(is_other && { target: null }), ...changes, updated_at: now() }
  await refuseTaken(tx, whole)
  const after = { ...whole, target: await targetOf(tx, whole) }
  await refuseLoop(tx, after)
  await tx.update(inboundRoutes).set(after).where(eq(inboundRoutes.id, id))
  const change = { before: shown(before), after: shown(after) }
  await log(tx, caller, id, "inbound_route.updated", change)
  return shown(after)
}

export async function remove(tx: Tx, caller: Caller, id: string): Promise<void> {
  const before = await find(tx, caller.project_id, id)
  await tx.delete(inboundRoutes).where(eq(inboundRoutes.id, id))
  await log(tx, caller, id, "inbound_route.deleted", { before: shown(before) })
}

async function refuseTaken(db: Reader, { project_id, match_to, id }: InboundRoute) {
  const same = and(of(project_id), eq(inboundRoutes.match_to, match_to), ne(inboundRoutes.id, id))
  const [row] = await db.select({ id: inboundRoutes.id }).from(inboundRoutes).where(same)
  if (!row) return
  const message = `This project already has a route for ${match_to}.`
  fail("conflict", message, { reason: "exists", id: row.id })
}

/** What the action does it to, checked. Throws 422, and 404 for an unknown endpoint. */
async function targetOf(db: Reader, { project_id, action, target }: InboundRoute) {
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

function log(tx: Tx, caller: Caller, id: string, action: string, change: audit.AuditChange) {
  const { account_id, project_id } = caller
  const target = { type: "inbound_route", id }
  return audit.record(tx, caller, { account_id, project_id, action, target, ...change })
}
