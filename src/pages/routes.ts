import { VERSION } from "../core/version"
import { openApi } from "../http/openapi"
import { type AnyRoute, route } from "../http/route"
import { docsPage } from "./docs"

/** The description of the interface, for programs and for people. Neither needs a network. */
export function docsRoutes(table: AnyRoute[]): AnyRoute[] {
  const open = {
    method: "GET" as const,
    callers: ["none" as const] as AnyRoute["callers"],
    scope: "-",
    status: [200] as [number],
  }
  const routes: AnyRoute[] = [
    route({
      ...open,
      path: "/v1/openapi.json",
      summary: "This interface as OpenAPI 3.1",
      produces: "application/json",
      handle: () => Response.json(description()),
    }),
    route({
      ...open,
      path: "/docs",
      summary: "The reference for people",
      produces: "text/html",
      handle: () => docsPage(description()),
    }),
  ]
  let made: ReturnType<typeof openApi> | undefined
  const description = () => {
    made ??= openApi([...table, ...routes], VERSION)
    return made
  }
  return routes
}
