import { Kind, type TSchema } from "@sinclair/typebox"
import type { ValueError } from "@sinclair/typebox/compiler"
import { ValueErrorType } from "@sinclair/typebox/errors"
import { countCharacters, isLonger, SLUG } from "../lib/text"
import { MONTH, ONE_LINE } from "./texts"

/** A string whose bounds are code points (JSON Schema, 6.3); TypeBox itself counts UTF-16 units. */
export const COUNTED = "CountedString"

/** What is wrong with a value, and what it must be: one sentence for people. */
export function wordsFor({ type, schema, value, message }: ValueError): string {
  if (type === ValueErrorType.ObjectAdditionalProperties) return "There is no such field."
  const must = schema[Kind] === COUNTED ? textRule(schema, value) : RULES[type]?.(schema)
  return must ? `The value must ${must}.` : `${message}.`
}

const bounds = ({ minimum, maximum }: TSchema) => {
  if (minimum === undefined) return `be at most ${maximum}`
  return maximum === undefined ? `be at least ${minimum}` : `be from ${minimum} to ${maximum}`
}

const items = (count: number) => (count === 1 ? "1 item" : `${count} items`)

const be = (schema: TSchema) => `be ${kindOf(schema)}`

/** What TypeBox finds, as the end of "The value must …"; its own words serve for the rest. */
const RULES: Partial<Record<ValueErrorType, (schema: TSchema) => string>> = {
  [ValueErrorType.Array]: be,
  [ValueErrorType.Boolean]: be,
  [ValueErrorType.Integer]: be,
  [ValueErrorType.Literal]: be,
  [ValueErrorType.Null]: be,
  [ValueErrorType.Number]: be,
  [ValueErrorType.Object]: be,
  [ValueErrorType.String]: be,
  [ValueErrorType.Union]: ({ anyOf }) => be({ anyOf } as unknown as TSchema),
  [ValueErrorType.IntegerMinimum]: bounds,
  [ValueErrorType.IntegerMaximum]: bounds,
  [ValueErrorType.NumberMinimum]: bounds,
  [ValueErrorType.NumberMaximum]: bounds,
  [ValueErrorType.ArrayMinItems]: ({ minItems }) => `have at least ${items(minItems)}`,
  [ValueErrorType.ArrayMaxItems]: ({ maxItems }) => `have at most ${items(maxItems)}`,
  [ValueErrorType.StringPattern]: patternRule,
}

const KINDS: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  integer: "a whole number",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a string",
}

/** `a string`, `a string or null`, `one of held, none`. */
function kindOf(schema: TSchema): string {
  const forms = (schema.anyOf as TSchema[] | undefined) ?? [schema]
  const values = forms.map((form) => form.const as unknown)
  if (values.every((value) => value !== undefined)) {
    return values.length === 1 ? `${values[0]}` : `one of ${values.join(", ")}`
  }
  const kinds = forms.map((form) => (form.anyOf ? kindOf(form) : (KINDS[form.type] ?? "another")))
  return [...new Set(kinds)].join(" or ")
}

function textRule(schema: TSchema, value: unknown): string {
  const { minLength = 0, maxLength } = schema
  if (typeof value !== "string") return "be a string"
  if (!value.isWellFormed()) return "not contain half of a surrogate pair"
  if (countCharacters(value) < minLength) {
    return minLength === 1 ? "not be empty" : `have at least ${minLength} characters`
  }
  if (maxLength !== undefined && isLonger(value, maxLength)) {
    return `have at most ${maxLength} characters`
  }
  return patternRule(schema)
}

/** A pattern says little to a person: what the common ones mean. */
const MEANINGS: Record<string, string> = {
  [ONE_LINE]: "be one line without control characters",
  [SLUG]: "have 1 to 63 characters: a-z, 0-9, and hyphens between them",
  [MONTH]: "be a month, such as 2026-11",
}

function patternRule({ pattern = "" }: TSchema): string {
  return MEANINGS[pattern] ?? `match the pattern ${pattern}`
}
