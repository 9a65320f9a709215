import { Database } from "bun:sqlite"
import { beforeAll, expect, test } from "bun:test"
import { closeSync, copyFileSync, mkdtempSync, openSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { faultOf } from "../../src/core/faults"
import { jobs } from "../../src/jobs/tables"
import { DamagedDatabase, inspectFile } from "../../src/store/database-file"
import { openSqlite } from "../../src/store/sqlite"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"

quietLog()

const PAGE_BYTES = 4096
const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-bad-page-")))
const sound = join(folder, "sound.db")
const tuning = { cache_mb: 4, wal_autocheckpoint: 1000 }

beforeAll(async () => {
  await openSqlite({ path: sound, ...tuning }).close()
})

/** A store whose table of jobs goes bad on disk behind its back. */
function spoiled(name: string) {
  const path = join(folder, name)
  copyFileSync(sound, path)
  const troubles: unknown[] = []
  const store = openSqlite({ path, ...tuning, onFault: (error) => troubles.push(error) })
  overwrite(path, rootOf(path, "jobs"))
  return { store, troubles, path }
}

function rootOf(path: string, table: string): number {
  using database = new Database(path)
  const [row] = database.query("SELECT rootpage FROM sqlite_schema WHERE name = ?").values(table)
  return Number(row?.[0])
}

function overwrite(path: string, page: number) {
  const file = openSync(path, "r+")
  writeSync(file, Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  closeSync(file)
}

const failure = async (work: PromiseLike<unknown>): Promise<unknown> => {
  try {
    await work
    return undefined
  } catch (error) {
    return error
  }
}

test("a read that meets a bad page fails, and the store tells of it", async () => {
  const { store, troubles } = spoiled("read.db")
  const error = await failure(store.read.select().from(jobs))
  expect(faultOf(error)).toBe("damaged")
  expect(troubles.map(faultOf)).toEqual(["damaged"])
  await store.close()
})

test("a closure that meets a bad page fails, and the store tells of it", async () => {
  const { store, troubles } = spoiled("write.db")
  const error = await failure(store.tx(async (tx) => void (await tx.select().from(jobs))))
  expect(faultOf(error)).toBe("damaged")
  expect(new Set(troubles.map(faultOf))).toEqual(new Set(["damaged"]))
  await store.close()
})

test("a bad file is refused before its migrations", async () => {
  const { store, path } = spoiled("start.db")
  await store.close()
  const opening = () => openSqlite({ path, ...tuning })
  expect(opening).toThrow(DamagedDatabase)
  expect(opening).toThrow(`${path} is damaged`)
})

test("a file of a few bytes is not a database", async () => {
  const path = join(folder, "short.db")
  await Bun.write(path, "SQL")
  expect(() => inspectFile(path)).toThrow("its first bytes are wrong")
})
