import type { Statement as Compiled, Database } from "bun:sqlite"
import {
  type Column,
  type GetColumnData,
  getTableColumns,
  getTableName,
  type SQL,
  sql,
} from "drizzle-orm"
import type { SQLiteTable } from "drizzle-orm/sqlite-core"
import { uuidOfBytes } from "../core/ids"
import { isPlain, postgresType } from "./columns"
import { directly } from "./direct-statements"
import { requirePermit } from "./group-commit"
import type { Reader, Tx } from "./store"

type Holes = Record<string, Column>
type Slots<Named extends Holes> = { [Name in keyof Named]: SQL<GetColumnData<Named[Name]>> }
type Values<Named extends Holes> = { [Name in keyof Named]: GetColumnData<Named[Name]> }

type Input = Record<string, unknown>

interface Statement<Rows> {
  execute(values: Input): Promise<Rows>
}

/** The driver's connection behind a SQLite `Reader` or `Tx`; `sqlite.ts` enters both. */
export const rawSqlite = new WeakMap<Reader, Database>()

/**
 * A statement for a hot path: compiled once a connection instead of once a call (9 µs against
 * 65 µs an insert). `holes` names its values by the columns they belong to, which gives them a
 * type and the column's own conversion. On SQLite there is one `Tx` for the life of the store,
 * so it is compiled once; on Postgres once a transaction, where the round trip hides the cost.
 */
export function prepared<Db extends Reader, Named extends Holes, Rows>(
  holes: Named,
  build: (database: Db, slots: Slots<Named>) => { prepare(): Statement<Rows> },
) {
  const compiled = new WeakMap<Db, (values: Input) => Promise<Rows> | Rows>()
  const slots = slotsFor(holes)

  return async (database: Db, values: Values<Named>): Promise<Rows> => {
    let execute = compiled.get(database)
    if (!execute) {
      const statement = build(database, slots).prepare()
      const direct = database.isAlone ? directly(statement) : undefined
      execute = (direct as typeof execute) ?? ((given) => statement.execute(given))
      compiled.set(database, execute)
    }
    return await execute(values)
  }
}

/**
 * As `prepared`, where the process is alone: the answer is there at once, so that nothing is committed
 * between a read and what its caller makes of it.
 */
export function preparedAtOnce<Named extends Holes, Row>(
  holes: Named,
  build: (database: Reader, slots: Slots<Named>) => { prepare(): Statement<Row[]> },
) {
  const compiled = new WeakMap<Reader, (values: Input) => Row[]>()
  const slots = slotsFor(holes)

  return (database: Reader, values: Values<Named>): Row[] => {
    const known = compiled.get(database)
    if (known) return known(values)
    const execute = directly(build(database, slots).prepare()) as
      | ((values: Input) => Row[])
      | undefined
    if (!execute) throw new Error("This statement cannot be read at once")
    compiled.set(database, execute)
    return execute(values)
  }
}

type Row<Table extends SQLiteTable> = Table["$inferInsert"]

/**
 * Writes whole rows on a hot path: on SQLite one bare prepared statement a row, on Postgres one
 * statement for all of them. A column that the database fills in is left to it; a value that is
 * missing is NULL. `quiet`: listeners of `onChanged` do not hear of it.
 */
export function inserter<Table extends SQLiteTable>(table: Table, { quiet = false } = {}) {
  const write = rowWriter(table, "", { quiet })
  return async (tx: Tx, rows: Row<Table>[]): Promise<void> => {
    await write(tx, rows as Record<string, unknown>[])
  }
}

/** As `inserter`, but a row that exists already is left alone. Returns which rows are new. */
export function newRowInserter<Table extends SQLiteTable>(table: Table, key: keyof Row<Table>) {
  const write = rowWriter(table, " ON CONFLICT DO NOTHING", { key: key as string })
  return (tx: Tx, rows: Row<Table>[]) => write(tx, rows as Record<string, unknown>[])
}

/**
 * Adds numbers to rows on a hot path: the columns of `sums` to those of the row with the same `key`, or a new row. Given
 * rows that are alike become one. They are written in the order of their keys, so that no two writers wait for each
 * other. On Postgres, where several nodes write at once, a row is shared among `shards`.
 */
export function adder<
  Table extends SQLiteTable,
  Key extends keyof Row<Table> & string,
  Sum extends keyof Row<Table> & string,
