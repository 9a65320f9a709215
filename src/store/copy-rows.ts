import { Database } from "bun:sqlite"
import { type PostgresConnection, type SharedTable, sharedTables } from "./shared-tables"

/** Rows whose sizes are asked for at once. */
const SIZES_AT_ONCE = 2000
/** Of the rows that are in memory at once; one row may be larger. */
const BYTES_AT_ONCE = 4 * 1024 * 1024
/** Beside what is long in it. */
const ROW_BYTES = 200
/** A statement of Postgres takes 65,535 values. */
const MOST_VALUES = 30_000

/**
 * Copies every row of a Postgres database into an SQLite file with the same schema and no rows. To be
 * called in a transaction of isolation level repeatable read, so that all rows are of one moment. Holds
 * some 4 MB of rows at once.
 */
export async function copyFromPostgres(
  postgres: PostgresConnection,
  target: Database,
): Promise<void> {
  for (const table of await sharedTables(target, postgres)) {
    const insert = inserterInto(target, table)
    for await (const part of rowsIn(postgres, table)) insert(part)
  }
}

type Row = unknown[]

/** Two cursors over the same rows of one snapshot: the first tells how large they are. */
async function* rowsIn(postgres: PostgresConnection, table: SharedTable): AsyncGenerator<Row[]> {
  const order = table.key.map(quoted).join(", ")
  const from = `FROM ${quoted(table.name)} ORDER BY ${order}`
  const long = table.columns.filter(({ is_long }) => is_long)
  const lengths = long.map(({ name }) => `coalesce(octet_length(${quoted(name)}), 0)`)
  const names = table.columns.map(({ name }) => quoted(name)).join(", ")
  await postgres.unsafe(
    `DECLARE belfry_sizes NO SCROLL CURSOR FOR SELECT ${["0", ...lengths].join(" + ")} ${from}`,
  )
  await postgres.unsafe(`DECLARE belfry_rows NO SCROLL CURSOR FOR SELECT ${names} ${from}`)
  for (;;) {
    const fetched = await postgres.unsafe(`FETCH ${SIZES_AT_ONCE} FROM belfry_sizes`).values()
    const sizes = (fetched as Row[]).map(([bytes]) => Number(bytes) + ROW_BYTES)
    if (sizes.length === 0) break
    for (const count of portions(sizes)) {
      yield (await postgres.unsafe(`FETCH ${count} FROM belfry_rows`).values()) as Row[]
    }
  }
  await postgres.unsafe("CLOSE belfry_sizes")
  await postgres.unsafe("CLOSE belfry_rows")
}

/** Numbers of rows that are not too large together. */
function portions(sizes: number[]): number[] {
  const counts: number[] = []
  let count = 0
  let bytes = 0
  for (const size of sizes) {
    if (count > 0 && bytes + size > BYTES_AT_ONCE) {
      counts.push(count)
      count = 0
      bytes = 0
    }
    count += 1
    bytes += size
  }
  return [...counts, count]
}

function inserterInto(target: Database, { name, columns }: SharedTable): (rows: Row[]) => void {
  const names = columns.map((column) => quoted(column.name)).join(", ")
  const holes = columns.map(() => "?").join(", ")
  const statement = target.prepare(`INSERT INTO ${quoted(name)} (${names}) VALUES (${holes})`)
  const valuesOf = (row: Row) =>
    columns.map(({ toSqlite, is_position }, at) => {
      if (is_position) return 0
      return row[at] === null ? null : toSqlite(row[at] as never)
    })
  return target.transaction((rows: Row[]) => {
    for (const row of rows) statement.run(...(valuesOf(row) as never[]))
  })
}

/**
 * Copies every row of an SQLite file into a Postgres database with the same schema and no rows. To be called
 * in a transaction, so that a failure leaves nothing. Postgres fills in the order of commits anew. Holds
 * some 4 MB of rows at once. `onRows` hears how many rows of each part were copied.
 */
export async function copyToPostgres(
  source: Database,
  postgres: PostgresConnection,
  onRows: (rows: number) => void,
): Promise<void> {
  for (const table of await sharedTables(source, postgres)) {
    for (const part of partsOf(source, table)) {
      await insertInto(postgres, table, part)
      onRows(part.length)
    }
  }
}

/** As `copyToPostgres`, of the SQLite file with this path. */
export async function copyFileToPostgres(
  path: string,
  ...rest: [postgres: PostgresConnection, onRows: (rows: number) => void]
): Promise<void> {
  using source = new Database(path, { readonly: true, strict: true })
  await copyToPostgres(source, ...rest)
}

function* partsOf(source: Database, table: SharedTable): Generator<Row[]> {
  const columns = columnsFor(table)
  const names = columns.map(({ name }) => quoted(name)).join(", ")
  const order = table.key.map(quoted).join(", ")
  const all = source.prepare<Record<string, unknown>, []>(
    `SELECT ${names} FROM ${quoted(table.name)} ORDER BY ${order}`,
  )
  const most = Math.max(1, Math.floor(MOST_VALUES / columns.length))
  let part: Row[] = []
  let bytes = 0
  for (const row of all.iterate()) {
    const values = columns.map(({ name, toPostgres }) =>
      row[name] === null ? null : toPostgres(row[name] as never),
    )
    bytes += values.reduce<number>((sum, value) => sum + lengthOf(value), ROW_BYTES)
    part.push(values)
    if (part.length < most && bytes < BYTES_AT_ONCE) continue
    yield part
    part = []
    bytes = 0
  }
  if (part.length > 0) yield part
}

const columnsFor = ({ columns }: SharedTable) => columns.filter(({ is_position }) => !is_position)

const lengthOf = (value: unknown) =>
  typeof value === "string" || value instanceof Uint8Array ? value.length : 0

async function insertInto(postgres: PostgresConnection, table: SharedTable, rows: Row[]) {
  const columns = columnsFor(table)
  const names = columns.map(({ name }) => quoted(name)).join(", ")
  const holes = rows.map(
    (_, row) => `(${columns.map((_, at) => `$${row * columns.length + at + 1}`).join(", ")})`,
  )
  const text = `INSERT INTO ${quoted(table.name)} (${names}) VALUES ${holes.join(", ")}`
  await postgres.unsafe(text, rows.flat())
}

/** Names of ours have no quotation marks. */
const quoted = (name: string) => `"${name}"`
