import { EXAMPLE_ID } from "../lib/record-fields"
import { commonHeaders, metas, rateHeaders, reference } from "./openapi-components"
import { failuresOf } from "./openapi-errors"
import { TEXTS } from "./openapi-examples"
import type { SchemaComponents } from "./openapi-schemas"
import { needOf } from "./permit"
import type { AnyRoute } from "./route"

type Schema = Record<string, unknown>

/** From the path, the query and the headers that the route itself reads. */
export function parametersOf(route: AnyRoute, schemas: SchemaComponents) {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const common = route.path.startsWith("/v1/") ? [reference("parameters", "RequestId")] : []
  return [
    ...names.map((name) => ({
      name,
      in: "path" as const,
      required: true,
      ...pathField(name, route.choices?.[name]),
    })),
    ...fieldsOf(route.query, "query", schemas),
    ...fieldsOf(route.headers, "header", schemas),
    ...contextOf(route),
    ...(route.idempotent ? [reference("parameters", "IdempotencyKey")] : []),
    ...(route.body || route.query ? [reference("parameters", "Strict")] : []),
    ...common,
  ]
}

/** What is named in a path: mostly an id, with one that could stand there. */
function pathField(name: string, words: readonly string[] | undefined) {
  if (words) return { schema: { type: "string", enum: words }, example: words[0] ?? "" }
  const known = PATH_EXAMPLES[name]
  if (known !== undefined) return { schema: { type: "string" }, example: known }
  return { schema: { type: "string", format: "uuid" }, example: EXAMPLE_ID }
}

const PATH_EXAMPLES: Record<string, string> = {
  event_id: `evt_${EXAMPLE_ID}`,
  attachment_id: EXAMPLE_ID,
  token: "it_Zk3vX9",
  provider: "ses",
  config_token: "cb_Zk3vX9",
  queue: "email",
}

/** The path of one request. */
export const filledPath = ({ path, choices }: AnyRoute): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathField(name, choices?.[name]).example)

/** What a console caller has to choose, where a key already says it. */
function contextOf(route: AnyRoute) {
  const need = route.callers.includes("console") ? needOf(route) : "user"
  if (route.callers.includes("none") || need === "user") return []
  const account = reference("parameters", "AccountId")
  const named = need === "account" || route.path.includes("{project_id}")
  return named ? [account] : [account, reference("parameters", "ProjectId")]
}

function fieldsOf(schema: AnyRoute["query"], place: "query" | "header", schemas: SchemaComponents) {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => {
    const { description, ...rest } = schemas.show(field)
    const required = (schema?.required ?? []).includes(name) && rest.default === undefined
    const about = typeof description === "string" ? { description } : {}
    return { name, in: place, required, ...about, schema: rest }
  })
}

/** An absent body counts as `{}`, so it is required only where that would not do. */
export function bodyOf({ body, example }: AnyRoute, schemas: SchemaComponents) {
  if (!body) return undefined
  const required = body.type !== "object" || ((body.required ?? []) as string[]).length > 0
  return { required, content: { "application/json": { schema: schemas.show(body), example } } }
}

const NO_CONTENT: Record<number, string> = { 101: "Upgraded to a WebSocket.", 302: "Elsewhere." }

/** Each success with its envelope, and each failure with its codes. */
export function responsesOf(route: AnyRoute, schemas: SchemaComponents): Record<string, object> {
  const versioned = route.path.startsWith("/v1/")
  const headers = {
    ...commonHeaders,
    ...(versioned && rateHeaders),
    ...("page" in (route.query?.properties ?? {}) && { Link: reference("headers", "Link") }),
    ...(route.idempotent && { "Idempotent-Replayed": reference("headers", "IdempotentReplayed") }),
  }
  const answers = [...route.status, ...(route.also ?? [])].map((status) => {
    const bare = NO_CONTENT[status]
    if (bare) return [status, { description: bare, headers }] as const
    const content = contentOf(route, schemas)
    return [status, { description: route.summary, headers, content }] as const
  })
  return { ...failuresOf(route), ...Object.fromEntries(answers) }
}

function contentOf(route: AnyRoute, schemas: SchemaComponents) {
  const { produces = "application/json", response } = route
  const text = TEXTS[produces]
  if (text !== undefined) return { [produces]: { schema: BYTES, example: text } }
  const bare = route.produces && response
  const schema = bare ? schemas.show(response) : envelopeOf(route, schemas)
  return { [produces]: { schema, example: schemas.exampleOf(schema) } }
}

const BYTES = { type: "string" }

/** `{data, meta}`; a page of rows and a feed have lists for data, and more in meta. */
function envelopeOf(route: AnyRoute, schemas: SchemaComponents): Schema {
  const { query, response, top, meta, envelope } = route
  if (envelope) return schemas.show(envelope)
  const data = response ? schemas.show(response) : {}
  const asked = query?.properties ?? {}
  const many = "page" in asked ? "ListMeta" : "after" in asked ? "FeedMeta" : undefined
  const beside = top ? schemas.show(top) : undefined
  return {
    type: "object",
    properties: {
      ...(beside?.properties as object),
      data: many ? { type: "array", items: data } : data,
      ...(many && { has_more: { type: "boolean", description: "As in meta." } }),
      meta: metaOf(many ?? "Meta", meta, schemas),
    },
    required: [
      ...((beside?.required ?? []) as string[]),
      "data",
      ...(many ? ["has_more"] : []),
      "meta",
    ],
  }
}

function metaOf(name: keyof typeof metas, meta: AnyRoute["meta"], schemas: SchemaComponents) {
  if (!meta) return reference("schemas", name)
  const usual = metas[name]
  const more = schemas.show(meta)
  return {
    type: "object",
    properties: { ...usual.properties, ...(more.properties as object) },
    required: [...usual.required, ...((more.required ?? []) as string[])],
  }
}
