import { type StringOptions, type TSchema, type TString, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { isMailbox, notOneAddress } from "../lib/address"
import { isLocale, isTimeZone } from "../lib/locale"
import { id, text } from "../lib/record-fields"
import { isLonger, SLUG } from "../lib/text"
import { isExactlyCarried } from "./json"

const MOST_CHARACTERS = 200

export const ONE_LINE = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$"
/** Below the year 9000, so that the month after it also has a year of four digits. */
export const MONTH = "^[0-8]\\d{3}-(0[1-9]|1[0-2])$"

/** Text of one line that people read: neither empty nor with a control character. */
export const nameText = (maxLength = MOST_CHARACTERS) =>
  t.String({ minLength: 1, maxLength, pattern: ONE_LINE })

/** A text that may be left out. */
export const optionalText = (options: StringOptions = {}) => t.Optional(t.String(options))

export const slugText = () =>
  t.String({ pattern: SLUG, description: "1 to 63 characters: a-z, 0-9 and hyphens." })

/** An object without other fields than these. */
export const closedObject: typeof t.Object = (fields, more) =>
  t.Object(fields, { ...more, additionalProperties: false })

export const orNull = <Schema extends TSchema>(schema: Schema) => t.Union([schema, t.Null()])

/** A code and a sentence for a text that is wrong. */
export type TextRule = (text: string) => readonly [code: string, message: string] | undefined

export const RULE = Symbol("rule")

/** A text with a rule that JSON Schema cannot say. */
export const ruledText = (options: Parameters<typeof t.String>[0], rule: TextRule) =>
  ({ ...t.String(options), [RULE]: rule }) as TString

/** One mail address. */
export const mailboxText = (options: Parameters<typeof t.String>[0] = {}) =>
  ruledText(options, (text) =>
    isMailbox(text) ? undefined : ["invalid_email", notOneAddress(text)],
  )

const NO_LOCALE = "The value must be a language tag of BCP 47, such as `en` or `de-AT`."
const NO_ZONE = "The value must be a time zone, such as `Europe/Vienna`."

export const localeText = () =>
  ruledText(
    { maxLength: 35, description: "A language tag of BCP 47, such as `en` or `de-AT`." },
    (text) => (isLocale(text) ? undefined : ["invalid", NO_LOCALE]),
  )

export const timeZoneText = () =>
  ruledText({ maxLength: 64, description: "A time zone, such as `Europe/Vienna`." }, (text) =>
    isTimeZone(text) ? undefined : ["invalid", NO_ZONE],
  )

/** One of a few words. */
export const oneOf = <const Words extends string[]>(...words: Words) =>
  t.Unsafe<Words[number]>(t.Union(words.map((word) => t.Literal(word))))

export const ALIAS_OF = "x-alias-of"

export const NOT_OFFERED = "x-not-offered"

/** A second name of a field, which clients of another service use. */
export const aliasOf = <Schema extends TSchema>(name: string, schema: Schema) =>
  t.Optional({ ...schema, description: `Another name of \`${name}\`.`, [ALIAS_OF]: name } as Schema)

/** A field that would change the meaning, and that nothing here acts upon: only null passes. */
export const notOffered = () =>
  t.Optional(t.Null({ description: "Not available on this server.", [NOT_OFFERED]: true }))

/** What every deletion answers. */
export const Deleted = t.Object({ id: id(), deleted: t.Literal(true) }, { title: "Deleted" })

/** Tells of a field that is not known, and almost one that is. */
export const FieldWarning = t.Object(
  {
    code: t.Literal("unknown_field"),
    message: text("There is no field subjct, so it was ignored. Did you mean subject?"),
    field: text("subjct", "The path of the field, or the name of the parameter."),
  },
  { title: "FieldWarning" },
)

export const deleted = (id: string) => ({ data: { id, deleted: true as const } })

const MOST_KEYS = 50
const LONGEST_KEY = 64
const MOST_BYTES = 16_384

/** What the caller gives along. `checkMetadata` has its limits. */
export const metadataObject = (description: string) =>
  t.Record(t.String(), t.Unknown(), {
    description,
    maxProperties: MOST_KEYS,
    propertyNames: { maxLength: LONGEST_KEY },
  })

/** Of an object in which one of two fields may stand. */
export const notBoth = (one: string, other: string) => ({
  not: { properties: { [one]: {}, [other]: {} }, required: [one, other] },
})

/** Problems with what the caller gives along (contract 00, section 2). */
export function checkMetadata(metadata: object, problems: Problems): void {
  const keys = Object.keys(metadata)
  if (keys.length > MOST_KEYS)
    problems.add("metadata", "too_many", `The metadata must have at most ${MOST_KEYS} keys.`)
  if (keys.some((key) => isLonger(key, LONGEST_KEY))) {
    problems.add(
      "metadata",
      "invalid",
      `A key of the metadata must have at most ${LONGEST_KEY} characters.`,
    )
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > MOST_BYTES) {
    problems.add(
      "metadata",
      "too_large",
      `The metadata must have at most ${MOST_BYTES} bytes as JSON.`,
    )
  }
  for (const [key, value] of Object.entries(metadata)) {
    if (isExactlyCarried(value)) continue
    const text = "JSON cannot carry this number exactly. Send it as a string."
    problems.add(`metadata.${key}`, "invalid", text)
  }
}
