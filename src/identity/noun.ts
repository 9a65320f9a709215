import { and, eq, getTableColumns, type SQL } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import * as audit from "../audit-log/audit-log"
import { fail, tooMany } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import { now } from "../core/time"
import { bump, total } from "../store/counters"
import { forUpdate } from "../store/dialect"
import { type RowList, rowForUpdate, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { projects } from "./tables"

type NounTable = SQLiteTable & { id: SQLiteColumn; project_id: SQLiteColumn }

/** The party that changes something of a project; a caller of the API is one. */
export interface ProjectActor extends audit.By {
  account_id: string
  project_id: string
}

/** A plain noun: records of a project, which are made, listed, read, changed and removed. */
interface NounDeclaration<Table extends NounTable, Response> {
  /** One of them, as the audit log names it: `topic` makes `topic.created`. */
  name: string
  table: Table
  /** Throws the 404 of a record that the project does not have. */
  missing: () => never
  /** The column by which paths name a record, and whether a text can be its value. Default: the id. */
  named_by?: { column: keyof Table["$inferSelect"] & string; isName: (text: string) => boolean }
  /** The column that no two records of a project share, and what a caller is told of a value that is taken. */
  unique?: {
    column: keyof Table["$inferSelect"] & string
    message: (value: string) => string
    /** Default: `<column>_taken`. */
    reason?: string
  }
  /** The counter of a project's records. Lists without a filter take their total from it. */
  counter?: string
  /** How many a project may have. Needs the counter. */
  most?: number
  /** The record of the contract. Default: the row without its owner. */
  toResponse?: (row: Table["$inferSelect"]) => Response
  /** What the audit log keeps of a row. Default: all but what looks like a secret. */
  audited?: (row: Table["$inferSelect"]) => unknown
}

/** The columns that `insert` fills. */
type FilledColumns = "id" | "account_id" | "project_id" | "created_at" | "updated_at"

type NewRow<Row> = Omit<Row, FilledColumns> & { id?: string }

/** Conditions of a list: `indexed` by an index of the project's rows, `filter` row by row. */
export interface NounFilter {
  indexed?: SQL | undefined
  filter?: SQL | undefined
}

interface Owned {
  id: string
  project_id: string
}

/** A row of a noun's table. */
type NounRow<Table extends NounTable> = Table["$inferSelect"] & Owned

/** What every feature does with its records, made from their declaration. No row of another project is ever met. */
export const noun = <Table extends NounTable, Response = OwnFields<Table>>(
  declared: NounDeclaration<Table, Response>,
) => ({
  toResponse: declared.toResponse ?? (ownFields as (row: Table["$inferSelect"]) => Response),
  ...readingOf(declared),
  ...writingOf(declared),
})

type OwnFields<Table extends NounTable> = Omit<Table["$inferSelect"], "project_id" | "account_id">

const ownFields = ({ project_id: _, account_id: __, ...row }: { [column: string]: unknown }) => row

const owned = ({ project_id }: NounTable, owner: string) => eq(project_id, owner)

/** The rows of a project that have a value in a column. */
const selectBy = (
  db: Reader,
  table: NounTable,
  project_id: string,
  column: string,
  value: string,
) =>
  db
    .select()
    .from(table as SQLiteTable)
    .where(and(owned(table, project_id), eq(columnsOf(table)[column] as SQLiteColumn, value)))

const columnsOf = (table: NounTable) => getTableColumns(table) as Record<string, SQLiteColumn>

function readingOf<Table extends NounTable>(declared: NounDeclaration<Table, unknown>) {
  type Row = NounRow<Table>
  const { table, missing, counter, named_by = BY_ID } = declared

  const selectNamed = (db: Reader, project_id: string, path_name: string) =>
    named_by.isName(path_name)
      ? selectBy(db, table, project_id, named_by.column, path_name)
      : undefined

  /** Undefined where the project has no record of this name. */
  async function lookup(db: Reader, project_id: string, path_name: string) {
    const [row] = (await selectNamed(db, project_id, path_name)) ?? []
    return row as Row | undefined
  }

  /** Throws 404. */
  const find = async (db: Reader, project_id: string, path_name: string): Promise<Row> =>
    (await lookup(db, project_id, path_name)) ?? missing()

  /** As `find`, and locks the row until the transaction ends. */
  async function findForUpdate(tx: Tx, project_id: string, path_name: string): Promise<Row> {
    const query = selectNamed(tx, project_id, path_name)
    const [row] = query ? await forUpdate(query) : []
    return (row as Row | undefined) ?? missing()
  }

  /** Newest first. */
  function list(db: Reader, project_id: string, given: NounFilter = {}): RowList<Row> {
    const of = owned(table, project_id)
    const wanted = { owner: project_id, of, filter: undefined, ...given, missing }
    const rows = rowList(db, table, wanted) as RowList<Row>
    const is_all = !given.filter && !given.indexed
    return counter && is_all ? { ...rows, total: () => total(db, project_id, counter) } : rows
  }

  return { lookup, find, forUpdate: findForUpdate, list }
}

const BY_ID = { column: "id", isName: isUuid }

function writingOf<Table extends NounTable>(declared: NounDeclaration<Table, unknown>) {
  type Row = NounRow<Table>
  const { name, table, unique, counter, audited = (row: Row): unknown => row } = declared
  const itself = ({ project_id, id }: Row) => and(owned(table, project_id), eq(table.id, id))

  /** Throws 409 `conflict` where the unique value is taken, and at the limit. */
  async function insert(tx: Tx, by: ProjectActor, given: NewRow<Row>): Promise<Row> {
    const at = now()
    const { account_id, project_id } = by
    const owner = "account_id" in columnsOf(table) ? { account_id, project_id } : { project_id }
    const fields = { id: newId(), ...given, ...owner, created_at: at, updated_at: at }
    const row = fields as unknown as Row
    const query = tx.insert(table).values(row as never)
    const added = unique ? await query.onConflictDoNothing().returning() : [await query]
    if (added.length === 0) await refuseTaken(tx, declared, row, true)
    await requireRoom(tx, declared, project_id)
    if (counter) await bump(tx, project_id, counter, 1)
    await log(tx, by, row, "created", { after: audited(row) })
    return row
  }

  /** Of a locked row. Throws 409 `conflict` where a new unique value is taken. */
  async function update(
    tx: Tx,
    by: ProjectActor,
    before: Row,
    changes: Partial<Row>,
    verb = "updated",
  ): Promise<Row> {
    const { id, project_id } = before // never those of a body
    const written = { ...changes, id, project_id, updated_at: now() }
    const after: Row = { ...before, ...written }
    if (unique && after[unique.column] !== before[unique.column])
      await refuseTaken(tx, declared, after)
    await tx
      .update(table)
      .set(written as never)
      .where(itself(before))
    await log(tx, by, after, verb, { before: audited(before), after: audited(after) })
    return after
  }

  /** Of a locked row. */
  async function remove(tx: Tx, by: ProjectActor, row: Row): Promise<void> {
    await tx.delete(table).where(itself(row))
    if (counter) await bump(tx, row.project_id, counter, -1)
    await log(tx, by, row, "deleted", { before: audited(row) })
  }

  /** Writes down what happened to a row, as `<name>.<verb>`. */
  const log = (tx: Tx, by: ProjectActor, row: Row, verb: string, change: audit.AuditChange) => {
    const { account_id, project_id } = { account_id: by.account_id, ...row }
    const target = { type: name, id: row.id }
    const action = `${name}.${verb}`
    return audit.record(tx, by, { account_id, project_id, action, target, ...change })
  }

  return {
    insert,
    update,
    remove,
    log,
    refuseTaken: (db: Reader, row: Owned & Partial<Row>) => refuseTaken(db, declared, row),
  }
}

/** Throws 409 `conflict` where another record of the project has the unique value of this one, or `is_taken`. */
async function refuseTaken<Table extends NounTable>(
  db: Reader,
  { table, unique }: NounDeclaration<Table, unknown>,
  row: Owned & Partial<Table["$inferSelect"]>,
  is_taken = false,
) {
  if (!unique) return
  const { column, message, reason = `${column}_taken` } = unique
  const value = String(row[column as keyof typeof row])
  const [known] = await selectBy(db, table, row.project_id, column, value)
  const id = known?.id as string | undefined // of a taken value it may be gone again
  if (!is_taken && (id === undefined || id === row.id)) return
  fail("conflict", message(value), { reason, ...(id !== undefined && { id }) })
}

/** Throws 409 `conflict` with the reason `too_many`. The counter does not count the new one yet. */
async function requireRoom<Table extends NounTable>(
  tx: Tx,
  { name, most, counter = "" }: NounDeclaration<Table, unknown>,
  project_id: string,
) {
  if (most === undefined) return
  await rowForUpdate(tx, projects, project_id) // two requests at once must not pass the limit together
  if ((await total(tx, project_id, counter)) < most) return
  tooMany(`A project has at most ${most} ${name}s. Delete one first.`, most)
}
