import { NOT_OFFERED } from "../../http/field-schemas"
import type { Schema } from "../../http/openapi-schemas"
import { html, type Markup, prose } from "../html"

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
