import { beforeAll, expect, test } from "bun:test"
import { mkdirSync, rmSync } from "node:fs"
import { SQL } from "bun"
import manifest from "../../package.json" with { type: "json" }
import { hasKeptSchema } from "../../src/operations/upgrade/kept-database"
import { embedded } from "../../src/store/migrations"
import { NEXT_VERSION, type NextRelease, nextRelease } from "../harness/next-release"
import { expectNoneLost } from "../harness/nothing-lost"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import {
  besidesGoneFiles,
  FIXTURE_KEY,
  fixturesOf,
  keptRows,
  statementsOf,
} from "../harness/upgrade"
import { ended, upgradeBox } from "./upgrade-box"
import { KILLS, killedInBackup, oldServerKilled, upgradeKilled } from "./upgrade-kills"

const absent = noPostgres()
if (absent) note("upgrades on Postgres: start the tests by `bun run test`")

const NOTHING_PENDING = {
  code: 0,
  stdout: `${JSON.stringify({ engine: "postgres", pending: [] })}\n`,
  stderr: "",
}

let release: NextRelease
beforeAll(async () => {
  if (sizes.on_postgres) release = await nextRelease()
})

test.skipIf(absent || !sizes.on_postgres)(
  "on Postgres a sick version gives its place back, and a healthy one keeps it",
  async () => {
    await using database = await freshDatabase()
    const env = { DATABASE_URL: database.url, BELFRY_UPGRADE_READY: "90s" }
    await using box = await upgradeBox({ release, fault: "sick", env })
    const load = box.traffic()
    const failed = await ended(box.upgrade())
    expect(failed.stderr).toContain("upgrade_undone")
    expect(await box.served()).toBe(manifest.version)
    const pending = await box.run("migrate", "--dry-run", "--json")
    expect(pending).toEqual(NOTHING_PENDING)
    expect(await box.missing(await load.stop())).toEqual([])
    await box.stop()

    box.again({ NEXT_VERSION: "" })
    await box.served()
    const later = box.traffic()
    const done = await ended(box.upgrade())
    expect(done).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse(done.stdout)).toMatchObject({ done: true, migrations: ["9999_next"] })
    expect(await box.served()).toBe(NEXT_VERSION)
    expect(await box.missing(await later.stop())).toEqual([])
  },
)

/** Rows of every table, without the list of migrations. */
async function rowsIn(sql: SQL): Promise<Record<string, number>> {
  const tables: { name: string }[] = await sql`
    SELECT tablename AS name FROM pg_tables
    WHERE schemaname = 'public' AND tablename <> 'belfry_migrations'`
  const rows: Record<string, number> = {}
  for (const { name } of tables) {
    const [row] = await sql.unsafe(`SELECT count(*)::int AS n FROM "${name}"`)
    rows[name] = row.n
  }
  return rows
}

for (const { tag, path } of fixturesOf("postgres").slice(0, sizes.upgraded_schemas)) {
  test.skipIf(absent)(
    `on Postgres one command upgrades a database with the schema of ${tag}, with all of its rows`,
    async () => {
      await using database = await freshDatabase()
      const env = { DATABASE_URL: database.url, BELFRY_SECURITY_MASTER_KEY: FIXTURE_KEY }
      await using box = await upgradeBox({ release, env })
      await box.stop()
      rmSync(box.data_dir, { recursive: true })
      mkdirSync(box.data_dir, { mode: 0o700 })
      const sql = new SQL(database.url, { max: 1 })
      await sql.unsafe("DROP SCHEMA public CASCADE")
      await sql.unsafe("CREATE SCHEMA public")
      for (const statement of await statementsOf(path)) await sql.unsafe(statement)
      const before = await rowsIn(sql)
      expect(Object.keys(before).length).toBeGreaterThan(40)
      const done = await ended(box.upgrade())
      expect([done.code, besidesGoneFiles(done.stderr)]).toEqual([0, []])
      const { migrations } = JSON.parse(done.stdout) as { migrations: string[] }
      const tags = embedded.postgres.map((one) => one.tag)
      expect(migrations).toEqual([...tags.slice(tags.indexOf(tag) + 1), "9999_next"])
      const after = await rowsIn(sql)
      expect(after).toMatchObject(keptRows(before))
      expect(after.counters).toBeGreaterThanOrEqual(before.counters ?? 0)
      await sql.close()
      box.again({})
      expect(await box.served()).toBe(NEXT_VERSION)
    },
  )
}

