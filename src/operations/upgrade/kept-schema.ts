import type { SQL } from "bun"
import { lockMigrations } from "../../store/migrate"
import { embedded } from "../../store/migrations"
import { connect } from "../../store/postgres-pool"

/** Where the tables of before an upgrade lie. */
const KEPT = "belfry_before_upgrade"

/** In that schema: the names of tables beside ours, which another application has. */
const OTHERS = "belfry_other_tables"

/** Every table of a schema, and whether this user may drop it. */
const TABLES = `SELECT c.oid, c.relname AS name, c.reloptions AS options,
  pg_has_role(c.relowner, 'USAGE') AS may_drop FROM pg_class c
  WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' ORDER BY c.relname`

/** The tables that any migration of this version has made. */
const ownTables = () =>
  new Set([
    "belfry_migrations",
    ...embedded.postgres.flatMap(({ sql }) =>
      [...sql.matchAll(/^CREATE TABLE "(\w+)"/gm)].map(([, name = ""]) => name),
    ),
  ])

/** The schema of our tables, which the settings of the database or its user may name, as SQL has it. */
async function ownSchema(tx: SQL): Promise<string> {
  const [row] = await tx.unsafe("SELECT quote_ident(current_schema()) AS name")
  return String(row?.name)
}

interface TableRow {
  oid: number
  name: string
  options: string[] | null
  may_drop: boolean
}

/**
 * Copies every table of ours with its rows, keys, indexes and settings into a schema of its own, within the
 * server and in one transaction: no row travels. What an earlier attempt kept is replaced.
 */
export const keepSchema = (url: string): Promise<void> =>
  withServer(url, (pool) =>
    pool.begin(async (tx) => {
      await lockMigrations(tx) // until it is committed: `dropKeptSchema` waits for it
      await tx.unsafe(`DROP SCHEMA IF EXISTS ${KEPT} CASCADE`)
      await tx.unsafe(`CREATE SCHEMA ${KEPT}`)
      const ours = await ownSchema(tx)
      const own = ownTables()
      const all = (await tx.unsafe(TABLES, [ours])) as TableRow[]
      const tables = all.filter(({ name }) => own.has(name))
      await tx.unsafe(`CREATE TABLE ${KEPT}.${OTHERS} (name text)`)
      for (const { name } of all.filter(({ name }) => !own.has(name)))
        await tx.unsafe(`INSERT INTO ${KEPT}.${OTHERS} VALUES ($1)`, [name])
      for (const table of tables) await copyTable(tx, ours, table)
      for (const table of tables) await copyConstraints(tx, ours, table, "f")
    }),
  )

/**
 * Puts the kept tables in the place of ours that are there, in one transaction. What the new version has
 * made goes. Tables of another application stay as they are.
 */
export const returnSchema = (url: string): Promise<void> =>
  withServer(url, (pool) =>
    pool.begin(async (tx) => {
      await lockMigrations(tx) // one that was killed may still be committed by the server
      const all = (await tx.unsafe(TABLES, [KEPT])) as TableRow[]
      if (all.length === 0) return // it was done before
      const kept = all.filter(({ name }) => name !== OTHERS)
      const rows = (await tx.unsafe(`SELECT name FROM ${KEPT}.${OTHERS}`)) as { name: string }[]
      const others = new Set(rows.map(({ name }) => name))
      const ours = await ownSchema(tx)
      const there = (await tx.unsafe(TABLES, [ours])) as TableRow[]
      for (const { name, may_drop } of there)
        if (may_drop && !others.has(name))
          await tx.unsafe(`DROP TABLE ${ours}.${quoted(name)} CASCADE`)
      for (const { name } of kept)
        await tx.unsafe(`ALTER TABLE ${KEPT}.${quoted(name)} SET SCHEMA ${ours}`)
      await tx.unsafe(`DROP SCHEMA ${KEPT} CASCADE`)
    }),
  )

/** Whether tables are kept: from the moment when they are whole until the upgrade is over. */
export const hasKeptSchema = (url: string): Promise<boolean> =>
  withServer(url, async (pool) => {
    const [row] = await pool.unsafe("SELECT to_regnamespace($1) IS NOT NULL AS is_there", [KEPT])
    return row?.is_there === true
  })

/**
 * Nothing is kept any more. What a killed process was about to keep may be committed by the server only now. It would
 * stay, and every node would wait for the end of an upgrade that is over.
 */
export const dropKeptSchema = (url: string): Promise<void> =>
  withServer(url, (pool) =>
    pool.begin(async (tx) => {
      await lockMigrations(tx)
      await tx.unsafe(`DROP SCHEMA IF EXISTS ${KEPT} CASCADE`)
    }),
  )

/** Longer than a node may be silent before its work is released. */
const ALIVE = "20 seconds"

/** How many nodes serve the database, this machine's own one included. */
export const servingNodes = (url: string): Promise<number> =>
  withServer(url, async (pool) => {
    const since = `(extract(epoch FROM clock_timestamp() - interval '${ALIVE}') * 1000)::bigint`
    const [row] = await pool.unsafe(`SELECT count(*)::int AS n FROM nodes WHERE seen_at > ${since}`)
    return Number(row?.n ?? 0)
  })

async function withServer<Answer>(
  url: string,
  act: (pool: SQL) => Promise<Answer>,
): Promise<Answer> {
  const pool = connect(url, { max: 1, prepare: false })
  try {
    return await act(pool)
  } finally {
    await pool.close()
  }
}

async function copyTable(tx: SQL, ours: string, table: TableRow): Promise<void> {
  const { oid, name, options } = table
  const from = `${ours}.${quoted(name)}`
  const to = `${KEPT}.${quoted(name)}`
  const settings = options?.length ? ` WITH (${options.join(", ")})` : ""
  const alike = "INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING IDENTITY INCLUDING STORAGE"
  await tx.unsafe(`CREATE TABLE ${to} (LIKE ${from} ${alike})${settings}`)
  await tx.unsafe(`INSERT INTO ${to} SELECT * FROM ${from}`)
  for (const kind of ["p", "u", "c"]) await copyConstraints(tx, ours, table, kind)
  // Under their own names: a migration may drop one by its name.
  const indexes = (await tx.unsafe(
    `SELECT pg_get_indexdef(i.indexrelid) AS made FROM pg_index i WHERE i.indrelid = $1
     AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = $1)`,
    [oid],
  )) as { made: string }[]
  for (const { made } of indexes) await tx.unsafe(made.replace(` ON ${ours}.`, ` ON ${KEPT}.`))
}

/** Primary keys, unique ones and checks (`p`, `u`, `c`), or those that refer to another table (`f`). */
async function copyConstraints(tx: SQL, ours: string, { oid, name }: TableRow, kind: string) {
  const found = (await tx.unsafe(
    `SELECT conname AS name, pg_get_constraintdef(oid) AS made FROM pg_constraint
     WHERE conrelid = $1 AND contype = $2 ORDER BY conname`,
    [oid, kind],
  )) as { name: string; made: string }[]
  for (const one of found) {
    const plain = one.made.replace(`REFERENCES ${ours}.`, "REFERENCES ")
    const made = plain.replace("REFERENCES ", `REFERENCES ${KEPT}.`)
    await tx.unsafe(
      `ALTER TABLE ${KEPT}.${quoted(name)} ADD CONSTRAINT ${quoted(one.name)} ${made}`,
    )
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
