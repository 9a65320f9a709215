import { asc, eq } from "drizzle-orm"
import { comparable, isMailbox } from "../lib/address"
import { cached } from "../store/cached"
import type { Reader } from "../store/store"
import { inboundRoutes } from "./tables"

export type InboundRoute = typeof inboundRoutes.$inferSelect

export type RouteRule = Omit<InboundRoute, "created_at" | "updated_at">

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
export const matching = <Rule extends RouteRule>(routes: readonly Rule[], address: string) =>
  routes.find(({ match_to }) => isMatch(match_to, address))

/** All of a project, in the order in which they decide. */
export async function readRoutes(db: Reader, project_id: string): Promise<InboundRoute[]> {
  const ours = eq(inboundRoutes.project_id, project_id)
  return inOrder(await db.select().from(inboundRoutes).where(ours).orderBy(asc(inboundRoutes.id)))
}

/** Routes that rise by their ids, in the order in which they decide. */
export const inOrder = <Rule extends RouteRule>(rows: Rule[]): Rule[] =>
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
