import type { Client } from "./client"
import { usage } from "./errors"
import type { Query } from "./query"

const PAGE = 100

export interface Listed<Row> {
  rows: Row[]
  /** Whether the server has more than was asked for. */
  more: boolean
  /** What the server says beside the rows. */
  warnings: unknown[]
}

/** Walks the pages of a list by cursor until `limit` rows are there. */
export async function listUpTo<Row>(
  client: Client,
  path: string,
  query: Query,
  limit: number,
): Promise<Listed<Row>> {
  const rows: Row[] = []
  const warnings: unknown[] = []
  let cursor: string | undefined
  while (true) {
    const per_page = Math.min(PAGE, limit - rows.length)
    const { data, meta } = await client.get<Row[]>(path, { ...query, per_page, cursor })
    rows.push(...data)
    warnings.push(...(meta.warnings ?? []))
    cursor = meta.next_cursor ?? undefined
    if (rows.length >= limit || cursor === undefined || data.length === 0) {
      return { rows: rows.slice(0, limit), more: meta.has_more === true, warnings }
    }
  }
}

/** The number of `--limit`: 1 or more, default 25. */
export function limitOf(text: string | undefined): number {
  const limit = Number(text ?? 25)
  if (!Number.isInteger(limit) || limit < 1) {
    throw usage(`--limit: "${text}" is not a whole number of 1 or more`)
  }
  return limit
}
