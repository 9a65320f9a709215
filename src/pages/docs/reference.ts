import type { ErrorCode } from "../../core/errors"
import { type ExampleRequest, exampleRequest } from "../../http/example-request"
import { NOT_OFFERED } from "../../http/field-schemas"
import type { OpenApi, Operation, Parameter, Reference } from "../../http/openapi"
import type { Schema } from "../../http/openapi-schemas"
import type { AnyRoute } from "../../http/route"
import { html, type Markup, prose } from "../html"

/** One operation of the reference, with all that its page shows. */
export interface DocOperation {
  method: string
  path: string
  operation: Operation
  request: ExampleRequest
}

/** Operations under the first word of their paths. */
export interface DocArea {
  name: string
  title: string
  about: string
  operations: DocOperation[]
}

/** The description of the interface, as the pages need it. */
export interface ApiReference {
  version: string
  description: OpenApi
  areas: DocArea[]
  /** By operationId. */
  operations: Map<string, DocOperation>
}

/** The reference of these routes, whose OpenAPI document is `openapi`. */
export function referenceOf(routes: AnyRoute[], openapi: string): ApiReference {
  const description = JSON.parse(openapi) as OpenApi
  const requests = new Map(
    routes.map((route) => [`${route.method} ${route.path}`, exampleRequest(route)]),
  )
  const all = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([word, operation]): DocOperation => {
      const method = word.toUpperCase()
      const request = requests.get(`${method} ${path}`) as ExampleRequest
      return { method, path, operation, request }
    }),
  )
  return {
    version: description.info.version,
    description,
    areas: [...description.tags].sort(byUse).map(({ name, description: about }) => ({
      name,
      title: titleOf(name),
      about,
      operations: all.filter(({ operation }) => operation.tags.includes(name)),
    })),
    operations: new Map(all.map((one) => [one.operation.operationId, one])),
  }
}

/** What most readers look for stands first; the others follow in the order of the table. */
const FIRST = [
  ...[
    "emails",
    "sms",
    "push",
    "devices",
    "inbox",
    "templates",
    "scheduled",
    "domains",
    "webhooks",
    "events",
    "mailbox",
  ],
  ...["inbound-emails", "inbound-routes", "files", "subscribers", "subscriber-inbox", "topics"],
  ...["suppressions", "providers"],
]

function byUse(a: { name: string }, b: { name: string }): number {
  const [place, other] = [FIRST.indexOf(a.name), FIRST.indexOf(b.name)]
  if (place >= 0 && other >= 0) return place - other
  if (place >= 0 || other >= 0) return other - place
  return Number(a.name === "server") - Number(b.name === "server")
}

function titleOf(name: string): string {
  if (name === "api-keys") return "API keys"
  if (name === "sms") return "SMS"
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ")
}

/** Those that any request may carry are told once, on the first page. */
const TOLD_ONCE = ["X-Request-Id", "X-Strict", "X-Account-Id", "X-Project-Id", "Idempotency-Key"]

/** The parameters that only some operations take, with their references resolved. */
export const ownParameters = ({ operation }: DocOperation, { components }: OpenApi): Parameter[] =>
  operation.parameters.flatMap((one: Parameter | Reference) => {
    const known = "$ref" in one ? components.parameters[one.$ref.split("/").at(-1) ?? ""] : one
    return known && !TOLD_ONCE.includes(known.name) ? [known] : []
  })

/** One way in which an operation may fail. */
export interface DocFailure {
  status: string
  codes: ErrorCode[]
}

/** By status, lowest first. */
export function failuresOf({ operation }: DocOperation, { components }: OpenApi): DocFailure[] {
  const all = Object.entries(operation.responses as Record<string, ResponseLike>)
  return all.flatMap(([status, told]) => {
    const shared = told.$ref && components.responses[told.$ref.split("/").at(-1) ?? ""]
    const { "x-error-codes": codes } = (shared || told) as ResponseLike
    return codes ? [{ status, codes }] : []
  })
}

/** The codes that an operation of this server answers with. */
export const codesOf = ({ operations, description }: ApiReference): Set<ErrorCode> =>
  new Set(
    [...operations.values()]
      .flatMap((one) => failuresOf(one, description))
      .flatMap((one) => one.codes),
  )

interface ResponseLike {
  $ref?: string
  "x-error-codes"?: ErrorCode[]
  content?: Record<string, { schema: Schema; example?: unknown }>
}

/** One success of an operation. */
export interface DocAnswer {
  status: string
  /** The content type; empty where there is no body. */
  type: string
  schema: Schema
  example: unknown
}

export const answersOf = ({ operation }: DocOperation): DocAnswer[] =>
  Object.entries(operation.responses as Record<string, ResponseLike>)
    .filter(([status]) => /^[123]/.test(status))
    .map(([status, { content = {} }]) => {
      const [type = "", told] = Object.entries(content)[0] ?? []
      return { status, type, schema: told?.schema ?? {}, example: told?.example }
    })