/** Shows life for an hour, as a node of another machine. */
async function joinedBy(sql: SQL) {
  const later = "(extract(epoch FROM clock_timestamp() + interval '1 hour') * 1000)::bigint"
  await sql.unsafe(`INSERT INTO nodes (id, seen_at) VALUES ('${Bun.randomUUIDv7()}', ${later})`)
}

const JOINS = [
  ["in the backup", "backup", 5],
  ["while the server stops", "stopping", 1],
] as const

for (const [when, at, exit] of JOINS.slice(0, sizes.upgrade_kills)) {
  test.skipIf(absent)(
    `on Postgres a node that is started ${when} keeps its mail: the old version goes on`,
    async () => {
      await using database = await freshDatabase()
      const env = { DATABASE_URL: database.url }
      await using box = await upgradeBox({ release, env })
      const sql = new SQL(database.url, { max: 1 })
      await sql.connect()
      const [server] = box.processes("serve")
      const command = box.upgrade()
      await (at === "backup" ? box.backup() : box.step(at))
      await joinedBy(sql)
      await sql.close()
      const failed = await ended(command)
      expect(failed.stderr).toContain("1 other node serves this database")
      expect(failed.code).toBe(exit)
      expect(await box.served()).toBe(manifest.version)
      expect(box.processes("serve").includes(server ?? 0)).toBe(at === "backup")
      const pending = await box.run("migrate", "--dry-run", "--json")
      expect(pending).toEqual(NOTHING_PENDING)
    },
  )
}

test.skipIf(absent || sizes.upgrade_faults === 1)(
  "on Postgres kill -9 of the old server in the backup: the new one takes over",
  async () => {
    await using database = await freshDatabase()
    await using box = await upgradeBox({ release, env: { DATABASE_URL: database.url } })
    expect(await oldServerKilled(box)).toEqual({ code: 0, after: NEXT_VERSION, missing: [] })
  },
)

test.skipIf(absent || sizes.upgrade_kills === 0)(
  "on Postgres kill -9 of the command in its backup: the old one serves, and the next upgrade works",
  async () => {
    await using database = await freshDatabase()
    await using box = await upgradeBox({ release, env: { DATABASE_URL: database.url } })
    expect(await killedInBackup(box)).toEqual({
      ...{ code: 0, between: manifest.version, after: NEXT_VERSION },
      ...{ missing: [], drafts: [], verified: 0 },
    })
  },
)

for (const kill of KILLS.slice(0, sizes.upgrade_kills)) {
  const { who, at, fault, is_supervised = false } = kill
  test.skipIf(absent)(
    `on Postgres kill -9 of the ${who} at ${at}${is_supervised ? " under a supervisor" : ""} leaves one version that serves all that was acknowledged`,
    async () => {
      await using database = await freshDatabase()
      const env = { DATABASE_URL: database.url }
      await using box = await upgradeBox({ release, fault, is_supervised, env })
      const { version, missing } = await upgradeKilled(box, kill)
      expect([manifest.version, NEXT_VERSION]).toContain(version)
      expectNoneLost(missing)
      expect(await hasKeptSchema(database.url)).toBe(false)
      const pending = await box.run("migrate", "--dry-run", "--json")
      expect(pending).toEqual(NOTHING_PENDING)
    },
  )
}
