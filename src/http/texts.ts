import { Type as t } from "@sinclair/typebox"
import { id } from "../lib/record-fields"
import { SLUG } from "../lib/text"

const MOST_CHARACTERS = 200

export const ONE_LINE = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$"
export const MONTH = "^\\d{4}-(0[1-9]|1[0-2])$"

/** Text of one line that people read: neither empty nor with a control character. */
export const nameText = (maxLength = MOST_CHARACTERS) =>
  t.String({ minLength: 1, maxLength, pattern: ONE_LINE })

export const slugText = () =>
  t.String({ pattern: SLUG, description: "1 to 63 characters: a-z, 0-9 and hyphens." })

export const orNull = <Schema extends ReturnType<typeof t.String>>(schema: Schema) =>
  t.Union([schema, t.Null()])

/** One of a few words. */
export const oneOf = <const Words extends string[]>(...words: Words) =>
  t.Unsafe<Words[number]>(t.Union(words.map((word) => t.Literal(word))))

/** What every deletion answers. */
export const Deleted = t.Object({ id: id(), deleted: t.Literal(true) }, { title: "Deleted" })

export const deleted = (id: string) => ({ data: { id, deleted: true as const } })