/** The schema of the body, or undefined where none is taken. */
export const bodyOf = ({ operation }: DocOperation, description: OpenApi): Schema | undefined => {
  const schema = operation.requestBody?.content["application/json"]?.schema
  return schema && withoutReferences(schema, description)
}

/** Where a schema is only named, the schema itself. */
export function withoutReferences(value: Schema, description: OpenApi): Schema {
  const inner = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(inner)
    if (typeof one !== "object" || one === null) return one
    const { $ref } = one as { $ref?: string }
    const name = $ref?.startsWith("#/components/schemas/") ? $ref.split("/").at(-1) : undefined
    if (name) return inner(description.components.schemas[name])
    return Object.fromEntries(Object.entries(one).map(([key, field]) => [key, inner(field)]))
  }
  return inner(value) as Schema
}

/** One field of a body, of an answer, or of the parameters. */
export interface DocField {
  /** With dots and brackets: `data.messages[].to`. */
  path: string
  kind: string
  required: boolean
  about: string
}

interface ParameterLike {
  name: string
  required: boolean
  description?: string
  schema: Schema
}

export const parameterField = ({
  name,
  required,
  description = "",
  schema,
}: ParameterLike): DocField => ({
  path: name,
  kind: kindOf(schema),
  required,
  about: [description, limitsOf(schema)].filter(Boolean).join(" "),
})

/** Fields as a table. It tells which are required only where a caller sends them. */
export const fieldTable = (
  fields: DocField[],
  withNeed: boolean,
): Markup => html`<div class="fields" role="table">${fields.map(
  ({ path, kind, required, about }) => html`
<div role="row"><span role="cell"><code>${path}</code>${
    withNeed && required && html` <b>required</b>`
  }</span><span role="cell" class="kind">${kind}</span><span role="cell">${prose(about)}</span></div>`,
)}
</div>`

const MOST_LEVELS = 3

/** Every field of a schema without references. Of an alternative, the form with fields is shown. */
export function fieldsOf(schema: Schema, prefix = "", level = 0): DocField[] {
  const shape = objectIn(schema)
  if (!shape || level >= MOST_LEVELS) return []
  const needed = (shape.schema.required ?? []) as string[]
  const properties = shape.schema.properties as Record<string, Schema>
  return Object.entries(properties).flatMap(([name, field]) => {
    if (field[NOT_OFFERED]) return []
    const path = prefix + name
    const about = [String(field.description ?? ""), limitsOf(field)].filter(Boolean).join(" ")
    const own = { path, kind: kindOf(field), required: needed.includes(name), about }
    const inner = objectIn(field)
    return [own, ...fieldsOf(field, `${path}${inner?.listed ? "[]" : ""}.`, level + 1)]
  })
}

/** The fields that this server does not have: it takes only null there. */
export const notOfferedIn = (schema: Schema): string[] =>
  Object.entries((schema.properties ?? {}) as Record<string, Schema>)
    .filter(([, field]) => field[NOT_OFFERED])
    .map(([name]) => name)

function objectIn(schema: Schema): { schema: Schema; listed: boolean } | undefined {
  if (schema.properties) return { schema, listed: false }
  const inner = (schema.items ?? undefined) as Schema | undefined
  const item = inner && objectIn(inner)
  if (item) return { ...item, listed: true }
  const options = (schema.anyOf ?? []) as Schema[]
  return options.map(objectIn).find(Boolean)
}

/** `string`, `string or null`, `list of object`, `"a" or "b"`. */
export function kindOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((one) => JSON.stringify(one)).join(" or ")
  if (Array.isArray(schema.anyOf)) {
    return [...new Set((schema.anyOf as Schema[]).map(kindOf))].join(" or ")
  }
  if (schema.type === "array") return `list of ${kindOf((schema.items ?? {}) as Schema)}`
  if (schema.format === "date-time") return "time"
  if (Array.isArray(schema.type)) return schema.type.join(" or ")
  return typeof schema.type === "string" ? schema.type : "any"
}

function limitsOf(schema: Schema): string {
  const { minimum, maximum, maxLength, maxItems, maxProperties, default: fallback } = schema
  const range = minimum !== undefined && maximum !== undefined && `${minimum} to ${maximum}.`
  return [
    range || (minimum !== undefined && `From ${minimum}.`),
    maxLength !== undefined && `At most ${maxLength} characters.`,
    maxItems !== undefined && `At most ${maxItems}.`,
    maxProperties !== undefined && `At most ${maxProperties} keys.`,
    fallback !== undefined && `Default \`${JSON.stringify(fallback)}\`.`,
  ]
    .filter(Boolean)
    .join(" ")
}
