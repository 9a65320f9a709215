/**
 * Fields of records, as answers have them. Each carries a value that could stand there, of which
 * the examples of the reference are made. What comes in is read by the rules of its route instead.
 */
import { type Static, type TObject, type TSchema, Type as t } from "@sinclair/typebox"

const about = (description: string | undefined) =>
  description === undefined ? {} : { description }

export const EXAMPLE_ID = "0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a"
export const EXAMPLE_TIME = "2026-11-21T10:30:00.000Z"

/** An id of ours. */
export const id = (description?: string) => t.String({ format: "uuid", ...about(description) })

/** An id of an event. */
export const eventId = (description?: string) =>
  t.String({
    pattern: "^evt_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    examples: [`evt_${EXAMPLE_ID}`],
    ...about(description),
  })

/** ISO 8601 in UTC, with milliseconds. */
export const time = (description?: string) =>
  t.String({ format: "date-time", ...about(description) })

export const text = (example: string, description?: string) =>
  t.String({ examples: [example], ...about(description) })

export const count = (example: number, description?: string) =>
  t.Integer({ examples: [example], ...about(description) })

export const flag = (example: boolean, description?: string) =>
  t.Boolean({ examples: [example], ...about(description) })

/** One of a few words; the first one is the example. */
export const word = <const Words extends readonly string[]>(words: Words, description?: string) =>
  t.Unsafe<Words[number]>(
    t.Union(
      words.map((one) => t.Literal(one)),
      about(description),
    ),
  )

/** May be null. */
export const maybe = <Schema extends TSchema>(schema: Schema) => t.Union([schema, t.Null()])

/** May be null, and is so in the example. */
export const rarely = <Schema extends TSchema>(schema: Schema) =>
  t.Union([schema, t.Null()], { examples: [null] })

/** An answer: of a row, the fields that the schema of the answer names. */
export const fieldsOf = <Schema extends TObject>(
  { properties }: Schema,
  row: Static<Schema>,
): Static<Schema> =>
  Object.fromEntries(
    Object.keys(properties).map((name) => [name, row[name as keyof Static<Schema>]]),
  ) as Static<Schema>

/** Any fields, by name. */
export const anything = (example: object, description?: string) =>
  t.Record(t.String(), t.Unknown(), { examples: [example], ...about(description) })
