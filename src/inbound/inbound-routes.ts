import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import * as routes from "./inbound-route"
import * as schemas from "./schemas"

const ALL = "/v1/inbound-routes"
const ONE = `${ALL}/{route_id}` as const

const by = <const Path extends string>(method: Method, path: Path, status = 200) =>
  projectRow(method, path, method === "GET" ? "inbound:read" : "inbound:write", status)

/** What a project does with mail to some of its addresses. */
export const inboundRouteRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List the routes of received mail, newest first",
    description: "Of the routes that match an address, the lowest `priority` decides.",
    query: pageQuery({}),
    response: schemas.InboundRoute,
    handle: (call) =>
      listPage(call, cursors, routes.ofProject(store.read, call.project_id), routes.shown),
  }),
  route({
    ...by("POST", ALL, 201),
    summary: "Make a route for received mail",
    description:
      "`webhook` sends the event to one endpoint or to all, `forward` sends the mail to another address, and `drop` keeps the mail without an event. 422 also means that forwarded mail would come back to this route.",
    body: schemas.NewInboundRoute,
    example: { match: { to: "support+*@in.example.com" }, action: "webhook" },
    read: routes.readNewRoute,
    response: schemas.InboundRoute,
    errors: ["conflict", "webhook_not_found", "invalid_email"],
    idempotent: true,
    handle: ({ caller, body, claim }) =>
      answerOnce(store, claim, (tx) => routes.create(tx, caller, body)),
  }),
  route({
    ...by("GET", ONE),
    summary: "Show one route",
    description: "The addresses, the action and the priority.",
    response: schemas.InboundRoute,
    handle: async ({ project_id, params }) => ({
      data: routes.shown(await routes.find(store.read, project_id, params.route_id)),
    }),
  }),
  route({
    ...by("PATCH", ONE),
    summary: "Change a route",
    description: "Fields that are absent stay as they are. A new action needs its own target.",
    body: schemas.InboundRouteChange,
    example: { priority: 10 },
    read: routes.readRouteChange,
    response: schemas.InboundRoute,
    errors: ["conflict", "webhook_not_found", "invalid_email"],
    handle: async ({ caller, params, body }) => ({
      data: await store.tx((tx) => routes.update(tx, caller, params.route_id, body)),
    }),
  }),
  route({
    ...by("DELETE", ONE),
    summary: "Delete a route",
    description: "Mail to its addresses is treated by the other routes, or by the default.",
    response: Deleted,
    handle: async ({ caller, params }) => {
      await store.tx((tx) => routes.remove(tx, caller, params.route_id))
      return deleted(params.route_id)
    },
  }),
]