>(table: Table, key: Key[], sums: Sum[], shards: number) {
  type Added = Omit<Row<Table>, "shard">
  const all = getTableColumns(table)
  const own = getTableName(table)
  const named = (names: string[]) => names.map((name) => all[name]?.name)
  const set = named(sums).map((name) => `"${name}" = "${own}"."${name}" + excluded."${name}"`)
  const target = named([...key, "shard"]).map((name) => `"${name}"`)
  const conflict = ` ON CONFLICT (${target.join(", ")}) DO UPDATE SET ${set.join(", ")}`
  const write = rowWriter(table, conflict, {})
  return async (tx: Tx, rows: Added[]): Promise<void> => {
    const shard = tx.isAlone ? 0 : Math.floor(Math.random() * shards)
    const merged = new Map<string, Record<string, unknown>>()
    for (const row of rows as Record<string, unknown>[]) {
      let place = ""
      for (const name of key) place += `${row[name]}\0`
      const known = merged.get(place)
      if (!known) merged.set(place, { ...row, shard })
      else for (const sum of sums) known[sum] = (known[sum] as number) + (row[sum] as number)
    }
    const ordered = [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
    await write(
      tx,
      ordered.filter((row) => sums.some((sum) => row[sum] !== 0)),
    )
  }
}

interface Change<Where, Set, Clear> {
  /** The row that is meant, and what has to be true of it still. */
  where: Where[]
  set: Set[]
  /** Become NULL. */
  clear: Clear[]
  /** Listeners of `onChanged` do not hear of it. */
  quiet?: boolean
}

/**
 * Changes many rows on a hot path, as `inserter` writes them: each row its own values, found by the
 * columns of `where`, of which the first is the key. Returns the keys of the rows that changed.
 */
export function updater<
  Table extends SQLiteTable,
  Where extends keyof Row<Table> & string,
  Set extends keyof Row<Table> & string,
>(table: Table, change: Change<Where, Set, keyof Row<Table> & string>) {
  const [set, where] = [columnsNamed(table, change.set), columnsNamed(table, change.where)]
  const nulls = columnsNamed(table, change.clear).map(([, { name }]) => `"${name}" = NULL`)
  const own = getTableName(table)
  const assign = (value: ValueOf) =>
    [...set.map(([, column]) => `"${column.name}" = ${value(column)}`), ...nulls].join(", ")
  const key = where[0]?.[1].name ?? ""
  const run = rowsRunner(own, [...set, ...where], {
    one: `UPDATE "${own}" SET ${assign(hole)} WHERE ${matching(own, where, hole)}`,
    head: `UPDATE "${own}" SET ${assign(given)} FROM`,
    tail: ` WHERE ${matching(own, where, given)} RETURNING "${own}"."${key}"`,
    ...{ key, quiet: change.quiet ?? false },
  })
  return (tx: Tx, rows: Pick<Row<Table>, Where | Set>[]) => run(tx, rows)
}

/**
 * Deletes many rows on a hot path: each is found by all of the columns of `where`, which hold the
 * primary key. Returns the values of the first one, of the rows that were there. On Postgres it locks them
 * in the order of their keys, so that two transactions with common rows cannot deadlock. `quiet`: as
 * for `inserter`.
 */
export function remover<Table extends SQLiteTable, Where extends keyof Row<Table> & string>(
  table: Table,
  where: Where[],
  { quiet = false } = {},
) {
  const columns = columnsNamed(table, where)
  const own = getTableName(table)
  const key = columns[0]?.[1].name ?? ""
  const row = columns.map(([, column]) => `"${own}"."${column.name}"`).join(", ")
  const locked = ` ON ${matching(own, columns, given)} ORDER BY ${row} FOR UPDATE OF "${own}") AS locked`
  const same = matching(own, columns, (column) => `locked."${column.name}"`)
  const run = rowsRunner(own, columns, {
    one: `DELETE FROM "${own}" WHERE ${matching(own, columns, hole)}`,
    head: `DELETE FROM "${own}" USING (SELECT ${row} FROM "${own}" JOIN`,
    tail: `${locked} WHERE ${same} RETURNING "${own}"."${key}"`,
    ...{ key, quiet },
  })
  return (tx: Tx, rows: Pick<Row<Table>, Where>[]) => run(tx, rows)
}

function columnsNamed(table: SQLiteTable, names: string[]): [string, Column][] {
  const all = getTableColumns(table)
  return names.map((name) => {
    const column = all[name]
    if (!column) throw new Error(`No column "${name}"`)
    return [name, column]
  })
}

type ValueOf = (column: Column) => string

const hole: ValueOf = () => "?"
const given: ValueOf = (column) => unpack(column, "given.")

/** The condition that the columns of a row have these values. */
const matching = (own: string, columns: [string, Column][], value: ValueOf) =>
  columns.map(([, column]) => `"${own}"."${column.name}" = ${value(column)}`).join(" AND ")

function rowWriter(
  table: SQLiteTable,
  conflict: string,
  { key, quiet = false }: { key?: string; quiet?: boolean },
) {
  const columns = Object.entries(getTableColumns(table)).filter(([, column]) => !isFilled(column))
  const names = columns.map(([, column]) => `"${column.name}"`).join(", ")
  const written = getTableName(table)
  const into = `INSERT INTO "${written}" (${names})`
  const picks = columns.map(([, column]) => unpack(column)).join(", ")
  return rowsRunner(written, columns, {
    one: `${into} VALUES (${columns.map(() => "?").join(", ")})${conflict}`,
    head: `${into} SELECT ${picks} FROM`,
    tail: `${conflict}${key ? ` RETURNING "${key}"` : ""}`,
    ...{ key, quiet },
  })
}

interface Texts {
  /** SQLite: one run a row. */
  one: string
  /** Postgres: what stands around the rows, which are called `given`. */
  head: string
  tail: string
  /** Asks for the keys of the rows that were written. */
  key: string | undefined
  quiet?: boolean
}

function rowsRunner(written: string, columns: [string, Column][], texts: Texts) {
  const { one, head, tail, key, quiet = false } = texts
  const encoders = columns.map(([name, column]) => encoderOf(name, column))
  const keyColumn = columns.find(([name]) => name === key)?.[1]
  const values: never[] = [] // one for all rows: a driver binds at once
  const compiled = new WeakMap<Database, Compiled>()
  const kinds = columns.map(([, column]) => `"${column.name}" ${transport(column)}`).join(", ")
  const before = sql.raw(`${head} jsonb_to_recordset(`)
  const behind = sql.raw(`::text::jsonb) AS given(${kinds})${tail}`)

  return async (tx: Tx, rows: Record<string, unknown>[]): Promise<Set<unknown>> => {
    const fresh = new Set<unknown>()
    if (rows.length === 0) return fresh
    const database = rawSqlite.get(tx)
    if (database) {
      const { changes, effects } = requirePermit()
      if (!quiet) changes.note(written, effects)
      const statement = compiled.get(database) ?? database.prepare(one)
      compiled.set(database, statement)
      for (const row of rows) {
        for (let at = 0; at < encoders.length; at++) values[at] = encoders[at]?.(row) as never
        const { changes } = statement.run(values as never)
        if (changes > 0 && key) fresh.add(row[key])
      }
      values.length = 0 // the last content would stay in memory until the next one
      return fresh
    }
    if (!quiet) tx.noteChange(written)
    const query = sql`${before}${JSON.stringify(rows.map((row) => asJson(columns, row)))}${behind}`
    const raw = tx as unknown as { execute(query: SQL): Promise<Record<string, unknown>[]> }
    const answer = await raw.execute(query)
    if (key) for (const row of answer) fresh.add(keyColumn?.mapFromDriverValue(row[key]))
    return fresh
  }
}

/** `position` alone: its default is the database's business. */
const isFilled = (column: Column) => column.hasDefault

function encode(column: Column, value: unknown) {
  if (value === null || value === undefined) return null
  return column.mapToDriverValue(value)
}

/**
 * Most columns take a value as it is, so most encoders call nothing. A text that is that of the row before,
 * such as the id of the project, is encoded once.
 */
function encoderOf(name: string, column: Column): (row: Record<string, unknown>) => unknown {
  if (isPlain(column).encoded) return (row) => row[name] ?? null
  let before: unknown = null
  let encoded: unknown = null
  return (row) => {
    const value = row[name]
    if (typeof value !== "string") return encode(column, value)
    if (value !== before) {
      encoded = encode(column, value) // it may throw
      before = value
    }
    return encoded
  }
}

function asJson(columns: [string, Column][], row: Record<string, unknown>) {
  const packed: Record<string, unknown> = {}
  for (const [name, column] of columns) {
    const value = encode(column, row[name])
    const isId = value !== null && postgresType(column) === "uuid"
    if (isId) packed[column.name] = uuidOfBytes(value as Uint8Array)
    else
      packed[column.name] =
        value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value
  }
  return packed
}

const isBytes = (column: Column) => postgresType(column) === "bytea"
const transport = (column: Column) => (isBytes(column) ? "text" : postgresType(column))
const unpack = (column: Column, from = "") =>
  isBytes(column) ? `decode(${from}"${column.name}", 'base64')` : `${from}"${column.name}"`

function slotsFor<Named extends Holes>(holes: Named) {
  const slots = Object.entries(holes).map(([name, column]) => [
    name,
    sql`${sql.param(sql.placeholder(name), column)}`,
  ])
  return Object.fromEntries(slots) as Slots<Named>
}
