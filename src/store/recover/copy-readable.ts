import type { Database } from "bun:sqlite"
import type { BtreePage, SqliteValue } from "../../lib/sqlite-format"
import type { DamagedFile, FoundRow } from "./damaged-file"
import { type DamagedTree, type DeclaredTable, fitted } from "./damaged-schema"

/** Rows of one transaction. */
const AT_ONCE = 2000

/** What came of the readable pages. */
export interface Copied {
  /** Rows in the new file, by table. */
  recovered: Map<string, number>
  /** By table: row ids whose rows cannot be read whole. */
  dropped: Map<string, Set<number>>
  /** By page: 1 where nothing of it is missing in the new file, but for dropped rows. */
  read: Uint8Array
}

interface CopyParts {
  file: DamagedFile
  trees: Map<number, DamagedTree>
  target: Database
  tables: Map<string, DeclaredTable>
  onProgress: (text: string) => void
}

/** Copies each row that can be read, page by page, with the row ids of the damaged file. */
export function copyReadable(parts: CopyParts): Copied {
  const { file, target, tables, onProgress } = parts
  const copied: Copied = {
    recovered: new Map([...tables.keys()].map((name) => [name, 0])),
    dropped: new Map([...tables.keys()].map((name) => [name, new Set()])),
    read: new Uint8Array(file.pages + 1),
  }
  const inserters = new Map(
    [...tables.values()].map((table) => [table.name, inserterOf(target, table)]),
  )
  let waiting = 0
  target.run("BEGIN")
  for (let number = 1; number <= file.pages; number++) {
    if (number % 1000 === 0) onProgress(`page ${number} of ${file.pages}`)
    const page = file.btree(number)
    if (!page) continue
    const table = tableOf(parts, number, page)
    const insert = inserters.get(table?.name ?? "")
    if (!table || !insert) {
      copied.read[number] = hasNoRows(parts, number, page) ? 1 : 0
      continue
    }
    copied.read[number] = copyPage(parts, copied, { number, page, table, insert }) ? 1 : 0
    waiting += page.cells.length
    if (waiting < AT_ONCE) continue
    target.run("COMMIT; BEGIN")
    waiting = 0
  }
  target.run("COMMIT")
  return copied
}

interface PageToCopy {
  number: number
  page: BtreePage
  table: DeclaredTable
  insert: Insert
}

/** Returns whether each row of the page is copied, or noted as dropped. */
function copyPage(
  { file }: CopyParts,
  copied: Copied,
  { number, page, table, insert }: PageToCopy,
) {
  let is_whole = true
  let recovered = copied.recovered.get(table.name) ?? 0
  for (const { rowid, values } of file.cellsOf(number, page)) {
    if (values && insert({ rowid, values })) recovered += 1
    else if (!values && rowid !== undefined) copied.dropped.get(table.name)?.add(rowid)
    else is_whole = false
  }
  copied.recovered.set(table.name, recovered)
  return is_whole
}

/** Whether a page that is not copied has nothing to copy: the schema, an index, or no row at all. */
function hasNoRows({ file, trees }: CopyParts, number: number, page: BtreePage): boolean {
  if (page.kind === "table_inner" || page.cells.length === 0) return true
  const root = file.rootOf(number)
  if (root === 1) return [...file.cellsOf(number, page)].every(({ values }) => values)
  const tree = trees.get(root ?? 0)
  return tree !== undefined && (tree.is_index || tree.name.startsWith("sqlite_"))
}

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

type Insert = (row: FoundRow) => boolean

/** Writes a row; false where it fits badly, or its key is taken. */
function inserterOf(target: Database, table: DeclaredTable): Insert {
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
