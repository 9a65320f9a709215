export type FieldType = "string" | "integer" | "number" | "boolean" | "object" | "array"

/** One member of an event's data. A dotted name is a member of the object in front of the dot. */
export interface Field {
  name: string
  type: FieldType
  nullable: boolean
  description: string
}

/** A field with the value that it has in the example. */
export interface Shown extends Field {
  example: unknown
}

/** Of every example, so that the same question always has the same answer. */
export const EXAMPLE_TIME = "2026-02-01T10:30:00.000Z"

export const EXAMPLE_ID = "0199a1c2-0000-7000-8000-0000000000"

const typeOf = (example: unknown): FieldType => {
  if (Array.isArray(example)) return "array"
  if (typeof example === "number") return Number.isInteger(example) ? "integer" : "number"
  return typeof example as FieldType
}

/** A field that is never null; its type is that of the example. */
export const always = (name: string, example: unknown, description: string): Shown => ({
  name,
  type: typeOf(example),
  nullable: false,
  description,
  example,
})

/** A field that may be null, and is in the example unless the type says otherwise. */
export const maybe = (
  name: string,
  type: FieldType,
  description: string,
  example: unknown = null,
): Shown => ({ name, type, nullable: true, description, example })

/** The moment of the fact itself; `created_at` of the envelope is when it was written down. */
export const timestamp = always(
  "timestamp",
  EXAMPLE_TIME,
  "The time of the event itself, ISO 8601.",
)

export const metadata = always(
  "metadata",
  { order: "1042" },
  "The metadata that the caller gave, unchanged.",
)

/** The data of an example: every field that stands by itself. */
export const dataOf = (fields: readonly Shown[]): Record<string, unknown> =>
  Object.fromEntries(
    fields.filter(({ name }) => !name.includes(".")).map(({ name, example }) => [name, example]),
  )

/** As readers of the registry see it. */
export const listed = ({ name, type, nullable, description }: Shown): Field => ({
  name,
  type,
  nullable,
  description,
})
