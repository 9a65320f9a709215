import { and, eq, getTableColumns, type SQL } from "drizzle-orm"
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core"
import * as audit from "../audit-log/audit-log"
import { fail, tooMany } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import { now } from "../core/time"
import { forUpdate } from "../store/columns"
import { bump, total } from "../store/counters"
import { type RowList, rowForUpdate, rowList } from "../store/rows"
import type { Reader, Tx } from "../store/store"
import { projects } from "./tables"

type NounTable = SQLiteTable & { id: SQLiteColumn }

/** The party that changes something of a project; a caller of the API is one. */
export interface ProjectActor extends audit.By {
  account_id: string
  project_id: string
}

/** The same of an account. */
type AccountActor = Omit<ProjectActor, "project_id"> & { project_id?: string }

/** A plain noun: records of a project or an account, which are made, listed, read, changed and removed. */
interface NounDeclaration<Table extends NounTable, Response> {
  /** One of them, as the audit log names it: `topic` makes `topic.created`. */
  name: string
  table: Table
  /** The column that names whose records they are. Default: `project_id`. */
  owner?: "account_id"
  /** The project that the audit log names. Default: the one of the row. */
  projectOf?: (row: Table["$inferSelect"]) => string
  /** Throws the 404 of a record that the owner does not have. */
  missing: () => never
  /** The column by which paths name a record, and whether a text can be its value. Default: the id. */
  named_by?: { column: keyof Table["$inferSelect"] & string; isName: (text: string) => boolean }
  /** The column that no two records of an owner share, and what a caller is told of a value that is taken. */
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
  /** The record of the contract. Default: of the row, the fields that the schema of the answer names. */
  toResponse?: (row: Table["$inferSelect"]) => Response
  /** What the audit log keeps of a row. Default: all but what looks like a secret. */
  audited?: (row: Table["$inferSelect"]) => unknown
}

/** The columns that `insert` fills. */
type FilledColumns = "id" | "account_id" | "project_id" | "created_at" | "updated_at"

type NewRow<Row> = Omit<Row, FilledColumns> & { id?: string; created_at?: string }

/** Conditions of a list: `indexed` by an index of the project's rows, `filter` row by row. */
export interface NounFilter {
  indexed?: SQL | undefined
  filter?: SQL | undefined
}

type NounRow<Table extends NounTable> = Table["$inferSelect"] & { id: string }

/** What every feature does with its records, made from their declaration. No row of another owner is ever met. */
export const noun = <Table extends NounTable, Response = Table["$inferSelect"]>(
  declared: NounDeclaration<Table, Response>,
) => ({
  toResponse: declared.toResponse,
  ...readingOf(declared),
  ...writingOf(declared),
})

type OwnerColumn = "project_id" | "account_id"

type AnyNoun = NounDeclaration<NounTable, unknown>

const ownerColumn = ({ owner }: Pick<AnyNoun, "owner">): OwnerColumn => owner ?? "project_id"

const ownerOf = (declared: Pick<AnyNoun, "owner">, row: object): string =>
  (row as Record<OwnerColumn, string>)[ownerColumn(declared)]

const owned = (declared: Pick<AnyNoun, "owner" | "table">, owner: string) =>
  eq(columnsOf(declared.table)[ownerColumn(declared)] as SQLiteColumn, owner)

/** The rows of an owner that have a value in a column. */
const selectBy = (
  db: Reader,
  declared: Pick<AnyNoun, "owner" | "table">,
  owner: string,
  column: string,
  value: string,
) =>
  db
    .select()
    .from(declared.table as SQLiteTable)
    .where(
      and(owned(declared, owner), eq(columnsOf(declared.table)[column] as SQLiteColumn, value)),
    )

const columnsOf = (table: NounTable) => getTableColumns(table) as Record<string, SQLiteColumn>

