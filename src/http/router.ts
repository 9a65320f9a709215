import type { Elysia } from "elysia"
import { ApiError } from "../core/errors"
import { maskAlso } from "../core/log"
import { respondError } from "./envelope"
import { type Peer, RequestHandler, type RequestHandlerOptions, requestId } from "./request-handler"
import type { AnyRoute } from "./route"
import { looksOf, pathOf, shownAnyway } from "./target"

/**
 * Puts every row of the table on the router, each behind the same order of checks, and 404 with
 * the methods of a known path behind everything else.
 */
export function mountRoutes(app: Elysia, routes: AnyRoute[], options: RequestHandlerOptions) {
  const handler = new RequestHandler(options)
  const reasonFor = absence(routes)
  app.onError(({ code, request, server, error }) => {
    if (code === "NOT_FOUND")
      return handler.absent(request, server as Peer | null, reasonFor(request))
    return respondError(error, requestId(request), {}, { path: pathOf(request) })
  })
  for (const route of routes) {
    for (const look of looksOf(route)) maskAlso(look)
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1")
    const answer = ({ request, params, server }: Context) =>
      handler.answer(route, request, params ?? {}, server)
    app.route(route.method, path, answer as never)
    if (route.method === "GET") app.route("HEAD", path, answer as never)
  }
}

interface Context {
  request: Request
  /** Absent where the path has none. */
  params: Record<string, string> | undefined
  server: Peer | null
}

/** Says why there is no answer: no such path, or a path that names its methods in `Allow`. */
export function absence(routes: AnyRoute[]) {
  const shapes = routes.map(({ method, path }) => ({ method, shape: shapeOf(path) }))
  return (request: Request): ApiError => {
    const pathname = pathOf(request)
    const allowed = shapes.filter(({ shape }) => shape.test(pathname)).map(({ method }) => method)
    const shown = shownAnyway(routes, pathname)
    if (allowed.length === 0)
      return new ApiError(
        "not_found",
        `There is no path ${shown}. The reference at /docs has all paths.`,
      )

    const all = [...new Set(allowed.includes("GET") ? [...allowed, "HEAD"] : allowed)].join(", ")
    const message = `${shown} does not accept ${request.method}. It accepts ${all}.`
    return new ApiError("not_found", message, {}, { headers: { allow: all } })
  }
}

const shapeOf = (path: string) =>
  new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`)
