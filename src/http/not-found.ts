import { ApiError } from "../core/errors"
import { newRequestId } from "../core/ids"
import { respondError } from "./envelope"
import type { AnyRoute } from "./route"

/** 404 for every path and method outside the table; a known path names its methods in `Allow`. */
export function notFound(routes: AnyRoute[]) {
  const shapes = routes.map(({ method, path }) => ({ method, shape: shapeOf(path) }))
  return (request: Request): Response => {
    const { pathname } = new URL(request.url)
    const allowed = shapes.filter(({ shape }) => shape.test(pathname)).map(({ method }) => method)
    const id = newRequestId()
    if (allowed.length === 0) {
      return respondError(new ApiError("not_found", `There is no path ${pathname}.`), id, {})
    }
    const methods = [...new Set(allowed.includes("GET") ? [...allowed, "HEAD"] : allowed)]
    const text = `${pathname} does not answer ${request.method}; it answers ${methods.join(", ")}.`
    return respondError(new ApiError("not_found", text), id, { allow: methods.join(", ") })
  }
}

const shapeOf = (path: string) =>
  new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`)
