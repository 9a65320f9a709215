import type { TSchema } from "@sinclair/typebox"
import { EXAMPLE_ID, EXAMPLE_TIME } from "../lib/record-fields"
import { reference } from "./openapi-components"

export type Schema = Record<string, unknown>

/**
 * Schemas as they go over the wire: TypeBox without its symbols. One with a `title` becomes a
 * shared component of that name, and a reference stands in its place.
 */
export class SchemaComponents {
  readonly named: Record<string, Schema> = {}
  readonly #sources = new Map<string, Schema>()

  /** A value that fits a schema as `show` gave it. */
  exampleOf(schema: Schema): unknown {
    return exampleOf(schema, (name) => this.named[name] ?? {})
  }

  /** Throws where two different schemas have one name. */
  show(schema: TSchema | Schema): Schema {
    const { title } = schema
    if (typeof title !== "string") return this.#parts(schema)
    const known = this.#sources.get(title)
    if (!known) {
      this.#sources.set(title, schema)
      this.named[title] = this.#parts(schema)
    } else if (known !== schema && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`two schemas are called ${title}`)
    }
    return reference("schemas", title)
  }

  #parts(schema: Schema): Schema {
    const { anyOf, items, properties, patternProperties, ...rest } = schema
    if (Array.isArray(anyOf)) return this.#choice(anyOf as Schema[], rest)
    const values = Object.values((patternProperties ?? {}) as Record<string, Schema>)
    return {
      ...rest,
      ...(items !== undefined && { items: this.show(items as Schema) }),
      ...(properties !== undefined && { properties: this.#fields(properties as object) }),
      ...(values[0] && { additionalProperties: this.show(values[0]) }),
    }
  }

  #fields(properties: object): Schema {
    const shown = Object.entries(properties).map(([name, field]) => [name, this.show(field)])
    return Object.fromEntries(shown)
  }

  /** Words are an `enum`, and what may be null says so in its `type`: that is how people write it. */
  #choice(forms: Schema[], rest: Schema): Schema {
    const others = forms.filter(({ type }) => type !== "null")
    const or_null = others.length < forms.length
    if (others.every((form) => form.const !== undefined)) {
      const words = others.map((form) => form.const)
      const type = others[0]?.type
      return {
        type: or_null ? [type, "null"] : type,
        enum: or_null ? [...words, null] : words,
        ...rest,
      }
    }
    const [only] = others
    if (others.length > 1 || !only) return { anyOf: forms.map((form) => this.show(form)), ...rest }
    const shown = this.show(only)
    if (typeof shown.type !== "string") return { anyOf: [shown, { type: "null" }], ...rest }
    const words = shown.enum as unknown[] | undefined
    return {
      ...shown,
      type: [shown.type, "null"],
      ...(words && { enum: [...words, null] }),
      ...rest,
    }
  }
}

const BY_FORMAT: Record<string, string> = {
  uuid: EXAMPLE_ID,
  "date-time": EXAMPLE_TIME,
  date: EXAMPLE_TIME.slice(0, "2026-11-21".length),
}

/** What is no JSON, by its content type. */
export const TEXTS: Record<string, string> = {
  "text/plain": '_dmarc 3600 IN TXT "v=DMARC1; p=none"\n',
  "text/csv": "id,channel,address,reason\r\n…,email,ann@example.com,bounce\r\n",
  "text/html": "<!doctype html>…",
  "message/rfc822": "From: hello@example.com\r\nTo: ann@example.com\r\n\r\nThank you.\r\n",
  "*/*": "%PDF-1.7 …",
}

/** A value that fits the schema, made of what its fields say. Throws where one says nothing. */
function exampleOf(schema: Schema, named: (name: string) => Schema): unknown {
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
