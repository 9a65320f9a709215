import { Type as t } from "@sinclair/typebox"
import type { EventField } from "../events/event-fields"
import { API_VERSION, type EventType, eventTypes } from "../events/registry"
import { time } from "../lib/record-fields"
import { header, reference } from "./openapi-components"
import type { Schema } from "./openapi-schemas"

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
  for (const type of eventTypes) {
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
