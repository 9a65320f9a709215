import type { Database } from "bun:sqlite"
import type { BtreePage, SqliteValue } from "../../lib/sqlite-format"
import type { DamagedFile, FoundRow } from "./damaged-file"
import { type DamagedTree, type DeclaredTable, fitted } from "./damaged-schema"

/** Rows of one transaction. */
const AT_ONCE = 2000

/** What was copied of a table. */
export interface CopiedTable {
  recovered: number
  /** Pages with rows of it that cannot be read. */
  unreadable_pages: number
}

interface CopyParts {
  file: DamagedFile
  trees: Map<number, DamagedTree>
  target: Database
  tables: Map<string, DeclaredTable>
  onProgress: (text: string) => void
}

/** Copies each row that can be read, page by page, with the row ids of the damaged file. */
export function copyReadable(parts: CopyParts): Map<string, CopiedTable> {
  const { file, target, tables, onProgress } = parts
  const copied = new Map([...tables.keys()].map((name) => [name, blankTable()]))
  const inserters = new Map(
    [...tables.values()].map((table) => [table.name, inserterOf(target, table)]),
  )
  let waiting = 0
  target.run("BEGIN")
  for (let number = 2; number <= file.pages; number++) {
    if (number % 1000 === 0) onProgress(`page ${number} of ${file.pages}`)
    if (file.isUnreadable(number)) {
      const lost = copied.get(parts.trees.get(file.rootOf(number) ?? 0)?.name ?? "")
      if (lost) lost.unreadable_pages += 1
      continue
    }
    const page = file.btree(number)
    const table = page && tableOf(parts, number, page)
    const insert = inserters.get(table?.name ?? "")
    const count = copied.get(table?.name ?? "")
    if (!page || !insert || !count) continue
    for (const row of file.rowsOf(number, page)) {
      if (insert(row)) count.recovered += 1
      waiting += 1
    }
    if (waiting < AT_ONCE) continue
    target.run("COMMIT; BEGIN")
    waiting = 0
  }
  target.run("COMMIT")
  return copied
}

const blankTable = (): CopiedTable => ({ recovered: 0, unreadable_pages: 0 })

/** The table whose rows the page has; of a tree that the schema does not name any more, by its rows. */
function tableOf(parts: CopyParts, number: number, page: BtreePage): DeclaredTable | undefined {
  const { file, trees, tables } = parts
  const root = file.rootOf(number)
  if (root === 1 || page.kind === "table_inner") return undefined
  const tree = trees.get(root ?? 0)
  const has_rowid = page.kind === "table_leaf"
  if (tree) {
    const table = tree.is_index ? undefined : tables.get(tree.name)
    return table?.has_rowid === has_rowid ? table : undefined
  }
  return root === undefined || !has_rowid ? undefined : guessed(parts, number, page)
}

/** The one table without a tree that every row of the page fits into; undefined where several do. */
function guessed({ file, trees, tables }: CopyParts, number: number, page: BtreePage) {
  const rows = [...file.rowsOf(number, page)]
  const placed = new Set([...trees.values()].map(({ name }) => name))
  const fitting = [...tables.values()].filter(
    (table) =>
      table.has_rowid &&
      !placed.has(table.name) &&
      rows.every(
        ({ values }) =>
          values.length === table.columns.length && fitted(table, values) !== undefined,
      ),
  )
  return rows.length > 0 && fitting.length === 1 ? fitting[0] : undefined
}

/** Writes a row; false where it fits badly, or its key is taken. */
function inserterOf(target: Database, table: DeclaredTable): (row: FoundRow) => boolean {
  const columns = table.has_rowid ? table.columns : byKey(table)
  const names = columns.map(({ name }) => `"${name}"`)
  if (table.has_rowid) names.unshift("rowid")
  const into = `INSERT OR IGNORE INTO "${table.name}" (${names.join(", ")})`
  const insert = target.prepare(`${into} VALUES (${names.map(() => "?").join(", ")})`)
  return ({ rowid, values }) => {
    const whole = fitted({ columns }, values)
    if (!whole || (table.has_rowid && rowid === undefined)) return false
    const all: SqliteValue[] = table.has_rowid ? [rowid ?? null, ...whole] : whole
    return insert.run(...(all as never[])).changes > 0
  }
}

/** Without a row id, the columns of the key come first (file format, section 2.4). */
function byKey({ columns }: DeclaredTable) {
  const keyed = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
  return [...keyed, ...columns.filter(({ pk }) => pk === 0)]
}
