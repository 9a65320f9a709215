import type { Schema } from "../http/openapi-schemas"
import { html, type Markup, prose } from "./html"

interface Field {
  path: string
  kind: string
  required: boolean
  about: string
}

const MOST_LEVELS = 3

/** A table of every field below a schema, nested ones with their dotted path. */
export function fieldTable(schema: Schema, withNeed: boolean): Markup | undefined {
  const fields = fieldsOf(schema, "", 0)
  return fields.length === 0 ? undefined : table(fields, withNeed)
}

/** The same table for parameters. */
export const parameterTable = (list: ParameterLike[]): Markup | undefined =>
  list.length === 0 ? undefined : table(list.map(asField), true)

export interface ParameterLike {
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
