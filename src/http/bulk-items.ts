import { type Static, type TSchema, Type as t } from "@sinclair/typebox"
import { type ApiError, Problems, problemError } from "../core/errors"
import { anything, count, text } from "../lib/record-fields"
import { check, isObject } from "./validate"

/** Items of one request, with what is wrong with some of them: a bad one does not stop the others. */
export interface BulkItems<Item> {
  given: { index: number; item: Item }[]
  failed: { index: number; error: ApiError }[]
}

interface BulkList<Item, Schema extends TSchema> {
  /** The field of the body that holds the list. */
  name: string
  most: number
  least?: number
  schema: Schema
  /** Adds to the problems of an item what its schema cannot say. */
  read: (item: Static<Schema>, problems: Problems) => Item
}

/** Only the size of the list is a problem of the request; each item keeps its own. */
export function readItems<Item, Schema extends TSchema>(
  body: unknown,
  { name, most, least = 0, schema, read }: BulkList<Item, Schema>,
  problems: Problems,
): BulkItems<Item> {
  const items: BulkItems<Item> = { given: [], failed: [] }
  const list = ((body ?? {}) as Record<string, unknown>)[name]
  if (list === undefined) problems.add(name, "required", "The field is required.")
  else if (!Array.isArray(list) || list.length > most || list.length < least) {
    const size = least === 0 ? `at most ${most}` : `${least} to ${most}`
    problems.add(name, "invalid", `The value must be a list of ${size} items.`)
  } else {
    for (const [index, item] of list.entries()) {
      const own = new Problems(isObject(item) ? `${name}.${index}.` : "")
      if (isObject(item)) check(schema, item, own)
      else own.add(`${name}.${index}`, "invalid", "The value must be an object.")
      const value = own.any ? undefined : read(item as Static<Schema>, own)
      if (own.any) items.failed.push({ index, error: problemError(own.list) })
      else items.given.push({ index, item: value as Item })
    }
  }
  return items
}

/** The items that failed, as an answer names them. */
export const BulkFailures = (field: string) =>
  t.Array(
    t.Object({
      index: count(7, "The place in the request, from 0."),
      error: t.Object({
        code: text("invalid_email"),
        message: text(`${field}.7.email: The value must be one email address.`),
        details: anything({ field: `${field}.7.email` }),
      }),
    }),
    { examples: [[]] },
  )

export const shownFailures = ({ failed }: BulkItems<unknown>) =>
  failed.map(({ index, error: { code, message, details } }) => ({
    index,
    error: { code, message, details: details as Record<string, unknown> },
  }))
