import { type TSchema, Type as t } from "@sinclair/typebox"
import type { EventField } from "../events/event-fields"
import { API_VERSION, builtEventTypes, type EventType } from "../events/registry"
import { EXAMPLE_ID, EXAMPLE_TIME, time } from "../lib/record-fields"
import { header, reference } from "./openapi-components"

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
  "text/xml": "<Response/>",
  "text/javascript": "export class InboxClient extends EventTarget {…",
  "text/event-stream":
    'event: token\ndata: {"text":"Hello"}\n\nevent: complete\ndata: {…}\n\nevent: done\ndata: {}\n\n',
  "image/gif": "GIF89a…",
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

/** What webhooks are sent: each type of event, with the schema of its envelope. */
export function eventDescriptions() {
  const schemas: Record<string, Schema> = {}
  const known = new Map<string, string>()
  /** Types of one kind have the same data: the first gives it a name. */
  const dataOf = (type: EventType): object => {
    const schema = dataSchema(type.fields)
    const text = JSON.stringify(schema)
    const group = `${pascal(type.type.split(".", 1)[0] ?? "")}EventData`
    const name = known.get(text) ?? (group in schemas ? `${pascal(type.type)}EventData` : group)
    known.set(text, name)
    schemas[name] = schema
    return reference("schemas", name)
  }
  const webhooks: Record<string, object> = {}
  for (const type of builtEventTypes) {
    const name = `${pascal(type.type)}Event`
    schemas[name] = envelopeSchema(type, dataOf(type))
    webhooks[type.type] = { post: operationOf(type, reference("schemas", name)) }
  }
  return { webhooks, schemas }
}

const ABOUT_SIGNATURES =
  "`v1,` and the signature. See the section about webhook signatures in /docs."

const pascal = (type: string) =>
  type
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")

const envelopeSchema = ({ type, description }: EventType, data: object): Schema =>
  t.Object(
    {
      id: t.String({ description: ABOUT_ID }),
      type: t.Literal(type),
      api_version: t.Literal(API_VERSION),
      created_at: time("The time at which the event was recorded."),
      data: t.Unsafe(data),
    },
    { description },
  )

const ABOUT_ID =
  "The id of the event. It is the same on every attempt, so use it to find repetitions."

function dataSchema(fields: EventField[]): Schema {
  const own = fields.filter(({ name }) => !name.includes("."))
  const properties = own.map((field) => [field.name, fieldSchema(field, fields)])
  return {
    type: "object",
    properties: { ...Object.fromEntries(properties), simulated: SIMULATED },
    required: own.map(({ name }) => name),
  }
}

const SIMULATED = {
  type: "boolean",
  const: true,
  description: "Present and true only in simulated events.",
}

/** A member that may be null may also be absent: an object tells what applies. */
function fieldSchema(field: EventField, all: EventField[]): Schema {
  const { name, type, nullable, description } = field
  const inner = all
    .filter((one) => one.name.startsWith(`${name}.`))
    .map((one) => ({ ...one, name: one.name.slice(name.length + 1) }))
  const properties = inner.map((one) => [one.name, fieldSchema(one, [])])
  const required = inner.filter((one) => !one.nullable).map((one) => one.name)
  return {
    type: nullable ? [type, "null"] : type,
    description,
    ...(type === "array" && { items: {} }),
    ...(inner.length > 0 && { properties: Object.fromEntries(properties) }),
    ...(required.length > 0 && { required }),
    ...(type === "object" && inner.length === 0 && { additionalProperties: true }),
  }
}

const text = { type: "string" }
const HEADERS = [
  header("webhook-id", text, "The id of the event.", true),
  header("webhook-timestamp", text, "The time of this attempt, in Unix seconds.", true),
  header("webhook-signature", text, ABOUT_SIGNATURES, true),
]

const operationOf = ({ type, description, example }: EventType, schema: object) => ({
  operationId: `on${pascal(type)}`,
  summary: description,
  description: `Sent to endpoints that ask for \`${type}\`, \`${type.split(".", 1)[0]}.*\` or \`*\`.`,
  tags: ["webhooks"],
  security: [],
  parameters: HEADERS,
  requestBody: { required: true, content: { "application/json": { schema, example } } },
  responses: {
    "2XX": {
      description:
        "The receiver accepted the event. After any other answer, the delivery is tried again.",
    },
  },
})
