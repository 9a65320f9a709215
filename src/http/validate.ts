import type { TObject, TSchema } from "@sinclair/typebox"
import { type TypeCheck, TypeCompiler, type ValueError } from "@sinclair/typebox/compiler"
import { ValueErrorType } from "@sinclair/typebox/errors"
import type { Problems } from "./problems"

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>()

const MISSING = [
  ValueErrorType.ObjectRequiredProperty,
  ValueErrorType.ObjectMinProperties,
] as ValueErrorType[]

/** Checks a value against a schema; what is wrong goes into the collection. Nothing is coerced. */
export function check(schema: TSchema, value: unknown, problems: Problems) {
  const checker = checkerOf(schema)
  if (checker.Check(value)) return
  for (const error of checker.Errors(value)) problems.add(...asProblem(error))
}

/** With `X-Strict: 1` a field that nobody reads is a mistake worth telling. */
export function refuseUnknown(schema: TSchema, value: unknown, problems: Problems, path = "") {
  if (schema.type === "array" && Array.isArray(value)) {
    value.forEach((item, at) => void refuseUnknown(schema.items, item, problems, `${path}${at}.`))
  }
  const known = (schema as TObject).properties
  if (!known || typeof value !== "object" || value === null || Array.isArray(value)) return
  for (const [name, inner] of Object.entries(value)) {
    const field = known[name]
    if (field) refuseUnknown(field, inner, problems, `${path}${name}.`)
    else problems.add(path + name, "unknown_field", "There is no such field.")
  }
}

/** Query strings are text: numbers and booleans are read from it as the schema says. */
export function readQuery(schema: TObject, search: URLSearchParams, problems: Problems) {
  const query: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(schema.properties)) {
    const text = search.get(name)
    if (text?.includes("\0")) problems.add(name, "invalid", "No NUL characters.")
    if (text !== null) query[name] = fromText(field, text)
    else if (field.default !== undefined) query[name] = field.default
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
  const fresh = TypeCompiler.Compile(schema)
  compiled.set(schema, fresh)
  return fresh
}

function asProblem(error: ValueError): [string, string, string] {
  const path = error.path.slice(1).replaceAll("/", ".") || "body"
  if (MISSING.includes(error.type)) return [path, "required", "The field is required."]
  return [path, "invalid", `${choices(error.schema) ?? error.message}.`.replace(/\.\.$/, ".")]
}

/** "Expected union value" helps nobody: name the values. */
function choices({ anyOf }: TSchema): string | undefined {
  const values = (anyOf as TSchema[] | undefined)?.map((one) => one.const as unknown)
  return values?.every((value) => value !== undefined) ? `One of ${values.join(", ")}` : undefined
}
