import type { AnswerOf, AnyInput, OperationName } from "../../src/client/client"
import type { Client } from "./client"
import { exits, Failure, usage } from "./errors"
import { isWholeId } from "./id-kinds"
import { cleanLine } from "./terminal"

const PAGE = 100

/** A filter looks at some thousand records of a long list in one request. So many requests may find nothing. */
const MOST_IN_VAIN = 50

/** The limit of a walk to the end of the list, however long a filter finds nothing. */
export const ALL = Number.MAX_SAFE_INTEGER

/** One row of the list that an operation answers. */
export type RowOf<Name extends OperationName> =
  AnswerOf<Name> extends { data: readonly (infer Row)[] } ? Row : never

interface ListResult<Row> {
  rows: Row[]
  /** Whether the server has more than was asked for. */
  more: boolean
  /** What the server says beside the rows. */
  warnings: readonly ListWarning[]
  /** What the first page says of the list. */
  meta: object
}

/** Something odd about one of the rows. */
export interface ListWarning {
  webhook_id?: string
  message: string
}

/** One page, as far as walking the pages needs it. */
interface ListPage {
  data: unknown[]
  meta: {
    next_cursor?: string | null
    has_more?: boolean
    incomplete?: true
    warnings?: ListWarning[]
  }
}

/** Walks the pages of a list by cursor until `limit` rows are there, or a page ends with one that `isOver`. */
export async function listUpTo<Name extends OperationName>(
  client: Client,
  name: Name,
  limit: number,
  { query, ...input }: AnyInput = {},
  isOver: (row: RowOf<Name>) => boolean = () => false,
): Promise<ListResult<RowOf<Name>>> {
  const rows: unknown[] = []
  const warnings: ListWarning[] = []
  let cursor: string | undefined
  let first: object | undefined
  let in_vain = 0
  while (true) {
    const per_page = Math.min(PAGE, limit - rows.length)
    const page = await client.send(name, { ...input, query: { ...query, per_page, cursor } })
    const { data, meta } = page as ListPage
    rows.push(...data)
    first ??= meta
    warnings.push(...(meta.warnings ?? []))
    cursor = meta.next_cursor ?? undefined
    in_vain = data.length === 0 ? in_vain + 1 : 0
    const seeks = in_vain < MOST_IN_VAIN || limit === ALL
    const last = data.at(-1) as RowOf<Name> | undefined
    const goes_on = meta.incomplete ? seeks : last !== undefined && !isOver(last)
    if (rows.length >= limit || cursor === undefined || !goes_on) {
      const found = rows.slice(0, limit) as RowOf<Name>[]
      return { rows: found, more: meta.has_more === true, warnings, meta: first }
    }
  }
}

/** More that bear a name in part are no longer looked through. */
const MOST_NAMESAKES = 10_000

interface Naming {
  noun: string
  /** The list of all of them, and the field of its query that narrows it. */
  route: OperationName
  filter?: string
  field: string
  hint: (named: string) => string
  code?: string
  /** A name as the server keeps it. */
  kept?: (named: string) => string
}

/** Finds an id by what people call it; an id stays. What it gives throws exit 3. */
export const idByName =
  ({ noun, route, filter, field, hint, code = "not_found", kept = String }: Naming) =>
  async (client: Client, named: string): Promise<string> => {
    if (isWholeId(named)) return named
    const name = kept(named)
    const query = filter ? { [filter]: name } : {}
    const { rows } = await listUpTo(client, route, MOST_NAMESAKES, { query })
    const found = (rows as Record<string, string>[]).find((one) => one[field] === name)
    if (found?.id) return found.id
    const message = `There is no ${noun} ${cleanLine(named)}.`
    throw new Failure(exits.not_found, code, message, { hint: hint(cleanLine(named)) })
  }

/** The number of `--limit`: 1 or more, default 25. */
export function limitOf(text: string | undefined): number {
  const limit = Number(text ?? 25)
  if (!Number.isInteger(limit) || limit < 1) {
    throw usage(`--limit: "${text}" is not a whole number of 1 or more`)
  }
  return limit
}
