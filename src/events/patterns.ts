import { fail } from "../core/errors"
import { nearest } from "../lib/text"
import { eventTypes, isPattern } from "./registry"

/** Whether one of the patterns (exact types, `prefix.*`, `*`) speaks of the type. */
export const matchesType = (patterns: readonly string[], type: string): boolean =>
  patterns.some(
    (pattern) =>
      pattern === "*" ||
      pattern === type ||
      (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1))),
  )

/** A comma list of patterns. Throws 422 for what is no type, no `prefix.*` of one, and not `*`. */
export function askedTypes(list: string): string[] {
  const types = list.split(",").flatMap((type) => type.trim() || [])
  const unknown = types.find((type) => !isPattern(type))
  if (unknown === undefined) return types
  const message = noSuchType(unknown)
  const fields = [{ path: "types", code: "unknown_type", message }]
  return fail("validation_error", `types: ${message}`, { fields })
}

export const noSuchType = (unknown: string) =>
  `There is no event type ${unknown}. The nearest is ${nearest(unknown, NAMES)?.text}.`

const NAMES = eventTypes.map(({ type }) => type)
