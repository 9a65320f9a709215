import { isDeepStrictEqual } from "node:util"
import { Kind, type TObject, type TSchema, Type, TypeRegistry } from "@sinclair/typebox"
import { TypeCompiler, type ValueError } from "@sinclair/typebox/compiler"
import { ValueErrorType } from "@sinclair/typebox/errors"
import type { Problems } from "../core/errors"
import { COUNTRY_PREFIX } from "../lib/phone"
import { CATEGORY_SLUG, countCharacters, isLonger, SLUG, TOPIC_KEY } from "../lib/text"
import { oncePer } from "../store/cached"
import { ALIAS_OF, MONTH, NOT_OFFERED, ONE_LINE, RULE, type TextRule } from "./field-schemas"
import type { AnyRoute } from "./route"
import { queryOf } from "./target"
import { eachUnknown, type NoteUnknown } from "./unknown-fields"

/** What a route without a schema knows. */
const NOTHING = Type.Object({})

export function readBody(
  route: AnyRoute,
  raw: unknown,
  noteUnknown: NoteUnknown,
  problems: Problems,
): unknown {
  const given = settleNames(route.body, raw, problems)
  eachUnknown(route.body ?? NOTHING, raw, noteUnknown)
  const body = route.readRaw ? route.readRaw(given, problems) : checked(route, given, problems)
  if (route.method === "PATCH" || route.changes) requireChange(route.body, raw, problems)
  return body
}

/** The schema first; a body of its form goes to the function for what a schema cannot say. */
function checked({ body: schema, read }: AnyRoute, given: unknown, problems: Problems): unknown {
  if (schema) check(schema, given, problems)
  const known = knownFields(schema, given)
  return read && !problems.any ? read(known as never, problems) : known
}

/** Without the fields that the schema does not name: a handler may store what it gets. */
function knownFields(schema: TSchema | undefined, given: unknown): unknown {
  const properties: object | undefined = schema?.properties
  if (!properties || schema?.additionalProperties || !isObject(given)) return given
  return Object.fromEntries(
    Object.entries(given).filter(([name]) => Object.hasOwn(properties, name)),
  )
}

export function readSearch(
  route: AnyRoute,
  request: Request,
  noteUnknown: NoteUnknown,
  problems: Problems,
) {
  if (!route.query && !request.url.includes("?")) return {}
  const given = queryOf(request)
  if (given.size > 0) eachUnknown(route.query ?? NOTHING, Object.fromEntries(given), noteUnknown)
  return route.query ? readQuery(route.query, given, problems) : {}
}

/** Checks a value against a schema; what is wrong goes into the collection. Nothing is coerced. */
export function check(schema: TSchema, value: unknown, problems: Problems) {
  const checker = checkerOf(schema)
  if (checker.Check(value)) return
  for (const error of checker.Errors(value)) problems.add(...asProblem(meant(error)))
}

/** A string whose bounds are code points (JSON Schema, 6.3); TypeBox itself counts UTF-16 units. */
const COUNTED = "CountedString"

const MISSING = [
  ValueErrorType.ObjectRequiredProperty,
  ValueErrorType.ObjectMinProperties,
] as ValueErrorType[]

