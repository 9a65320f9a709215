import { expect, test } from "bun:test"
import { linesThatFail, markedLines } from "../harness/compile"

/** Rows of routes, of which each line that ends with `// wrong` must not compile. */
const ROWS = `
import { Type as t } from "@sinclair/typebox"
import { route } from "belfry/http/route"
import { pageQuery } from "belfry/http/page"

const row = {
  method: "GET" as const,
  callers: ["key" as const],
  scope: "-",
  status: [200] as [number],
  summary: "",
}
const Thing = t.Object({ id: t.String(), size: t.Union([t.Integer(), t.Null()]) })
const path = "/v1/things/{thing_id}"
const both = { id: "1", size: null }

export const rows = [
  route({ ...row, path, response: Thing, handle: () => ({ data: both }) }),
  route({ ...row, path, response: Thing, handle: async () => ({ data: both }) }),
  route({ ...row, path, response: Thing, handle: () => ({ data: { id: "1" } }) }), // wrong
  route({ ...row, path, response: Thing, handle: () => ({ data: { id: 1, size: 1 } }) }), // wrong
  route({ ...row, path, response: Thing, handle: () => ({}) }), // wrong
  route({ ...row, path, response: Thing, handle: () => new Response() }), // wrong
  route({ ...row, path, handle: () => new Response() }),
  route({ ...row, path, response: Thing, top: Thing, handle: () => ({ data: both, top: both }) }),
  route({ ...row, path, response: Thing, top: Thing, handle: () => ({ data: both }) }), // wrong
  route({ ...row, path, response: Thing, meta: Thing, handle: () => ({ data: both }) }), // wrong
  route({ ...row, path, query: pageQuery({}), response: Thing, handle: () => ({ data: [both] }) }),
  route({ ...row, path, query: pageQuery({}), response: Thing, handle: () => ({ data: both }) }), // wrong
  route({ ...row, path, produces: "application/json", response: Thing, handle: () => ({ bare: both }) }),
  route({ ...row, path, produces: "application/json", response: Thing, handle: () => ({ bare: 1 }) }), // wrong
  route({ ...row, path, response: t.String(), handle: ({ params }) => ({ data: params.thing_id }) }),
  route({ ...row, path, response: t.String(), handle: ({ params }) => ({ data: params.thing }) }), // wrong
  route({ ...row, path, choices: { thing_id: ["a", "b"] }, response: t.Literal("a"), handle: ({ params }) => ({ data: params.thing_id === "b" ? "a" : params.thing_id }) }),
  route({ ...row, path, body: Thing, response: t.String(), handle: ({ body }) => ({ data: body.id }) }),
  route({ ...row, path, body: Thing, response: t.String(), handle: ({ body }) => ({ data: body.size }) }), // wrong
  route({ ...row, path, body: Thing, read: () => 1, response: t.Integer(), handle: ({ body }) => ({ data: body }) }),
  route({ ...row, path, body: Thing, read: () => 1, response: t.String(), handle: ({ body }) => ({ data: body }) }), // wrong
  route({ ...row, path, query: Thing, response: t.String(), handle: ({ query }) => ({ data: query.id }) }),
  route({ ...row, path, query: Thing, response: t.String(), handle: ({ query }) => ({ data: query.name }) }), // wrong
]
`

test("a handler that answers something else than its schema says does not compile", async () => {
  expect(await linesThatFail(ROWS)).toEqual(markedLines(ROWS))
  expect(markedLines(ROWS).length).toBe(12)
})
