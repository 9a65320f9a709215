import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SchemaTooNew } from "../../src/store/apply-migrations"
import { migrateSqlite } from "../../src/store/migrate"
import { embedded, type Migration } from "../../src/store/migrations"
import { openSqlite } from "../../src/store/sqlite"
import { ENGINES, journal } from "../harness/migrations"
import { quietLog } from "../harness/quiet"

quietLog()

const step = (tag: string, sql: string): Migration => ({ tag, sql })

const tables = (database: Database) =>
  database
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    )
    .all()
    .map(({ name }) => name)

const tags = embedded.sqlite.map(({ tag }) => tag)

test("an empty file gets every migration, and the second time none", () => {
  using database = new Database(":memory:")

  expect(migrateSqlite(database)).toEqual(tags)
  const made = tables(database)
  expect(made).toContain("messages")
  expect(migrateSqlite(database)).toEqual([])
  expect(tables(database)).toEqual(made)
})

test("only what is missing is applied, in order", () => {
  using database = new Database(":memory:")
  const first = step("0000_a", "CREATE TABLE a (n);")
  const second = step("0001_b", "CREATE TABLE b (n);--> statement-breakpoint\nCREATE TABLE c (n);")

  expect(migrateSqlite(database, [first])).toEqual(["0000_a"])
  expect(migrateSqlite(database, [first, second])).toEqual(["0001_b"])
  expect(tables(database)).toEqual(["a", "b", "belfry_migrations", "c"])
})

const schema = (database: Database) =>
  database.query("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").all()

test("an upgrade from every earlier schema ends at the same one as a new file", () => {
  using made = new Database(":memory:")
  migrateSqlite(made)

  for (let applied = 0; applied <= tags.length; applied++) {
    using old = new Database(":memory:")
    migrateSqlite(old, embedded.sqlite.slice(0, applied))
    expect(migrateSqlite(old)).toEqual(tags.slice(applied))
    expect(schema(old)).toEqual(schema(made))
  }
})

test("a migration that breaks in the middle leaves nothing of itself", () => {
  using database = new Database(":memory:")
  const good = step("0000_a", "CREATE TABLE a (n);")
  const broken = step("0001_b", "CREATE TABLE b (n);--> statement-breakpoint\nCREATE NONSENSE;")

  expect(() => migrateSqlite(database, [good, broken])).toThrow("NONSENSE")
  expect(tables(database)).toEqual(["a", "belfry_migrations"])
  expect(migrateSqlite(database, [good, step("0001_b", "CREATE TABLE b (n);")])).toEqual(["0001_b"])
})

test("a schema from a later version is refused by the name of what is strange", () => {
  using database = new Database(":memory:")
  migrateSqlite(database, [...embedded.sqlite, step("9999_later", "CREATE TABLE later (n);")])

  const older = () => migrateSqlite(database)
  expect(older).toThrow(SchemaTooNew)
  expect(older).toThrow('"9999_later"')
})

test("a file from a later version stays as it is, and its folder stays free", async () => {
  const folder = mkdtempSync(join(tmpdir(), "belfry-newer-"))
  const options = { path: join(folder, "test.db"), cache_mb: 4, wal_autocheckpoint: 1000 }
  await openSqlite(options).close()
  const later = new Database(options.path)
  later.run("INSERT INTO belfry_migrations (tag, applied_at) VALUES ('9999_later', 0)")
  later.close()

  expect(() => openSqlite(options)).toThrow('"9999_later"')
  const mended = new Database(options.path)
  mended.run("DELETE FROM belfry_migrations WHERE tag = '9999_later'")
  mended.close()
  await openSqlite(options).close()
  rmSync(folder, { recursive: true })
})

test("the stamps of the migrations rise: one that was merged late would be skipped", () => {
  for (const engine of ENGINES) {
    const stamps = journal(engine).map(({ when }) => when)
    expect(stamps).toEqual([...new Set(stamps)].sort((a, b) => a - b))
    expect(journal(engine).map(({ tag }) => tag)).toEqual(tags)
  }
})
