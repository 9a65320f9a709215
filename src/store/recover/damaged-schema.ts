import type { SqliteValue } from "../../lib/sqlite-format"
import type { DamagedFile } from "./damaged-file"

/** A tree of the damaged file: a table, or an index of one. */
export interface DamagedTree {
  name: string
  table: string
  is_index: boolean
}

/** The schema as far as it can be read: the trees by their first pages. */
export function treesOf(file: DamagedFile): Map<number, DamagedTree> {
  const trees = new Map<number, DamagedTree>()
  for (let number = 1; number <= file.pages; number++) {
    const page = file.btree(number)
    if (page?.kind !== "table_leaf" || file.rootOf(number) !== 1) continue
    for (const { values } of file.rowsOf(number, page)) {
      const [type, name, table, root] = values
      if (typeof name !== "string" || typeof table !== "string" || typeof root !== "number")
        continue
      if (root > 0) trees.set(root, { name, table, is_index: type === "index" })
    }
  }
  return trees
}

/** A column as the new file declares it. */
export interface DeclaredColumn {
  name: string
  type: string
  notnull: number
  dflt_value: string | null
  pk: number
}

/** A table of the new file. */
export interface DeclaredTable {
  name: string
  columns: DeclaredColumn[]
  /** Its rows lie in the index of its primary key, in the order of that. */
  has_rowid: boolean
}

/**
 * The values of all columns, with defaults for those that were added after the row was written. Undefined
 * where a value has another type than the table declares: the row belongs elsewhere, or is damaged.
 */
export function fitted(
  { columns }: Pick<DeclaredTable, "columns">,
  values: SqliteValue[],
): SqliteValue[] | undefined {
  if (values.length > columns.length) return undefined
  const whole = columns.map((column, at) =>
    at < values.length ? (values[at] ?? null) : defaultOf(column),
  )
  return columns.every((column, at) => takes(column, whole[at] ?? null)) ? whole : undefined
}

function defaultOf({ dflt_value }: DeclaredColumn): SqliteValue {
  if (dflt_value === null) return null
  const number = Number(dflt_value)
  return Number.isNaN(number) ? dflt_value.replace(/^'|'$/g, "") : number
}

const ID_BYTES = 16

function takes({ name, type, notnull, pk }: DeclaredColumn, value: SqliteValue): boolean {
  if (value === null) return notnull === 0 && pk === 0
  switch (type.toLowerCase()) {
    case "blob": {
      const is_id = name === "id" || name.endsWith("_id")
      return value instanceof Uint8Array && (!is_id || value.length === ID_BYTES)
    }
    case "text":
      return typeof value === "string" && !value.includes("\0") // requests with it are refused
    default: // integer and bigint
      return typeof value === "number" || typeof value === "bigint"
  }
}
