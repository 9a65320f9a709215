import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openSecrets } from "../../../src/core/secrets"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { writeArchive } from "../../../src/operations/backup/pack-task"
import { verifyArchive } from "../../../src/operations/backup/verify-archive"
import * as instanceValues from "../../../src/store/instance-values"
import { quietLog } from "../../harness/quiet"
import { instance } from "./instance"

quietLog()

async function backedUp() {
  const it = await instance()
  const { path } = await createBackup(it)
  const folder = join(it.folder, "unpacked")
  const archive = await openArchive(path)
  await archive.extract({ folder })
  const { format: _, entries, blobs, inbound_blobs, ...manifest } = archive.manifest
  return {
    ...it,
    path,
    archive,
    /** Another archive of the same kind, with every hash right, of a changed copy. */
    async repacked(change: (database: string) => void, told: Partial<typeof manifest> = {}) {
      const database = join(it.folder, `${Bun.randomUUIDv7()}.db`)
      copyFileSync(join(folder, "database.db"), database)
      change(database)
      const changed = `${database}.tar`
      const content = { database, blobs: [], config: {}, manifest: { ...manifest, ...told } }
      await writeArchive(changed, content)
      return changed
    },
  }
}

test("a backup is read whole, its database is checked, and a secret is opened", async () => {
  await using it = await backedUp()
  const heard: [number, number][] = []
  const onProgress = (done: number, total: number) => heard.push([done, total])
  const found = await verifyArchive(it.path, { secrets: it.secrets, onProgress })
  const { size, manifest } = it.archive
  const counts = Object.values(manifest.rows)
  const rows = counts.reduce((sum, count) => sum + count, 0)
  const counted = { rows, tables: counts.length }
  expect(found).toEqual({ path: it.path, size, manifest, ...counted, secrets_opened: true })
  expect(heard.length).toBeGreaterThan(1)
  expect((await verifyArchive(it.path)).secrets_opened).toBe(false)
  expect(readdirSync(it.dir).filter((name) => name.startsWith("verify-"))).toEqual([])
})

test("one that is interrupted at any step leaves nothing beside the archive", async () => {
  await using it = await backedUp()
  const before = readdirSync(it.dir)
  for (const whole of [false, true]) {
    const stop = new AbortController()
    const onProgress = (done: number, total: number) => {
      if (!whole) stop.abort(new Error("interrupted"))
      if (done > total - 8192) setTimeout(() => stop.abort(new Error("interrupted")), 1)
    }
    const ended = verifyArchive(it.path, { onProgress, signal: stop.signal })
    expect(ended).rejects.toThrow("interrupted")
    await ended.catch(() => {})
    expect(readdirSync(it.dir)).toEqual(before)
  }
})

test("a damaged page of the database is found, though every hash is right", async () => {
  await using it = await backedUp()
  const damaged = await it.repacked((database) => {
    const bytes = readFileSync(database)
    for (let page = 2; page < 40; page++) randomBytes(4096).copy(bytes, page * 4096)
    writeFileSync(database, bytes)
  })
  expect(verifyArchive(damaged)).rejects.toThrow(/its database is damaged: .+/)
})

type Told = Parameters<Awaited<ReturnType<typeof backedUp>>["repacked"]>[1]

const KINDS: [statements: string[], told: Told, said: string][] = [
  [["DROP TABLE mailbox_mails"], {}, "lacks the table mailbox_mails"],
  [["ALTER TABLE events DROP COLUMN type"], {}, "lacks the column events.type"],
  [["ALTER TABLE jobs ADD COLUMN x"], {}, "has the unknown column jobs.x"],
  [["DROP INDEX jobs_ready"], {}, "lacks the index jobs_ready"],
  [
    ["DROP INDEX jobs_ready", "CREATE INDEX jobs_ready ON jobs (id)"],
    {},
    "has another index jobs_ready",
  ],
  [["CREATE VIEW v AS SELECT 1"], {}, "has the unknown view v"],
  [["CREATE TABLE x (y)"], {}, "has the table x, which its manifest does not name"],
  [["DELETE FROM belfry_migrations WHERE tag LIKE '0003%'"], {}, 'lacks the migration "0003_'],
  [[], { master_key_id: "00000000" }, "but its manifest says 00000000"],
]

