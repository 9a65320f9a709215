import { ApiError, fail } from "../core/errors"
import type { AnyRoute } from "./route"
import { shownAnyway, shownPath } from "./shown-path"
import { pathOf } from "./target"

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

interface Asked {
  route: AnyRoute
  request: Request
  params: Record<string, string>
}

/** 404 for a word in the path that is none of its choices; whoever may not ask at all heard so before. */
export function refuseOther({ route, request, params }: Asked): void {
  for (const [name, words] of Object.entries(route.choices ?? {})) {
    if (words.includes(params[name] ?? "")) continue
    fail("not_found", `There is no ${shownPath(route, pathOf(request))}.`)
  }
}

const shapeOf = (path: string) =>
  new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`)
