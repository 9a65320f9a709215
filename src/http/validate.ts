import { Kind, type TObject, type TSchema, TypeRegistry } from "@sinclair/typebox"
import { type TypeCheck, TypeCompiler, type ValueError } from "@sinclair/typebox/compiler"
import { ValueErrorType } from "@sinclair/typebox/errors"
import { countCharacters, isLonger } from "../lib/text"
import { settleNames } from "./field-names"
import type { Problems } from "./problems"
import { COUNTED, wordsFor } from "./value-words"

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>()

const MISSING = [
  ValueErrorType.ObjectRequiredProperty,
  ValueErrorType.ObjectMinProperties,
] as ValueErrorType[]

/** Checks a value against a schema; what is wrong goes into the collection. Nothing is coerced. */
export function check(schema: TSchema, value: unknown, problems: Problems) {
  const checker = checkerOf(schema)
  if (checker.Check(value)) return
  for (const error of checker.Errors(value)) problems.add(...asProblem(meant(error)))
}

/** With `X-Strict: 1` a field that nobody reads is a mistake worth telling. */
export function refuseUnknown(schema: TSchema, value: unknown, problems: Problems, path = "") {
  if (typeof value !== "object" || value === null) return
  const forms = formsOf(schema)
  if (Array.isArray(value)) {
    const items = forms.flatMap((form) => (form.type === "array" ? [form.items as TSchema] : []))
    if (items.length === 0) return
    value.forEach((item, at) => void refuseUnknown(anyOf(items), item, problems, `${path}${at}.`))
    return
  }
  const shapes = forms.flatMap((form) => ((form as TObject).properties ? [form as TObject] : []))
  if (shapes.length === 0) return // a free object, or none at all
  for (const [name, inner] of Object.entries(value)) {
    const fields = shapes.flatMap(({ properties }) => properties[name] ?? [])
    if (fields.length > 0) refuseUnknown(anyOf(fields), inner, problems, `${path}${name}.`)
    else problems.add(path + name, "unknown_field", "There is no such field.")
  }
}

/** A field may be written in several forms: each of them, however deep the alternatives go. */
const formsOf = (schema: TSchema): TSchema[] =>
  schema.anyOf ? (schema.anyOf as TSchema[]).flatMap(formsOf) : [schema]

const anyOf = (schemas: TSchema[]) => ({ anyOf: schemas }) as unknown as TSchema

/** Query strings are text: numbers and booleans are read from it as the schema says. */
export function readQuery(schema: TObject, search: URLSearchParams, problems: Problems) {
  const given: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(schema.properties)) {
    const text = search.get(name)
    if (text?.includes("\0"))
      problems.add(name, "invalid", "The value must not contain NUL characters.")
    if (text !== null) given[name] = fromText(field, text)
  }
  const query = settleNames(schema, given, problems) as typeof given
  for (const [name, field] of Object.entries(schema.properties)) {
    if (field.default !== undefined) query[name] ??= field.default
  }
  check(schema, query, problems)
  return query
}

function fromText(field: TSchema, text: string): unknown {
  if (field.type === "integer" || field.type === "number") {
    return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  }
  if (field.type === "boolean") return text === "true" ? true : text === "false" ? false : text
  return text
}

function checkerOf(schema: TSchema): TypeCheck<TSchema> {
  const known = compiled.get(schema)
  if (known) return known
  const fresh = TypeCompiler.Compile(countingCharacters(schema))
  compiled.set(schema, fresh)
  return fresh
}

TypeRegistry.Set<TSchema>(COUNTED, (schema, value) => {
  if (typeof value !== "string" || !value.isWellFormed()) return false
  if (isLonger(value, schema.maxLength ?? Number.POSITIVE_INFINITY)) return false
  if (schema.minLength && countCharacters(value) < schema.minLength) return false
  return schema.pattern === undefined || patternOf(schema).test(value)
})

const patterns = new WeakMap<TSchema, RegExp>()

function patternOf(schema: TSchema): RegExp {
  const known = patterns.get(schema)
  if (known) return known
  const fresh = new RegExp(schema.pattern)
  patterns.set(schema, fresh)
  return fresh
}

/** A copy for the compiler alone: the published schema keeps its ordinary strings. */
function countingCharacters<Part>(part: Part): Part {
  if (typeof part !== "object" || part === null) return part
  if (Array.isArray(part)) return part.map(countingCharacters) as Part
  const copy = { ...part } as unknown as TSchema
  for (const name of Object.keys(copy)) copy[name] = countingCharacters(copy[name])
  const bounded = copy.maxLength !== undefined || copy.minLength !== undefined
  if (copy[Kind] === "String" && bounded && copy.format === undefined) copy[Kind] = COUNTED
  return copy as Part
}

/** If a value may also be null, the sender meant the other form. */
function meant(error: ValueError): ValueError {
  const forms = (error.schema.anyOf as TSchema[] | undefined) ?? []
  const at = forms.length === 2 ? forms.findIndex(({ type }) => type !== "null") : -1
  if (at < 0 || forms.every(({ type }) => type !== "null")) return error
  return error.errors[at]?.First() ?? error
}

function asProblem(error: ValueError): [string, string, string] {
  const path = error.path.slice(1).replaceAll("/", ".") || "body"
  if (MISSING.includes(error.type)) return [path, "required", "The field is required."]
  return [path, "invalid", wordsFor(error)]
}
