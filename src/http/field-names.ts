import { isDeepStrictEqual } from "node:util"
import { type TObject, type TSchema, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/problems"

const ALIAS_OF = "x-alias-of"
const NOT_OFFERED = "x-not-offered"

/** A second name of a field, which clients of another service use. */
export const aliasOf = <Schema extends TSchema>(name: string, schema: Schema) =>
  t.Optional({ ...schema, description: `Another name of \`${name}\`.`, [ALIAS_OF]: name } as Schema)

/** A field that would change the meaning, and that nothing here acts upon: only null passes. */
export const notOffered = () =>
  t.Optional(t.Null({ description: "Not available on this server.", [NOT_OFFERED]: true }))

/**
 * The same body under the names that readers know: aliases give their values to the fields that
 * they name, and what is not offered is a problem.
 */
export function settleNames(schema: TSchema | undefined, body: unknown, problems: Problems) {
  const { properties } = (schema ?? {}) as Partial<TObject>
  if (!properties || !isObject(body)) return body
  const settled = { ...body }
  for (const name of Object.keys(body)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    const real = field?.[ALIAS_OF] as string | undefined
    if (field?.[NOT_OFFERED]) refuseNotOffered(name, body[name], problems)
    if (real) delete settled[name]
    if (real && body[name] !== null) rename(settled, { name, real, value: body[name] }, problems)
  }
  return settled
}

/** Null says that the sender does not use the field. */
export function refuseNotOffered(name: string, value: unknown, problems: Problems) {
  if (value === null || value === undefined) return
  problems.add(name, "not_available", `${name} is not available on this server. Leave it out.`)
}

interface Alias {
  name: string
  real: string
  value: unknown
}

function rename(body: Record<string, unknown>, { name, real, value }: Alias, problems: Problems) {
  const known = body[real] ?? value
  if (!isDeepStrictEqual(known, value)) {
    const message = `${name} is another name of ${real}. Give one of them, or the same value twice.`
    problems.add(name, "invalid", message)
  }
  body[real] = known
}

/** A change that changes nothing is a mistake: most often a field is spelled wrong. */
export function demandChange(schema: TSchema | undefined, body: unknown, problems: Problems) {
  const { properties } = (schema ?? {}) as Partial<TObject>
  if (!properties || !isObject(body)) return
  const known = Object.keys(properties).filter((name) => !properties[name]?.[NOT_OFFERED])
  if (known.some((name) => Object.hasOwn(body, name))) return
  // What else is wrong explains it better, but for a field that is required.
  if (problems.list.some(({ code }) => code !== "required")) return
  const message = `The body names no field that can change. Give at least one of ${known.join(", ")}.`
  problems.add("body", "nothing_to_change", message)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
