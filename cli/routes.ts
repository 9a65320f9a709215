import type { Action } from "./context"
import { exits, Failure } from "./failure"
import type { Column } from "./table"

type Operation = { summary: string; "x-callers": string[]; "x-required-scope": string }
type Reference = { paths?: Record<string, Record<string, Operation>> }

type Route = { method: string; path: string; callers: string[]; scope: string; summary: string }

const columns: Column<Route>[] = [
  { title: "METHOD", cell: ({ method }) => method },
  { title: "PATH", cell: ({ path }) => path },
  { title: "CALLERS", cell: ({ callers }) => callers.join(",") },
  { title: "SCOPE", cell: ({ scope }) => scope },
  { title: "WHAT", cell: ({ summary }) => summary, flexible: true },
]

/** What the server itself tells of its table; it asks nobody who he is for that. */
export const routes: Action<object> = async (context) => {
  const { status, body } = await context.anonymous().plain("/v1/openapi.json")
  const { paths } = body as Reference
  if (status !== 200 || !paths) {
    throw new Failure(exits.failed, "no_reference", `/v1/openapi.json answered ${status}.`)
  }
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      callers: operation["x-callers"],
      scope: operation["x-required-scope"],
      summary: operation.summary,
    })),
  )
  await context.output.list(rows, columns)
  return undefined
}