/** Query strings are text: numbers and booleans are read from it as the schema says. */
function readQuery(schema: TObject, search: URLSearchParams, problems: Problems) {
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

/** Whether a value has the form of a schema. */
export const fits = (schema: TSchema, value: unknown): boolean => checkerOf(schema).Check(value)

const checkerOf = oncePer((schema: TSchema) => TypeCompiler.Compile(countingCharacters(schema)))
const patternOf = oncePer(({ pattern }: TSchema) => new RegExp(pattern))

TypeRegistry.Set<TSchema>(
  COUNTED,
  (schema, value) => isOfForm(schema, value) && ruleOf(schema)?.(value) === undefined,
)

/** Whether it is a text that has all that its schema says, but for its rule. */
function isOfForm(schema: TSchema, value: unknown): value is string {
  if (typeof value !== "string" || !value.isWellFormed()) return false
  if (isLonger(value, schema.maxLength ?? Number.POSITIVE_INFINITY)) return false
  if (schema.minLength && countCharacters(value) < schema.minLength) return false
  return schema.pattern === undefined || patternOf(schema).test(value)
}

/** A copy for the compiler alone: the published schema keeps its ordinary strings. */
function countingCharacters<Part>(part: Part): Part {
  if (typeof part !== "object" || part === null) return part
  if (Array.isArray(part)) return part.map(countingCharacters) as Part
  const copy = { ...part } as unknown as TSchema
  for (const name of Object.keys(copy)) copy[name] = countingCharacters(copy[name])
  const is_bounded = copy.maxLength !== undefined || copy.minLength !== undefined
  const is_own = is_bounded || ruleOf(copy) !== undefined
  if (copy[Kind] === "String" && is_own && copy.format === undefined) copy[Kind] = COUNTED
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
  const broken = brokenRule(error)
  if (broken) return [path, ...broken]
  const is_crowded = error.type === ValueErrorType.ObjectMaxProperties
  return [path, is_crowded ? "too_many" : "invalid", wordsFor(error)]
}

const brokenRule = ({ schema, value }: ValueError) =>
  schema[Kind] === COUNTED && isOfForm(schema, value) ? ruleOf(schema)?.(value) : undefined

const ruleOf = (schema: TSchema) => schema[RULE as never] as TextRule | undefined

/** What is wrong with a value, and what it must be: one sentence for people. */
function wordsFor({ type, schema, value, message }: ValueError): string {
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
  [ValueErrorType.ObjectMaxProperties]: ({ maxProperties }) => `have at most ${maxProperties} keys`,
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
  [CATEGORY_SLUG]: "have 1 to 64 characters: a-z, 0-9, and behind the first one also - and _",
  [TOPIC_KEY]: "have 1 to 64 characters: a-z, 0-9, and behind the first one also a dot, - and _",
  [MONTH]: "be a month, such as 2026-11",
  [COUNTRY_PREFIX]: "be a country prefix, such as +43",
}

function patternRule({ pattern = "" }: TSchema): string {
  return MEANINGS[pattern] ?? `match the pattern ${pattern}`
}

/**
 * The same body under the names that readers know: aliases give their values to the fields that
 * they name, and what is not offered is a problem.
 */
export function settleNames(schema: TSchema | undefined, body: unknown, problems: Problems) {
  const { properties } = (schema ?? {}) as Partial<TObject>
  if (!properties || !isObject(body)) return body
  let settled = body
  for (const name of Object.keys(body)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    const real = field?.[ALIAS_OF] as string | undefined
    if (field?.[NOT_OFFERED]) refuseNotOffered(name, body[name], problems)
    if (!real) continue
    if (settled === body) settled = { ...body }
    delete settled[name]
    if (body[name] !== null) rename(settled, { name, real, value: body[name] }, problems)
  }
  return settled
}

/** Null says that the sender does not use the field. */
export function refuseNotOffered(name: string, value: unknown, problems: Problems) {
  if (value === null) return
  problems.add(name, "not_available", `${name} is not available on this server. Leave it out.`)
}

function rename(
  body: Record<string, unknown>,
  { name, real, value }: { name: string; real: string; value: unknown },
  problems: Problems,
) {
  const known = body[real] ?? value
  if (!isDeepStrictEqual(known, value)) {
    const message = `${name} is another name of ${real}. Give one of them, or the same value twice.`
    problems.add(name, "invalid", message)
  }
  body[real] = known
}

/** A change that changes nothing is a mistake: most often a field is spelled wrong. */
function requireChange(schema: TSchema | undefined, body: unknown, problems: Problems) {
  const { properties } = (schema ?? {}) as Partial<TObject>
  if (!properties || !isObject(body)) return
  const known = Object.keys(properties).filter((name) => !properties[name]?.[NOT_OFFERED])
  if (known.some((name) => Object.hasOwn(body, name))) return
  // What else is wrong explains it better, but for a field that is required.
  if (problems.list.some(({ code }) => code !== "required")) return
  const message = `The body names no field that can change. Give at least one of ${known.join(", ")}.`
  problems.add("body", "nothing_to_change", message)
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
