import { readFileSync } from "node:fs"
import { join } from "node:path"
import { PROVIDERS } from "../../src/channels"
import type { OpenApi } from "../../src/http/openapi"
import { SCOPES } from "../../src/identity/scopes"
import type { ProviderDescriptor } from "../../src/providers/provider"
import { root } from "./migrations"
import { providerGuide } from "./provider-guide"

/** A schema of JSON, as the document has it. */
interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  default?: unknown
  description?: string
  "x-alias-of"?: string
  "x-not-offered"?: boolean
}

interface Parameter {
  name: string
  in: string
  required: boolean
  description?: string
  schema: Schema
}

interface Operation {
  summary: string
  parameters: (Parameter | { $ref: string })[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

/** The files that `bun run generate` writes. */
export const CLIENT_FILES = [
  "src/client/components.ts",
  "src/client/operations.ts",
  "src/client/auth-operations.ts",
  "src/client/provider-forms.ts",
  "docs/providers.md",
] as const

/** The text of each of them: one line an operation, one line a component. */
export function clientSources(document: OpenApi): Record<(typeof CLIENT_FILES)[number], string> {
  const schemas = document.components.schemas as Record<string, Schema>
  const rowsOf = (is_wanted: (path: string) => boolean) =>
    Object.entries(document.paths)
      .filter(([path]) => is_wanted(path))
      .flatMap(([path, methods]) =>
        Object.entries(methods).flatMap(([method, operation]) =>
          rowOf(`${method.toUpperCase()} ${path}`, operation as unknown as Operation, schemas),
        ),
      )
      .join("")
  const auth = `${AUTH_HEAD}${rowsOf((path) => path.startsWith(AUTH))}}\n`
  const others = rowsOf((path) => !path.startsWith(AUTH))
  const operations = `${OPERATIONS_HEAD}${others}  ...authOperations,\n}\n${SCOPE_LINES}`
  const names = [...reached(operations + auth, schemas)].sort()
  const lines = names.map((name) => `  ${name}: ${typeOf(schemas[name] ?? {}, "Components")}\n`)
  return {
    "src/client/components.ts": `${COMPONENTS_HEAD}${lines.join("")}}\n`,
    "src/client/operations.ts": operations,
    "src/client/auth-operations.ts": auth,
    "src/client/provider-forms.ts": providerForms(),
    "docs/providers.md": providerGuide(readFileSync(join(root, "docs/providers.md"), "utf8")),
  }
}

/** What the credentials and the settings of each provider are, from its descriptor. */
function providerForms(): string {
  const rows = PROVIDERS.map(({ name, channel, about, example, credentials, settings }) => {
    const shown = example === undefined ? {} : { example }
    const own = settings && { settings: formOf(settings) }
    return `  ${literalOf({ name, channel, about, ...shown, fields: formOf(credentials), ...own })},\n`
  })
  return `${FORMS_HEAD}${rows.join("")}]\n`
}

const formOf = (fields: ProviderDescriptor["credentials"]) =>
  Object.fromEntries(
    Object.entries(fields).map(([field, { schema, is_public: _, ...rest }]) => {
      const type = ["integer", "object", "array"].includes(schema.type) ? schema.type : "string"
      return [field, { type, ...rest }]
    }),
  )

const FORMS_HEAD = `import type { ProviderForm } from "./provider-form"

/** Written by \`bun run generate\`: what the credentials and the settings of each provider are. */
export const providerForms: readonly ProviderForm[] = [
`

const COMPONENTS_HEAD = `/** Written by \`bun run generate\`: the records of the API, by their names in the OpenAPI document. */
export interface Components {
`

const AUTH = "/v1/auth/"

const AUTH_HEAD = `import type { Components as C } from "./components"
import { operation, type PageParams } from "../../src/client/operation"

/** Written by \`bun run generate\`: the operations about end users that give data. */
export const authOperations = {
`

const OPERATIONS_HEAD = `import { authOperations } from "./auth-operations"
import type { Components as C } from "./components"
import { operation, type PageParams } from "../../src/client/operation"

/** Written by \`bun run generate\`: every operation of the API that gives data. */
export const operations = {
`

const SCOPE_LINES = `
/** Every scope that an API key may have. */
export const scopes = ${literalOf(SCOPES)} as const
`

/** The components that the operations name, and those that these name. */
function reached(text: string, schemas: Record<string, Schema>): Set<string> {
  const found = new Set<string>()
  const visit = (source: string, pattern: RegExp) => {
    for (const [, name = ""] of source.matchAll(pattern)) {
      if (found.has(name)) continue
      found.add(name)
      visit(typeOf(schemas[name] ?? {}, "Components"), /Components\["(\w+)"\]/g)
    }
  }
  visit(text, /\bC\["(\w+)"\]/g)
  return found
}

const PAGING = ["page", "per_page", "limit", "cursor", "after", "before"]

/** Pages for people and connections are no operations of a client. */
function rowOf(name: string, operation: Operation, schemas: Record<string, Schema>): string[] {
  const content = operation.responses["200"]?.content ?? operation.responses["201"]?.content
  const [produces, answer] = Object.entries(content ?? {})[0] ?? []
  if (!produces || !answer || produces === "text/html") return []
  const all = operation.parameters.filter((one): one is Parameter => "in" in one)
  const asked = all.filter((one) => one.in === "query")
  const paged = asked.some((one) => one.name === "page")
  const query = asked.filter((one) => !paged || !PAGING.includes(one.name))
  const body = operation.requestBody?.content["application/json"]?.schema
  const is_json = produces === "application/json"
  const types = {
    query: queryType(query, paged),
    body: body && typeOf(body),
    answer: is_json ? typeOf(answer.schema) : "Uint8Array",
  }
  const data = dataOf(answer.schema)
  const changes = !name.startsWith("GET ")
  const row = {
    summary: operation.summary,
    ...(query.length > 0 && {
      query: Object.fromEntries(
        query.map((one) => [one.name, fieldOf(one.schema, one.required, one.description)]),
      ),
    }),
    ...(body?.type === "object" && { body: fieldsOf(body) }), // of any names: no fields
    ...data,
    ...(changes && fieldNames(answer.schema, schemas)),
    ...(paged && { paged: true }),
    ...(operation.parameters.some(
      (one) => "$ref" in one && one.$ref.endsWith("/IdempotencyKey"),
    ) && { idempotent: true }),
    ...(!is_json && { produces }),
  }
  const shown = Object.entries(types).flatMap(([key, type]) => (type ? `${key}: ${type}` : []))
  return [`  ${JSON.stringify(name)}: operation<{ ${shown.join("; ")} }>(${literalOf(row)}),\n`]
}

function dataOf({ properties }: Schema): { data?: string; many?: true } {
  const data = properties?.data
  const one = data?.items ?? data
  const name = one?.$ref?.split("/").at(-1)
  return { ...(name && { data: name }), ...(data?.type === "array" && { many: true }) }
}

/** The names of what a change answers: `--json=fields` is checked by them before the change. */
function fieldNames({ properties }: Schema, schemas: Record<string, Schema>) {
  const { $ref, ...inline } = properties?.data ?? {}
  const data = $ref ? schemas[$ref.split("/").at(-1) ?? ""] : inline
  return data?.properties && { fields: Object.keys(data.properties).join(" ") }
}

function queryType(query: Parameter[], paged: boolean): string | undefined {
  const fields = query.map(
    ({ name, required, schema }) => `${key(name)}${required ? "" : "?"}: ${typeOf(schema)}`,
  )
  const own = fields.length > 0 ? `{ ${fields.join("; ")} }` : undefined
  if (!paged) return own
  return own ? `PageParams & ${own}` : "PageParams"
}

/** Second names of fields, and fields that nothing acts upon, are left out. */
const offered = ({ properties = {} }: Schema) =>
  Object.entries(properties).filter(([, field]) => !field["x-alias-of"] && !field["x-not-offered"])

function fieldsOf(schema: Schema): Record<string, object> {
  const needed = schema.required ?? []
  const fields = offered(schema).map(([name, field]) => [
    name,
    fieldOf(field, needed.includes(name), field.description),
  ])
  return Object.fromEntries(fields)
}

function fieldOf(schema: Schema, required: boolean, description: string | undefined) {
  const words = (schema.enum ?? schema.items?.enum)?.filter((word) => word !== null)
  return {
    type: kindOf(schema),
    ...(schema.items && { items: kindOf(schema.items) }),
    ...(words && { enum: words }),
    ...(required && { required }),
    ...(isNullable(schema) && { nullable: true }),
    ...(schema.default !== undefined && { default: schema.default }),
    ...(description && { description }),
  }
}

const kindsOf = ({ type }: Schema) => [type ?? []].flat()

const isNullable = (schema: Schema): boolean =>
  kindsOf(schema).includes("null") || (schema.anyOf ?? []).some(isNullable)

function kindOf(schema: Schema): string {
  const kinds = kindsOf(schema).filter((kind) => kind !== "null")
  return kinds.length === 1 ? (kinds[0] ?? "any") : "any"
}

/** More words than these, such as the codes of errors, are a text. */
const MOST_WORDS = 30

/** A schema as a type of TypeScript, in one line. */
function typeOf(schema: Schema, components = "C"): string {
  const { $ref, anyOf, items, additionalProperties } = schema
  const inner = (one: Schema) => typeOf(one, components)
  if ($ref) return `${components}["${$ref.split("/").at(-1)}"]`
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) {
    const words = schema.enum.map((word) => JSON.stringify(word))
    return words.length > MOST_WORDS ? "string" : words.join(" | ")
  }
  if (anyOf) return [...new Set(anyOf.map(inner))].join(" | ")
  const kinds = kindsOf(schema).map((kind) => {
    if (kind === "array")
      return items ? `(${inner(items)})[]`.replace(/^\(([\w"[\]]+)\)/, "$1") : "unknown[]"
    if (kind !== "object") return kind === "integer" ? "number" : kind
    if (schema.properties && offered(schema).length > 0) return objectType(schema, components)
    return `Record<string, ${typeof additionalProperties === "object" ? inner(additionalProperties) : "unknown"}>`
  })
  return kinds.join(" | ") || "unknown"
}

function objectType(schema: Schema, components: string): string {
  const needed = schema.required ?? []
  const fields = offered(schema).map(
    ([name, field]) =>
      `${key(name)}${needed.includes(name) ? "" : "?"}: ${typeOf(field, components)}`,
  )
  return `{ ${fields.join("; ")} }`
}

const key = (name: string) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name))

/** A value as TypeScript writes it, in one line. */
function literalOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literalOf).join(", ")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([name, one]) => `${key(name)}: ${literalOf(one)}`)
  return `{ ${fields.join(", ")} }`
}
