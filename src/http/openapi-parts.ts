import type { TSchema } from "@sinclair/typebox"
import { commonHeaders, rateHeaders, reference } from "./openapi-components"
import { needOf } from "./permit"
import type { AnyRoute } from "./route"

type Schema = Record<string, unknown>

/** A copy without TypeBox' symbols, as it goes over the wire. */
const plain = (schema: TSchema): Schema => JSON.parse(JSON.stringify(schema)) as Schema

/** From the path, the query and the headers that the route itself reads. */
export function parametersOf(route: AnyRoute) {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const common = route.path.startsWith("/v1/") ? [reference("parameters", "RequestId")] : []
  return [
    ...names.map((name) => ({
      name,
      in: "path" as const,
      required: true,
      schema: { type: "string", ...enumOf(route.choices?.[name]) },
    })),
    ...fieldsOf(route.query, "query"),
    ...fieldsOf(route.headers, "header"),
    ...contextOf(route),
    ...(route.idempotent ? [reference("parameters", "IdempotencyKey")] : []),
    ...(route.body || route.query ? [reference("parameters", "Strict")] : []),
    ...common,
  ]
}

const enumOf = (words: readonly string[] | undefined) => (words ? { enum: words } : {})

/** What a console caller has to choose, where a key already says it. */
function contextOf(route: AnyRoute) {
  const need = route.callers.includes("console") ? needOf(route) : "user"
  if (route.callers.includes("none") || need === "user") return []
  const account = reference("parameters", "AccountId")
  const named = need === "account" || route.path.includes("{project_id}")
  return named ? [account] : [account, reference("parameters", "ProjectId")]
}

function fieldsOf(schema: AnyRoute["query"], place: "query" | "header") {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => {
    const { description, ...rest } = plain(field)
    const required = (schema?.required ?? []).includes(name) && rest.default === undefined
    const about = typeof description === "string" ? { description } : {}
    return { name, in: place, required, ...about, schema: rest }
  })
}

/** An absent body counts as `{}`, so it is required only where that would not do. */
export function bodyOf({ body }: AnyRoute) {
  if (!body) return undefined
  const required = body.type !== "object" || ((body.required ?? []) as string[]).length > 0
  return { required, content: { "application/json": { schema: plain(body) } } }
}

const NO_CONTENT: Record<number, string> = { 101: "Upgraded to a WebSocket.", 302: "Elsewhere." }

/** Each success with its envelope, and one answer for every failure. */
export function responsesOf(route: AnyRoute): Record<string, object> {
  const versioned = route.path.startsWith("/v1/")
  const headers = {
    ...commonHeaders,
    ...(versioned && rateHeaders),
    ...(route.idempotent && { "Idempotent-Replayed": reference("headers", "IdempotentReplayed") }),
  }
  const answers = route.status.map((status) => {
    const bare = NO_CONTENT[status]
    if (bare) return [status, { description: bare, headers }] as const
    return [status, { description: route.summary, headers, content: contentOf(route) }] as const
  })
  return { ...Object.fromEntries(answers), default: reference("responses", "Error") }
}

function contentOf(route: AnyRoute): Record<string, { schema: Schema }> {
  const { produces, response } = route
  if (produces) return { [produces]: { schema: response ? plain(response) : {} } }
  return { "application/json": { schema: envelopeOf(route) } }
}

/** `{data, meta}`; a page of rows and a feed have lists for data, and more in meta. */
function envelopeOf({ query, response }: AnyRoute): Schema {
  const data = response ? plain(response) : {}
  const asked = query?.properties ?? {}
  const many = "page" in asked ? "ListMeta" : "after" in asked ? "FeedMeta" : undefined
  return {
    type: "object",
    properties: {
      data: many ? { type: "array", items: data } : data,
      ...(many && { has_more: { type: "boolean", description: "As in meta." } }),
      meta: reference("schemas", many ?? "Meta"),
    },
    required: ["data", ...(many ? ["has_more"] : []), "meta"],
  }
}
