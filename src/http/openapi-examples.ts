import { EXAMPLE_ID, EXAMPLE_TIME } from "../lib/record-fields"

type Schema = Record<string, unknown>

const BY_FORMAT: Record<string, string> = {
  uuid: EXAMPLE_ID,
  "date-time": EXAMPLE_TIME,
  date: EXAMPLE_TIME.slice(0, "2026-11-21".length),
}

/** What is no JSON, by its content type. */
export const TEXTS: Record<string, string> = {
  "text/plain": '_dmarc 3600 IN TXT "v=DMARC1; p=none"\n',
  "text/html": "<!doctype html>…",
  "message/rfc822": "From: hello@example.com\r\nTo: ann@example.com\r\n\r\nThank you.\r\n",
  "*/*": "%PDF-1.7 …",
}

/** A value that fits the schema, made of what its fields say. Throws where one says nothing. */
export function exampleOf(schema: Schema, named: (name: string) => Schema): unknown {
  const { $ref, examples, anyOf, type, format, properties, items } = schema
  if (typeof $ref === "string") return exampleOf(named($ref.split("/").at(-1) ?? ""), named)
  const [said] = (examples as unknown[] | undefined) ?? []
  if (said !== undefined) return said
  for (const one of [schema.default, schema.const]) if (one !== undefined) return one
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0] as Schema, named)
  if (properties) {
    const fields = Object.entries(properties as Record<string, Schema>)
    const needed = (schema.required ?? []) as string[]
    const shown = fields.filter(([name]) => needed.includes(name))
    return Object.fromEntries(shown.map(([name, field]) => [name, exampleOf(field, named)]))
  }
  if (items) return [exampleOf(items as Schema, named)]
  if (type === "boolean") return false
  const known = BY_FORMAT[format as string]
  if (known === undefined) throw new Error(`no example: ${JSON.stringify(schema)}`)
  return known
}
