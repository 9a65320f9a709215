import type { OpenApi, Operation, Parameter, Reference } from "../http/openapi"
import { commonCodes } from "../http/openapi-components"
import type { Schema } from "../http/openapi-schemas"
import { opening, signatures } from "./docs-text"
import { html, Markup, pageHeaders, prose } from "./html"
import { style } from "./styles"

interface Entry {
  method: string
  path: string
  operation: Operation
}

/** The reference as one page: no script, nothing from elsewhere, readable without a network. */
export function docsPage(description: OpenApi): string {
  const entries = entriesOf(description)
  const areas = [...description.tags].sort(serverLast).map(({ name }) => ({
    name,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }))
  const shown: Shown = { answers: [], bodies: [] }
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Belfry ${description.info.version}: API reference</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
${navigation(areas)}
<main>
<h1>Belfry API <small>${description.info.version}</small></h1>
${opening}
${signatures()}
${areas.map(
  ({ name, entries: some }) => html`
<h2 id="${name}">${titleOf(name)}</h2>${some.map((entry) => article(entry, description, shown))}`,
)}
</main>
</body>
</html>
`
  return page.text
}

/** The page, shut off from everything outside. */
export const docsResponse = (page: string): Response => new Response(page, { headers: HEADERS })

/** Otherwise in the order of the table. */
const serverLast = (a: { name: string }, b: { name: string }) =>
  Number(a.name === "server") - Number(b.name === "server")

const STYLE = new Markup(style)

const HEADERS = pageHeaders(style, "'none'")

const entriesOf = ({ paths }: OpenApi): Entry[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )

/** A narrow column breaks a path before its slashes. */
const breakable = (path: string) =>
  path
    .replace(/^\/v1(?=\/)/, "")
    .split(/(?=\/)/)
    .map((part) => html`<wbr>${part}`)

const titleOf = (name: string) => {
  if (name === "api-keys") return "API keys"
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ")
}

interface Area {
  name: string
  entries: Entry[]
}

const navigation = (areas: Area[]) => html`<nav aria-label="Contents">
<a class="home" href="#top">Belfry</a>
<h2>Start</h2>
<ul><li><a href="#first">The first email</a></li><li><a href="#credentials">Authentication</a></li>
<li><a href="#answers">Answers and lists</a></li><li><a href="#repeat">Repeating safely</a></li>
<li><a href="#errors">Errors</a></li>
<li><a href="#signatures">Webhook signatures</a></li></ul>
${areas.map(
  ({ name, entries }) => html`<h2><a href="#${name}">${titleOf(name)}</a></h2>
<ul class="operations">${entries.map(
    ({ method, path, operation }) => html`
<li><a href="#${operation.operationId}"><span class="method ${method}">${method}</span><span>${breakable(path)}</span></a></li>`,
  )}</ul>`,
)}
</nav>`

/** Fields that the page has shown, and where. */
interface ShownFields {
  fields: Field[]
  operation: Operation
  /** Every field stands there, and not only what another answer lacks. */
  is_whole: boolean
}

interface Shown {
  answers: ShownFields[]
  bodies: ShownFields[]
}

function article({ method, path, operation }: Entry, description: OpenApi, shown: Shown): Markup {
  const { operationId, summary, parameters } = operation
  const all = parameters.flatMap((one) => resolved(one, description))
  const is_list = all.some(({ name }) => name === "per_page")
  const is_repeatable = JSON.stringify(parameters).includes("IdempotencyKey")
  const known = is_list ? all.filter(({ name }) => !OF_LISTS.includes(name)) : all
  const tables = (["path", "query", "header"] as const).map((place) => {
    const fields = parameterTable(known.filter((one) => one.in === place))
    return fields && html`<h4>${PLACES[place]}</h4>${fields}`
  })
  return html`
<article id="${operationId}">
<h3>${summary}</h3>
<div class="route"><span class="method ${method}">${method}</span><code>${path}</code></div>
<p>${prose(operation.description ?? "")}</p>
<p class="needs">${needsOf(operation)}${is_list && html` <a href="#answers">Like every list</a>, it takes ${words(OF_LISTS)}.`}${is_repeatable && REPEATABLE}${failuresOf(operation)}</p>
<details><summary>Request to copy</summary><pre><code>${operation["x-codeSamples"][0]?.source ?? ""}</code></pre></details>
${tables}${bodyPart(operation, description, shown.bodies)}${answerPart(operation, description, shown.answers)}
</article>`
}

const PLACES = { path: "In the path", query: "In the query", header: "Headers" }

/** Those that any request may carry are told once, above. */
const TOLD_ABOVE = ["X-Request-Id", "X-Strict", "X-Account-Id", "X-Project-Id", "Idempotency-Key"]

/** So are those that every list takes. */
const OF_LISTS = ["page", "per_page", "cursor", "limit", "after", "before"]

const REPEATABLE = html` It accepts <a href="#repeat"><code>Idempotency-Key</code></a>.`

const words = (list: readonly string[]) =>
  list.map((one, at) => html`${at > 0 && ", "}<code>${one}</code>`)

/** The codes that are not those of any operation. */
function failuresOf({ responses }: Operation): Markup | undefined {
  const own = Object.values(responses as Record<string, { "x-error-codes"?: string[] }>)
  const codes = own.flatMap((response) => response["x-error-codes"] ?? [])
  const special = codes.filter((code) => !commonCodes.includes(code))
  if (special.length === 0) return undefined
  return html` It may also fail with ${words(special)}; see <a href="#errors">Errors</a>.`
}

function resolved(one: Parameter | Reference, { components }: OpenApi): Parameter[] {
  const known = "$ref" in one ? components.parameters[one.$ref.split("/").at(-1) ?? ""] : one
  return known && !TOLD_ABOVE.includes(known.name) ? [known] : []
}

function needsOf(operation: Operation): Markup {
  const scope = operation["x-required-scope"]
  if (operation.security.length === 0) return html`Needs no credential.`
  const scopes = scope.split("|").map((one, at) => html`${at > 0 && " or "}<code>${one}</code>`)
  return html`Needs ${scope === "-" ? "a credential" : html`the scope ${scopes}`}.`
}

/** A body of more fields than these is not shown twice. */
const FEW_FIELDS = 5

function bodyPart(
  operation: Operation,
  description: OpenApi,
  shown: ShownFields[],
): Markup | undefined {
  const schema = operation.requestBody?.content["application/json"]?.schema
  if (!schema) return undefined
  const fields = fieldsOf(withoutReferences(schema, description), "", 0)
  const same = shown.find((one) => isSame(one.fields, fields))
  if (same) return html`<h4>Body</h4>${sameAs(same.operation)}`
  if (fields.length > FEW_FIELDS) shown.push({ fields, operation, is_whole: true })
  return html`<h4>Body</h4>${fields.length > 0 && table(fields, true)}`
}

const sameAs = ({ operationId, summary }: Operation) =>
  html`<p>The fields are the same as in: <a href="#${operationId}">${summary}</a></p>`

function answerPart(operation: Operation, description: OpenApi, shown: ShownFields[]): Markup[] {
  const { responses } = operation
  const successes = Object.entries(responses).filter(([status]) => /^[123]/.test(status))
  return successes.map(([status, response]) =>
    answer(status, withoutReferences(response as Schema, description), operation, shown),
  )
}

/** Where a schema is only named, the schema itself. */
function withoutReferences(value: Schema, description: OpenApi): Schema {
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

interface Answered {
  content?: Record<string, { schema: Schema }>
}

function answer(
  status: string,
  { content = {} }: Answered,
  operation: Operation,
  shown: ShownFields[],
): Markup {
  const [type = "", { schema } = { schema: {} }] = Object.entries(content)[0] ?? []
  const properties = (schema.properties ?? {}) as Record<string, Schema>
  const data = properties.meta ? (properties.data ?? {}) : schema
  const fields = fieldsOf(data, "", 0)
  const label = html`${status} ${type === "application/json" ? shapeOf(data, properties) : type}`
  if (fields.length === 0) return html`<h4>Answer: ${label}</h4>`
  // Most records are the answer of several routes; one table of each keeps the page small.
  const others = shown.filter((one) => one.operation !== operation && isWithin(one.fields, fields))
  const same = others.find((one) => isSame(one.fields, fields))
  const part = same ?? others.find(({ is_whole }) => is_whole)
  if (!same) shown.push({ fields, operation, is_whole: !part })
  if (!part)
    return html`<details><summary>Answer: ${label}</summary>${table(fields, false)}</details>`
  if (same) return html`<h4>Answer: ${label}</h4>${sameAs(same.operation)}`
  const { operationId, summary } = part.operation
  const place = html`<a href="#${operationId}">${summary}</a>`
  const known = new Set(part.fields.map(textOf))
  const more = fields.filter((field) => !known.has(textOf(field)))
  return html`<details><summary>Answer: ${label}</summary><p>The fields are those of: ${place}. And
these:</p>${table(more, false)}</details>`
}

const textOf = (field: Field) => JSON.stringify(field)

const isSame = (some: Field[], others: Field[]) =>
  some.length === others.length && isWithin(some, others)

/** Whether a record has every field of a part, and few beside them. */
function isWithin(part: Field[], fields: Field[]): boolean {
  if (part.length < fields.length / 2) return false
  const all = new Set(fields.map(textOf))
  return part.every((field) => all.has(textOf(field)))
}

const shapeOf = (data: Schema, { meta }: Record<string, Schema>) =>
  html`${meta && html`<code>data</code>: `}${kindOf(data)}`

interface Field {
  path: string
  kind: string
  required: boolean
  about: string
}

const MOST_LEVELS = 3

/** A table of parameters. */
const parameterTable = (list: ParameterLike[]): Markup | undefined =>
  list.length === 0 ? undefined : table(list.map(asField), true)

interface ParameterLike {
  name: string
  required: boolean
  description?: string
  schema: Schema
}

const asField = ({ name, required, description = "", schema }: ParameterLike): Field => ({
  path: name,
  kind: kindOf(schema),
  required,
  about: [description, limitsOf(schema)].filter(Boolean).join(" "),
})

const table = (
  fields: Field[],
  withNeed: boolean,
) => html`<div class="fields" role="table">${fields.map(
  ({ path, kind, required, about }) => html`
<div role="row"><span role="cell"><code>${path}</code>${
    withNeed && required && html` <b>required</b>`
  }</span><span role="cell" class="kind">${kind}</span><span role="cell">${prose(about)}</span></div>`,
)}
</div>`

/** Of an alternative, the object form is shown: the others have no fields. */
function fieldsOf(schema: Schema, prefix: string, level: number): Field[] {
  const shape = objectIn(schema)
  if (!shape || level >= MOST_LEVELS) return []
  const needed = (shape.schema.required ?? []) as string[]
  const properties = shape.schema.properties as Record<string, Schema>
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = prefix + name
    const about = [String(field.description ?? ""), limitsOf(field)].filter(Boolean).join(" ")
    const own = { path, kind: kindOf(field), required: needed.includes(name), about }
    const inner = objectIn(field)
    return [own, ...fieldsOf(field, `${path}${inner?.listed ? "[]" : ""}.`, level + 1)]
  })
}

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
  const { minimum, maximum, maxLength, maxItems, default: fallback } = schema
  const range = minimum !== undefined && maximum !== undefined && `${minimum} to ${maximum}.`
  return [
    range || (minimum !== undefined && `From ${minimum}.`),
    maxLength !== undefined && `At most ${maxLength} characters.`,
    maxItems !== undefined && `At most ${maxItems}.`,
    fallback !== undefined && `Default \`${JSON.stringify(fallback)}\`.`,
  ]
    .filter(Boolean)
    .join(" ")
}
