import type { Copied } from "./copy-readable"
import type { DamagedFile } from "./damaged-file"
import type { DamagedTree, DeclaredTable } from "./damaged-schema"

/** Pages of which nothing came back: rows may have been in them. */
export interface LostPages {
  /** Null where it is not known, and for missing pages without rows. */
  table: string | null
  pages: number
  /** `missing_page`: the file is cut off before it. */
  reason: "unreadable_page" | "missing_page"
}

/** A table that the schema of the damaged file does not name any more. */
export interface LostTable {
  table: string
  reason: "not_found"
}

/**
 * Every page that should have content, and that was not read. Pages of an index are left out: all that it
 * says is in its table.
 */
export function lostPages(
  file: DamagedFile,
  trees: Map<number, DamagedTree>,
  { read }: Pick<Copied, "read">,
): LostPages[] {
  const lost = new Map<string, LostPages>()
  const note = (table: string | null, reason: LostPages["reason"]) => {
    const key = `${reason} ${table ?? ""}`
    const all = lost.get(key) ?? { table, pages: 0, reason }
    lost.set(key, { ...all, pages: all.pages + 1 })
  }
  for (let number = 1; number <= file.promised; number++) {
    const is_missing = number > file.pages
    const is_there = read[number] === 1 || file.isUsed(number) || file.isSpare(number)
    if (!is_missing && is_there) continue
    const root = file.isSpare(number) ? undefined : file.ownerOf(number)
    const tree = trees.get(root ?? 0)
    if (is_missing) note(tree?.is_index ? null : nameOf(root, tree), "missing_page")
    else if (!tree?.is_index) note(nameOf(root, tree), "unreadable_page")
  }
  return [...lost.values()]
}

const nameOf = (root: number | undefined, tree: DamagedTree | undefined): string | null =>
  root === 1 ? "sqlite_schema" : (tree?.name ?? null)

/** Tables without a tree: their rows can only be guessed, or they are all gone. */
export function lostTables(
  trees: Map<number, DamagedTree>,
  tables: Map<string, DeclaredTable>,
): LostTable[] {
  const placed = new Set([...trees.values()].map(({ name }) => name))
  const lost = [...tables.keys()].filter((name) => !placed.has(name))
  return lost.map((table) => ({ table, reason: "not_found" }))
}