test("a database that is not what its migrations and its manifest say is refused, though every hash is right", async () => {
  await using it = await backedUp()
  for (const [statements, told, said] of KINDS) {
    const changed = await it.repacked((path) => {
      using database = new Database(path)
      for (const statement of statements) database.run(statement)
    }, told)
    const refused = await verifyArchive(changed).catch((error) => error)
    expect(refused).toMatchObject({ name: "ArchiveError", fault: "damaged" })
    expect(refused.differences.join("; ")).toContain(said)
  }
})

test("an empty database, and that of another archive, are told by what they lack", async () => {
  await using it = await backedUp()
  const empty = await it.repacked((path) => writeFileSync(path, ""))
  expect(verifyArchive(empty)).rejects.toThrow("has 0 rows in 0 tables, but its manifest says")
  await using other = await backedUp()
  await other.store.tx((tx) => instanceValues.set(tx, "more", "value"))
  const { path } = await createBackup(other)
  const unpacked = join(it.folder, "other")
  await (await openArchive(path)).extract({ folder: unpacked })
  const swapped = await it.repacked((to) => copyFileSync(join(unpacked, "database.db"), to))
  expect(verifyArchive(swapped)).rejects.toThrow("3 rows in instance_values, but its manifest says")
})

test("an archive of a later version is refused by its version, or by its migrations", async () => {
  await using it = await backedUp()
  const later = await it.repacked(() => {}, { version: "999.0.0" })
  expect(verifyArchive(later)).rejects.toMatchObject({ fault: "later_version" })
  const { migrations } = it.archive.manifest
  const told = { migrations: [...migrations, "9999_of_tomorrow"] }
  expect(verifyArchive(await it.repacked(() => {}, told))).rejects.toThrow(
    'It has the migration "9999_of_tomorrow". Use that version, or a later one.',
  )
})

test("rows that the manifest does not tell of are found", async () => {
  await using it = await backedUp()
  const fewer = await it.repacked((path) => {
    using database = new Database(path)
    database.run("DELETE FROM instance_values WHERE name = 'something'")
  })
  expect(verifyArchive(fewer)).rejects.toThrow(
    "its database has 1 rows in instance_values, but its manifest says 2",
  )
  const other = await it.repacked(() => {}, { migrations: ["0000_initial_schema"] })
  expect(verifyArchive(other)).rejects.toThrow("has other migrations than its manifest names")
})

test("a row that names a file which is not in the archive is found", async () => {
  await using it = await backedUp()
  const rows = { ...it.archive.manifest.rows, message_files: 1 }
  const lacking = await it.repacked(
    (path) => {
      using database = new Database(path)
      const row = [Buffer.alloc(16, 1), "a".repeat(64)]
      database.run("INSERT INTO message_files (message_id, sha256) VALUES (?, ?)", row)
    },
    { rows },
  )
  expect(verifyArchive(lacking)).rejects.toThrow("names files that are not in the archive")
})

test("another master key is told from damage", async () => {
  await using it = await backedUp()
  const secrets = openSecrets({ data_dir: join(it.folder, "other"), master_key: null })
  expect(verifyArchive(it.path, { secrets })).rejects.toThrow(
    `has secrets of the master key ${it.secrets.key_id}, but the key here is ${secrets.key_id}`,
  )
})

test("a check that would bring the disk below its floor is refused before it writes", async () => {
  await using it = await backedUp()
  const before = readdirSync(it.dir)
  const settings = { ...it.settings, "storage.min_free_mb": 10_000_000 }
  const refused = verifyArchive(it.path, { settings })
  await expect(refused).rejects.toThrow(/MB of free space, but the check needs 1000000\d MB\. Free/)
  expect(readdirSync(it.dir)).toEqual(before)
  expect(await verifyArchive(it.path, { settings: it.settings })).toMatchObject({ path: it.path })
})
