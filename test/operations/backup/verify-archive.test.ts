import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openSecrets } from "../../../src/core/secrets"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { writeArchive } from "../../../src/operations/backup/archive-writer"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { verifyArchive } from "../../../src/operations/backup/verify-archive"
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
  expect(found).toEqual({ path: it.path, size, manifest, secrets_opened: true })
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

test("rows that the manifest does not tell of are found", async () => {
  await using it = await backedUp()
  const fewer = await it.repacked((path) => {
    using database = new Database(path)
    database.run("DELETE FROM instance_values WHERE name = 'something'")
  })
  expect(verifyArchive(fewer)).rejects.toThrow(
    "its database has 1 rows in instance_values, but its manifest tells of 2",
  )
  const other = await it.repacked(() => {}, { migrations: ["0000_initial_schema"] })
  expect(verifyArchive(other)).rejects.toThrow("has other migrations than its manifest tells")
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
