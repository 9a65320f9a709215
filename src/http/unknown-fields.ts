import type { TObject, TSchema } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { nearest } from "../lib/text"
import { oncePer } from "../store/cached"
import { NOT_OFFERED } from "./field-schemas"

/** What a schema knows of a value: the fields of an object, the items of a list, or any values by name. */
interface Shape {
  fields: Map<string, Shape | undefined> | undefined
  items: Shape | undefined
  values: Shape | undefined
  /** The names that a near miss may have meant. */
  offered: string[]
}

/** Is told of each field that its schema does not name. */
export type NoteUnknown = (path: string, name: string, offered: string[]) => void

/** With `X-Strict: 1` a field that the route does not read is a problem. */
export const refusing =
  (problems: Problems): NoteUnknown =>
  (path, name) =>
    problems.add(path + name, "unknown_field", "There is no such field.")

/** To find what was meant costs something, so only so many names of a request are looked at. */
const MOST_LOOKED_AT = 100
const LONGEST_NAME = 64

/** Otherwise it is ignored, and one that is almost a known field is told. */
export function warningOfNearMisses(warnings: Problems): NoteUnknown {
  let left = MOST_LOOKED_AT
  return (path, name, offered) => {
    if (name.length > LONGEST_NAME || left-- <= 0) return
    const same = offered.find((one) => plain(one) === plain(name))
    const meant = same ?? nearest(name.toLowerCase(), offered)
    if (meant === undefined) return
    const message = `There is no field ${name}, so it was ignored. Did you mean ${meant}?`
    warnings.add(path + name, "unknown_field", message)
  }
}

/** `replyTo`, `reply-to` and `Reply_To` mean `reply_to`. */
const plain = (name: string) => name.replace(/[-_ ]/g, "").toLowerCase()

/** Finds the fields of a value that the schema does not name, however deep. */
export function eachUnknown(schema: TSchema, value: unknown, note: NoteUnknown): void {
  const shape = shapeOf(schema)
  if (shape) walk(shape, value, "", note)
}

function walk(shape: Shape, value: unknown, path: string, note: NoteUnknown): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return
  const { items, fields, values, offered } = shape
  if (Array.isArray(value)) {
    if (items) value.forEach((item, at) => void walk(items, item, `${path}${at}.`, note))
    return
  }
  for (const name in value) {
    const known = fields ? fields.get(name) : values
    if (known) walk(known, value[name as never], `${path}${name}.`, note)
    else if (fields && !fields.has(name)) note(path, name, offered)
  }
}

const shapeOf = oncePer((schema: TSchema) => shapeOfAny([schema]))

/** A field may be written in several forms. Undefined where nothing below it has a name, or any name is good. */
function shapeOfAny(schemas: TSchema[]): Shape | undefined {
  if (schemas.length === 0) return undefined
  const forms = schemas.flatMap(formsOf)
  const objects = forms.filter((form) => form.properties) as TObject[]
  const names = objects.flatMap(({ properties }) => Object.keys(properties))
  const ofName = (name: string) => objects.flatMap(({ properties }) => properties[name] ?? [])
  const fields =
    objects.length > 0 ? new Map(names.map((name) => [name, shapeOfAny(ofName(name))])) : undefined
  const offered = names.filter((name) => ofName(name).every((field) => !field[NOT_OFFERED]))
  const lists = forms.flatMap(({ type, items }) => (type === "array" && items ? [items] : []))
  const records = forms.flatMap((form) => Object.values<TSchema>(form.patternProperties ?? {}))
  const items = shapeOfAny(lists)
  const values = shapeOfAny(records)
  return fields || items || values ? { fields, items, values, offered } : undefined
}

const formsOf = (schema: TSchema): TSchema[] =>
  schema.anyOf ? (schema.anyOf as TSchema[]).flatMap(formsOf) : [schema]
