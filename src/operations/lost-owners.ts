import { and, count, eq, getTableName, gt, isNull, lt } from "drizzle-orm"
import type { SQLiteColumn } from "drizzle-orm/sqlite-core"
import { accounts, projects } from "../identity/tables"
import { INSTANCE } from "../providers/tables"
import type { Reader } from "../store/store"
import { columnOf, indexFrom, keyOf, tableLives } from "./table-lives"

/** Rows of one table whose project or account is missing. */
export interface RowsWithoutOwner {
  table: string
  owner: "project" | "account"
  owner_id: string
  rows: number
}

const OWNERS = {
  project: { id: projects.id, name: "project_id" },
  account: { id: accounts.id, name: "account_id" },
}

/**
 * Rows that no key and no list reaches, and that retention does not see. It reads an index of each table whose rows have
 * an id of their own, or belong to an account. Of what else a lost project had, there is nothing to read without these.
 */
export async function* rowsWithoutOwner(db: Reader): AsyncGenerator<RowsWithoutOwner> {
  for (const owner of ["project", "account"] as const) {
    const { id, name } = OWNERS[owner]
    for (const { table, ends, late, ...its } of tableLives) {
      const named = its.owner === owner && columnOf(table, name)
      if (!named || late || ends === "with row" || !indexFrom(named)) continue
      const is_listed = owner === "account" || keyOf(table)[0]?.name === "id"
      if (is_listed) yield* withoutOwner(db, named, { owner, of: id })
    }
  }
}

async function* withoutOwner(
  db: Reader,
  named: SQLiteColumn,
  { owner, of }: { owner: "project" | "account"; of: SQLiteColumn },
): AsyncGenerator<RowsWithoutOwner> {
  // The instance itself owns mail of the project "", and providers of the project `INSTANCE`.
  const orphaned = and(isNull(of), gt(named, ""), lt(named, INSTANCE))
  const all = db.select({ owner_id: named, rows: count() }).from(named.table)
  const rows = await all.leftJoin(of.table, eq(of, named)).where(orphaned).groupBy(named)
  const table = getTableName(named.table)
  for (const row of rows)
    yield { table, owner, owner_id: String(row.owner_id), rows: Number(row.rows) }
}
