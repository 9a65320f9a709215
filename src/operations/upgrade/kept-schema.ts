import type { SQL } from "bun"
import { connect } from "../../store/postgres-pool"

/** Where the tables of before an upgrade lie. */
const KEPT = "belfry_before_upgrade"
const OURS = "public"

/** Every table whose rows a migration may change. */
const TABLES = `SELECT c.oid, c.relname AS name, c.reloptions AS options FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname`

interface TableRow {
  oid: number
  name: string
  options: string[] | null
}

/**
 * Copies every table with its rows, keys, indexes and settings into a schema of its own, within the server
 * and in one transaction: no row travels. What an earlier attempt kept is replaced.
 */
export const keepSchema = (url: string): Promise<void> =>
  withServer(url, (pool) =>
    pool.begin(async (tx) => {
      await tx.unsafe(`DROP SCHEMA IF EXISTS ${KEPT} CASCADE`)
      await tx.unsafe(`CREATE SCHEMA ${KEPT}`)
      const tables = (await tx.unsafe(TABLES, [OURS])) as TableRow[]
      for (const table of tables) await copyTable(tx, table)
      for (const { oid, name } of tables) await copyConstraints(tx, oid, name, "f")
    }),
  )

/** Puts the kept tables in the place of those that are there, in one transaction. */
export const returnSchema = (url: string): Promise<void> =>
  withServer(url, (pool) =>
    pool.begin(async (tx) => {
      const kept = (await tx.unsafe(TABLES, [KEPT])) as TableRow[]
      if (kept.length === 0) return // it was done before
      for (const { name } of (await tx.unsafe(TABLES, [OURS])) as TableRow[])
        await tx.unsafe(`DROP TABLE ${OURS}.${quoted(name)} CASCADE`)
      for (const { name } of kept)
        await tx.unsafe(`ALTER TABLE ${KEPT}.${quoted(name)} SET SCHEMA ${OURS}`)
      await tx.unsafe(`DROP SCHEMA ${KEPT} CASCADE`)
    }),
  )

export const dropKeptSchema = (url: string): Promise<void> =>
  withServer(url, async (pool) => {
    await pool.unsafe(`DROP SCHEMA IF EXISTS ${KEPT} CASCADE`)
  })

async function withServer(url: string, act: (pool: SQL) => Promise<void>): Promise<void> {
  const pool = connect(url, { max: 1, prepare: false })
  try {
    await act(pool)
  } finally {
    await pool.close()
  }
}

async function copyTable(tx: SQL, { oid, name, options }: TableRow): Promise<void> {
  const from = `${OURS}.${quoted(name)}`
  const to = `${KEPT}.${quoted(name)}`
  const settings = options?.length ? ` WITH (${options.join(", ")})` : ""
  const alike = "INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING IDENTITY INCLUDING STORAGE"
  await tx.unsafe(`CREATE TABLE ${to} (LIKE ${from} ${alike})${settings}`)
  await tx.unsafe(`INSERT INTO ${to} SELECT * FROM ${from}`)
  for (const kind of ["p", "u", "c"]) await copyConstraints(tx, oid, name, kind)
  // Under their own names: a migration may drop one by its name.
  const indexes = (await tx.unsafe(
    `SELECT pg_get_indexdef(i.indexrelid) AS made FROM pg_index i WHERE i.indrelid = $1
     AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = $1)`,
    [oid],
  )) as { made: string }[]
  for (const { made } of indexes) await tx.unsafe(made.replace(` ON ${OURS}.`, ` ON ${KEPT}.`))
}

/** Primary keys, unique ones and checks (`p`, `u`, `c`), or those that refer to another table (`f`). */
async function copyConstraints(tx: SQL, oid: number, name: string, kind: string): Promise<void> {
  const found = (await tx.unsafe(
    `SELECT conname AS name, pg_get_constraintdef(oid) AS made FROM pg_constraint
     WHERE conrelid = $1 AND contype = $2 ORDER BY conname`,
    [oid, kind],
  )) as { name: string; made: string }[]
  for (const one of found) {
    const made = one.made.replace(/REFERENCES (?:public\.)?/, `REFERENCES ${KEPT}.`)
    await tx.unsafe(
      `ALTER TABLE ${KEPT}.${quoted(name)} ADD CONSTRAINT ${quoted(one.name)} ${made}`,
    )
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
