import { nounRows } from "../http/noun-rows"
import { type ListParts, pageQuery } from "../http/page"
import type { AnyRoute } from "../http/route"
import * as routes from "./inbound-route"
import * as schemas from "./schemas"

const ALL = "/v1/inbound-routes"
const ONE = `${ALL}/{route_id}`

/** What a project does with mail to some of its addresses. */
export const inboundRouteRoutes = (parts: ListParts): AnyRoute[] => {
  const scopes = ["inbound:read", "inbound:write"] as const
  const rows = nounRows(routes.inboundRoute, schemas.InboundRoute, scopes, parts)
  return [
    rows.list(ALL, {
      summary: "List the routes of received mail, newest first",
      description: "Of the routes that match an address, the lowest `priority` decides.",
      query: pageQuery({}),
    }),
    rows.create(ALL, {
      summary: "Make a route for received mail",
      description:
        "`webhook` sends the event to one endpoint or to all, `forward` sends the mail to another address, and `drop` keeps the mail without an event. 422 also means that forwarded mail would come back to this route.",
      body: schemas.NewInboundRoute,
      example: { match: { to: "support+*@in.example.com" }, action: "webhook" },
      read: routes.readNewRoute,
      errors: ["conflict", "webhook_not_found", "invalid_email"],
      create: routes.create,
    }),
    rows.get(ONE, {
      summary: "Show one route",
      description: "The addresses, the action and the priority.",
    }),
    rows.change(ONE, {
      summary: "Change a route",
      description: "Fields that are absent stay as they are. A new action needs its own target.",
      body: schemas.InboundRouteChange,
      example: { priority: 10 },
      read: routes.readRouteChange,
      errors: ["conflict", "webhook_not_found", "invalid_email"],
      change: routes.update,
    }),
    rows.remove(ONE, {
      summary: "Delete a route",
      description: "Mail to its addresses is treated by the other routes, or by the default.",
    }),
  ]
}
