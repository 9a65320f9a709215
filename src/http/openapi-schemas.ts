import type { TSchema } from "@sinclair/typebox"
import { schemas as common, reference } from "./openapi-components"
import { exampleOf } from "./openapi-examples"

type Schema = Record<string, unknown>

/**
 * Schemas as they go over the wire: TypeBox without its symbols. One with a `title` becomes a
 * shared component of that name, and a reference stands in its place.
 */
export class SchemaComponents {
  readonly named: Record<string, Schema> = {}
  readonly #sources = new Map<string, Schema>()

  /** A value that fits a schema as `show` gave it. */
  exampleOf(schema: Schema): unknown {
    return exampleOf(schema, (name) => this.named[name] ?? common()[name] ?? {})
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
