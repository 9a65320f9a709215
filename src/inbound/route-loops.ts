import { invalid } from "../core/errors"
import { comparable } from "../lib/address"
import type { Reader } from "../store/store"
import { MOST_HOPS, wasForwardedFrom } from "./forward"
import { inOrder, matching, type RouteRule, readRoutes } from "./route-match"
import type { InboundRow } from "./tables"

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
export async function refuseLoop(db: Reader, route: RouteRule): Promise<void> {
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
