import { commonHeaders, metas, rateHeaders, reference } from "./openapi-components"
import { failuresOf } from "./openapi-errors"
import { TEXTS } from "./openapi-examples"
import type { SchemaComponents } from "./openapi-schemas"
import type { AnyRoute } from "./route"

type Schema = Record<string, unknown>

/** An absent body counts as `{}`, so it is required only where that would not do. */
export function bodyOf({ body, example }: AnyRoute, schemas: SchemaComponents) {
  if (!body) return undefined
  const required = body.type !== "object" || ((body.required ?? []) as string[]).length > 0
  return { required, content: { "application/json": { schema: schemas.show(body), example } } }
}

const NO_CONTENT: Record<number, string> = {
  101: "The connection becomes a WebSocket.",
  302: "The answer is at another address.",
}

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
      ...(many && { has_more: { type: "boolean", description: "A copy of `meta.has_more`." } }),
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