function readingOf<Table extends NounTable>(declared: NounDeclaration<Table, unknown>) {
  type Row = NounRow<Table>
  const { table, missing, counter, named_by = BY_ID } = declared

  /** By its name, or by its id, which clients of another service know a record by. */
  async function named(path_name: string, rowsBy: (column: string) => PromiseLike<unknown[]>) {
    const [row] = named_by.isName(path_name) ? await rowsBy(named_by.column) : []
    const [other] = !row && named_by !== BY_ID && isUuid(path_name) ? await rowsBy("id") : [row]
    return other as Row | undefined
  }

  /** Undefined where the owner has no record of this name. */
  const lookup = (db: Reader, owner: string, path_name: string) =>
    named(path_name, (column) => selectBy(db, declared, owner, column, path_name))

  /** Throws 404. */
  const find = async (db: Reader, owner: string, path_name: string): Promise<Row> =>
    (await lookup(db, owner, path_name)) ?? missing()

  /** As `find`, and locks the row until the transaction ends. */
  async function findForUpdate(tx: Tx, owner: string, path_name: string): Promise<Row> {
    const rowsBy = (column: string) => forUpdate(selectBy(tx, declared, owner, column, path_name))
    return (await named(path_name, rowsBy)) ?? missing()
  }

  /** Newest first. */
  function list(db: Reader, owner: string, given: NounFilter = {}): RowList<Row> {
    const of = owned(declared, owner)
    const wanted = { owner, of, filter: undefined, ...given, missing }
    const rows = rowList(db, table, wanted) as RowList<Row>
    const is_all = !given.filter && !given.indexed
    return counter && is_all ? { ...rows, total: () => total(db, owner, counter) } : rows
  }

  return { lookup, find, forUpdate: findForUpdate, list }
}

const BY_ID = { column: "id", isName: isUuid }

function writingOf<Table extends NounTable>(declared: NounDeclaration<Table, unknown>) {
  type Row = NounRow<Table>
  const { name, table, unique, counter, audited = (row: Row): unknown => row } = declared
  const itself = (row: Row) => and(owned(declared, ownerOf(declared, row)), eq(table.id, row.id))

  /** Throws 409 `conflict` where the unique value is taken, and at the limit. */
  async function insert(tx: Tx, by: AccountActor, given: NewRow<Row>): Promise<Row> {
    const { created_at: at = now() } = given
    const { account_id, project_id } = by
    const fields = { id: newId(), ...given, account_id, project_id, created_at: at, updated_at: at }
    const own = Object.entries(fields).filter(([column]) => column in columnsOf(table))
    const row = Object.fromEntries(own) as unknown as Row
    const query = tx.insert(table).values(row as never)
    const added = unique ? await query.onConflictDoNothing().returning() : [await query]
    if (added.length === 0) await refuseTaken(tx, declared, row, true)
    const owner = ownerOf(declared, row)
    await requireRoom(tx, declared, owner)
    if (counter) await bump(tx, owner, counter, 1)
    await log(tx, by, row, "created", { after: audited(row) })
    return row
  }

  /** Of a locked row. Throws 409 `conflict` where a new unique value is taken. */
  async function update(
    tx: Tx,
    by: AccountActor,
    before: Row,
    changes: Partial<Row>,
    verb = "updated",
  ): Promise<Row> {
    // What a row is called and whose it is stays, even where a body names it.
    const { id: _, project_id: __, account_id: ___, ...own } = changes as Record<string, unknown>
    const written = "updated_at" in before ? { ...own, updated_at: now() } : own
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
  async function remove(tx: Tx, by: AccountActor, row: Row): Promise<void> {
    await tx.delete(table).where(itself(row))
    if (counter) await bump(tx, ownerOf(declared, row), counter, -1)
    await log(tx, by, row, "deleted", { before: audited(row) })
  }

  /** Writes down what happened to a row, as `<name>.<verb>`. */
  const log = (tx: Tx, by: AccountActor, row: Row, verb: string, change: audit.AuditChange) => {
    const named: { account_id: string; project_id?: string } = { account_id: by.account_id, ...row }
    const { account_id, project_id = declared.projectOf?.(row) ?? null } = named
    const target = { type: name, id: row.id }
    const action = `${name}.${verb}`
    return audit.record(tx, by, { account_id, project_id, action, target, ...change })
  }

  return {
    insert,
    update,
    remove,
    log,
    refuseTaken: (db: Reader, row: { id: string } & Partial<Row>) => refuseTaken(db, declared, row),
  }
}

/** Throws 409 `conflict` where another record of the owner has the unique value of this one, or `is_taken`. */
async function refuseTaken<Table extends NounTable>(
  db: Reader,
  declared: NounDeclaration<Table, unknown>,
  row: { id: string } & Partial<Table["$inferSelect"]>,
  is_taken = false,
) {
  const { unique } = declared
  if (!unique) return
  const { column, message, reason = `${column}_taken` } = unique
  const value = String(row[column as keyof typeof row])
  const [known] = await selectBy(db, declared, ownerOf(declared, row), column, value)
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
