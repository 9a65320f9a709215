import { Type as t } from "@sinclair/typebox"
import { type ApiError, Problems, problemError } from "../core/errors"
import { anything, count, text } from "../lib/record-fields"

/** Items of one request, with what is wrong with some of them: a bad one does not stop the others. */
export interface BulkItems<Item> {
  given: { index: number; item: Item }[]
  failed: { index: number; error: ApiError }[]
}

interface BulkList<Item> {
  /** The field of the body that holds the list. */
  name: string
  most: number
  least?: number
  /** Adds what is wrong with an item to its own problems. */
  read: (item: object, problems: Problems) => Item
}

/** Only the size of the list is a problem of the request; each item keeps its own. */
export function readItems<Item>(
  body: unknown,
  { name, most, least = 0, read }: BulkList<Item>,
  problems: Problems,
): BulkItems<Item> {
  const items: BulkItems<Item> = { given: [], failed: [] }
  const list = ((body ?? {}) as Record<string, unknown>)[name]
  if (list === undefined) problems.add(name, "required", "The field is required.")
  else if (!Array.isArray(list) || list.length > most || list.length < least) {
    const size = least === 0 ? `at most ${most}` : `${least} to ${most}`
    problems.add(name, "invalid", `The value must be a list of ${size} items.`)
  } else for (const [index, item] of list.entries()) readOne(items, { name, index, item, read })
  return items
}

interface OneOfBulk<Item> {
  name: string
  index: number
  item: unknown
  read: BulkList<Item>["read"]
}

function readOne<Item>(
  { given, failed }: BulkItems<Item>,
  { name, index, item, read }: OneOfBulk<Item>,
) {
  const own = new Problems(`${name}.${index}.`)
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    const error = new Problems()
    error.add(`${name}.${index}`, "invalid", "The value must be an object.")
    failed.push({ index, error: problemError(error.list) })
    return
  }
  const value = read(item, own)
  if (own.any) failed.push({ index, error: problemError(own.list) })
  else given.push({ index, item: value })
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
