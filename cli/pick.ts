import { usage } from "./failure"

type Json = Record<string, unknown>

/** Members of these are whatever their writer put there: one record has them, the next has not. */
const free_form = ["metadata", "headers", "data", "detail", "details", "checks", "before", "after"]

/** Dotted paths reach inside; a field that is not there becomes null. */
export function pick(record: Json, fields: readonly string[]): Json {
  return Object.fromEntries(fields.map((path) => [path, valueAt(record, path.split(".")) ?? null]))
}

function valueAt(record: unknown, path: readonly string[]): unknown {
  let value = record
  for (const part of path) {
    value = typeof value === "object" && value !== null ? (value as Json)[part] : undefined
  }
  return value
}

/** The fields that none of the records has, so that a typing error does not pass for "empty". */
export function unknownFields(records: readonly Json[], fields: readonly string[]): string[] {
  const mayHave = (record: Json, path: string) => isPossible(record, path.split("."))
  return fields.filter((path) => !records.some((record) => mayHave(record, path)))
}

function isPossible(value: unknown, [part = "", ...rest]: string[]): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return true
  if (!Object.hasOwn(value, part)) return false
  return rest.length === 0 || free_form.includes(part) || isPossible((value as Json)[part], rest)
}

/** Throws with exit 2, naming the fields there are, unless every one that is asked for is known. */
export function demandFields(records: readonly Json[], fields: readonly string[]): void {
  if (records.length === 0) return
  const [first, ...more] = unknownFields(records, fields)
  if (first === undefined) return
  const all = [first, ...more].map((name) => `"${name}"`).join(", ")
  throw usage(`--json: there is no field ${all}; the fields are ${knownOf(records).join(", ")}`)
}

const knownOf = (records: readonly Json[]) => [...new Set(records.flatMap(Object.keys))]
