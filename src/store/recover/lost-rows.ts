import type { Database } from "bun:sqlite"
import type { SqliteValue } from "../../lib/sqlite-format"
import { shownId } from "../id-bytes"
import type { DamagedFile } from "./damaged-file"
import type { DamagedTree, DeclaredTable } from "./damaged-schema"

/** A row that was there and is not in the new file. */
export interface LostRow {
  table: string
  /** The ids of its key; none where only another index names the row. */
  key: Record<string, string>
  reason: "unreadable" | "refers_to_a_lost_row"
}

/** Rows that an index of the damaged file names and that could not be copied: each one once. */
export function* unreadableRows(
  file: DamagedFile,
  trees: Map<number, DamagedTree>,
  target: Database,
  tables: Map<string, DeclaredTable>,
): Generator<LostRow> {
  const lost = new Map<string, Map<number, Record<string, string>>>()
  for (let number = 2; number <= file.pages; number++) {
    const page = file.btree(number)
    const tree = page?.kind.startsWith("index") ? trees.get(file.rootOf(number) ?? 0) : undefined
    const table = tree?.is_index ? tables.get(tree.table) : undefined
    if (!page || !tree || !table?.has_rowid) continue
    const is_there = target.prepare(`SELECT 1 FROM "${table.name}" WHERE rowid = ?`)
    for (const { values } of file.rowsOf(number, page)) {
      const rowid = values.at(-1)
      if (typeof rowid !== "number" || is_there.get(rowid)) continue
      const known = lost.get(table.name) ?? new Map<number, Record<string, string>>()
      const key = tree.name === keyIndex(table) ? keyOf(table, values) : (known.get(rowid) ?? {})
      lost.set(table.name, known.set(rowid, key))
    }
  }
  for (const [table, rows] of lost) {
    for (const key of rows.values()) yield { table, key, reason: "unreadable" }
  }
}

/** SQLite makes it for the primary key, before every other index. */
const keyIndex = ({ name }: DeclaredTable) => `sqlite_autoindex_${name}_1`

function keyOf({ columns }: DeclaredTable, values: SqliteValue[]): Record<string, string> {
  const keyed = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
  return shownKey(keyed.map(({ name }, at) => [name, values[at] ?? null]))
}

const ID_BYTES = 16

/** Ids, and names of what the instance keeps: other texts may be addresses, or secrets. */
const shownKey = (entries: [string, SqliteValue][]): Record<string, string> =>
  Object.fromEntries(
    entries.flatMap(([name, value]): [string, string][] => {
      if (value instanceof Uint8Array && value.length === ID_BYTES) return [[name, shownId(value)]]
      return name === "name" && typeof value === "string" ? [[name, value]] : []
    }),
  )

/** Removes rows that refer to others which are not there, until none does. */
export function* removeDangling(
  target: Database,
  tables: Map<string, DeclaredTable>,
): Generator<LostRow> {
  for (;;) {
    const rows = target.query("PRAGMA foreign_key_check").values() as [string, number][]
    if (rows.length === 0) return
    const remove = target.transaction((some: [string, number][]) => {
      const gone: LostRow[] = []
      for (const [name, rowid] of some) {
        const table = tables.get(name)
        const keyed = (table?.columns ?? []).filter(({ pk }) => pk > 0)
        const names = keyed.map((column) => `"${column.name}"`).join(", ") || "NULL"
        const [found] = target.query(`SELECT ${names} FROM "${name}" WHERE rowid = ?`).values(rowid)
        if (!found) continue // two of its references lead nowhere
        const values = (found as SqliteValue[]).map((value, at): [string, SqliteValue] => [
          keyed[at]?.name ?? "",
          value,
        ])
        target.query(`DELETE FROM "${name}" WHERE rowid = ?`).run(rowid)
        gone.push({ table: name, key: shownKey(values), reason: "refers_to_a_lost_row" })
      }
      return gone
    })
    yield* remove(rows)
  }
}
