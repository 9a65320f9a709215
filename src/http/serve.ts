import type { Elysia } from "elysia"
import { maskAlso } from "../core/log"
import { Desk, type DeskOptions, type Peer, requestId } from "./desk"
import { respondError } from "./envelope"
import { absence } from "./not-found"
import type { AnyRoute } from "./route"
import { looksOf } from "./shown-path"
import { pathOf } from "./target"

/**
 * Puts every row of the table on the router, each behind the same order of checks, and 404 with
 * the methods of a known path behind everything else.
 */
export function mount(app: Elysia, routes: AnyRoute[], options: DeskOptions) {
  const desk = new Desk(options)
  const reasonFor = absence(routes)
  app.onError(({ code, request, server, error }) => {
    if (code === "NOT_FOUND") return desk.absent(request, server as Peer | null, reasonFor(request))
    return respondError(error, requestId(request), {}, { path: pathOf(request) })
  })
  for (const route of routes) {
    for (const look of looksOf(route)) maskAlso(look)
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1")
    const handler = ({ request, params, server }: Context) =>
      desk.answer(route, request, params ?? {}, server)
    app.route(route.method, path, handler as never)
    if (route.method === "GET") app.route("HEAD", path, handler as never)
  }
}

interface Context {
  request: Request
  /** Absent where the path has none. */
  params: Record<string, string> | undefined
  server: Peer | null
}
