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
  /** `placeholder`: other rows refer to it, so another one with its id stands in its place. */
  reason: "unreadable" | "refers_to_a_lost_row" | "placeholder"
  /** How many rows the placeholder keeps within reach. */
  rows?: number
}

interface LostRowParts {
  file: DamagedFile
  trees: Map<number, DamagedTree>
  target: Database
  tables: Map<string, DeclaredTable>
  /** Rows that a page has, and that could not be copied. */
  dropped: Map<string, Set<number>>
}

/** Rows that a page or an index of the damaged file names and that could not be copied: each one once. */
export function* unreadableRows(parts: LostRowParts): Generator<LostRow> {
  const { file, trees, target, tables } = parts
  const lost = droppedRows(parts)
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

/** Those whose row id no other row took. Their keys are known only to an index. */
function droppedRows({ target, dropped }: LostRowParts) {
  const lost = new Map<string, Map<number, Record<string, string>>>()
  for (const [table, rowids] of dropped) {
    if (rowids.size === 0) continue
    const is_there = target.prepare(`SELECT 1 FROM "${table}" WHERE rowid = ?`)
    const gone = [...rowids].filter((rowid) => !is_there.get(rowid))
    lost.set(table, new Map(gone.map((rowid) => [rowid, {}])))
  }
  return lost
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

/** The row that takes the place of a lost one, by the 16 bytes of its id. */
export type StandIn = (id: Uint8Array) => Record<string, SqliteValue>

/**
 * Removes rows that refer to others which are not there, until none does. Where a table has a stand-in, the
 * row that is missing in it is made instead.
 */
export function* removeDangling(
  target: Database,
  tables: Map<string, DeclaredTable>,
  standIns: Record<string, StandIn>,
): Generator<LostRow> {
  for (;;) {
    const rows = target.query("PRAGMA foreign_key_check").values() as Dangling[]
    if (rows.length === 0) return
    const mend = target.transaction((some: Dangling[]) =>
      some.flatMap((row) => {
        const standIn = standIns[row[2]]
        return (standIn ? replaced(target, row, standIn) : removed(target, tables, row)) ?? []
      }),
    )
    yield* mend(rows)
  }
}

/** Table, row id, the table that it refers to, and the number of the reference. */
type Dangling = [string, number, string, number]

function replaced(target: Database, [name, rowid, parent, at]: Dangling, standIn: StandIn) {
  const references = target.query(`PRAGMA foreign_key_list("${name}")`).all()
  const { from } = (references as { id: number; from: string }[]).find(({ id }) => id === at) ?? {}
  const [found] = target.query(`SELECT "${from}" FROM "${name}" WHERE rowid = ?`).values(rowid)
  const id = (found as SqliteValue[] | undefined)?.[0]
  if (!(id instanceof Uint8Array)) throw new Error(`A row of ${name} refers to no id.`)
  const row = standIn(id)
  const columns = Object.keys(row).map((column) => `"${column}"`)
  const places = columns.map(() => "?").join(", ")
  const into = `INSERT OR IGNORE INTO "${parent}" (${columns.join(", ")}) VALUES (${places})`
  const { changes } = target.query(into).run(...(Object.values(row) as never[]))
  const lost: LostRow = { table: parent, key: shownKey([["id", id]]), reason: "placeholder" }
  return changes > 0 ? lost : undefined // another row asked for the same
}

function removed(
  target: Database,
  tables: Map<string, DeclaredTable>,
  [name, rowid]: Dangling,
): LostRow | undefined {
  const keyed = (tables.get(name)?.columns ?? []).filter(({ pk }) => pk > 0)
  const names = keyed.map((column) => `"${column.name}"`).join(", ") || "NULL"
  const [found] = target.query(`SELECT ${names} FROM "${name}" WHERE rowid = ?`).values(rowid)
  if (!found) return undefined // two of its references lead nowhere
  const values = (found as SqliteValue[]).map((value, at): [string, SqliteValue] => [
    keyed[at]?.name ?? "",
    value,
  ])
  target.query(`DELETE FROM "${name}" WHERE rowid = ?`).run(rowid)
  return { table: name, key: shownKey(values), reason: "refers_to_a_lost_row" }
}
