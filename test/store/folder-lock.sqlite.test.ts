import { expect, test } from "bun:test"
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { FolderInUse, lockFolder } from "../../src/store/database-file"
import { openSqlite } from "../../src/store/sqlite"
import { readLines } from "../harness/lines"
import { quietLog } from "../harness/quiet"

quietLog()

const HOLDER = join(import.meta.dir, "hold-folder.ts")
const PATIENCE_MS = 15_000

function emptyFolder() {
  const folder = mkdtempSync(join(tmpdir(), "belfry-lock-"))
  const path = join(folder, "belfry.db")
  const holders: Bun.Subprocess[] = []
  return {
    path,
    options: { path, cache_mb: 4, wal_autocheckpoint: 1000 },
    /** Another process that tries to open the same file; `said` is its only line. */
    async other() {
      const cmd = [process.execPath, HOLDER, path]
      const child = Bun.spawn({ cmd, stdio: ["ignore", "pipe", "inherit"] })
      holders.push(child)
      const lines = readLines(child.stdout)
      const said = await lines.first((line) => !line.startsWith("{"), PATIENCE_MS)
      return { said, child }
    },
    async [Symbol.asyncDispose]() {
      for (const child of holders) {
        child.kill("SIGKILL")
        await child.exited
      }
      rmSync(folder, { recursive: true })
    },
  }
}

test("a second process is refused, and told the pid of the holder", async () => {
  await using folder = emptyFolder()
  const store = openSqlite(folder.options)

  const { said, child } = await folder.other()
  expect(said).toContain(`in use by the process ${process.pid}`)
  expect(await child.exited).toBe(1)
  await store.close()
})

test("this process is refused what another one holds, by its pid", async () => {
  await using folder = emptyFolder()
  const { said, child } = await folder.other()
  expect(said).toBe("open")

  const opening = () => openSqlite(folder.options)
  expect(opening).toThrow(FolderInUse)
  expect(opening).toThrow(`the process ${child.pid}`)
})

test("the lock dies with its holder, however that one dies", async () => {
  await using folder = emptyFolder()
  const { said, child } = await folder.other()
  expect(said).toBe("open")
  child.kill("SIGKILL")
  await child.exited

  const store = openSqlite(folder.options)
  const { said: refused } = await folder.other()
  expect(refused).toContain(`the process ${process.pid}`) // not the dead one's
  await store.close()
})

test("a store that was closed leaves its folder free", async () => {
  await using folder = emptyFolder()
  await openSqlite(folder.options).close()

  const { said } = await folder.other()
  expect(said).toBe("open")
})

test("a start waits for another program that has the file for a moment", async () => {
  await using folder = emptyFolder()
  const made = await folder.other() // this process would keep its lock until the collector comes
  made.child.kill("SIGKILL")
  await made.child.exited
  const program = `const { Database } = require("bun:sqlite")
    const database = new Database(${JSON.stringify(folder.path)})
    database.run("PRAGMA locking_mode = EXCLUSIVE")
    database.run("BEGIN EXCLUSIVE")
    console.log("held")
    setTimeout(() => database.close(), 1000)`
  const child = Bun.spawn({
    cmd: [process.execPath, "-e", program],
    stdio: ["ignore", "pipe", "inherit"],
  })
  await readLines(child.stdout).first((line) => line === "held", PATIENCE_MS)
  const store = openSqlite(folder.options)
  expect(await child.exited).toBe(0)
  await store.close()
})

test("nobody but the owner can read the file, nor what is beside it", async () => {
  await using folder = emptyFolder()
  const store = openSqlite(folder.options)

  const modes = ["", "-wal", "-shm"].map((end) => statSync(`${folder.path}${end}`).mode & 0o777)
  expect(modes).toEqual([0o600, 0o600, 0o600])
  await store.close()
})

test("a folder that is not there is named", async () => {
  await using folder = emptyFolder()
  const path = `${folder.path}.d/belfry.db`
  expect(() => lockFolder(path)).toThrow(`access '${folder.path}.d'`)
})

test("a folder that could not be taken whole is free again", async () => {
  await using folder = emptyFolder()
  mkdirSync(`${folder.path}.pid`) // as on a full disk, this file cannot be written
  expect(() => lockFolder(folder.path)).toThrow("is a folder, not a file")
  rmSync(`${folder.path}.pid`, { recursive: true })
  lockFolder(folder.path)()
})
