import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { GroupCommit } from "../../src/store/group-commit"
import { openSqlite } from "../../src/store/sqlite"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { happened, refusal, types } from "./facts"
import { outside } from "./outside"

quietLog()

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test("lets many closures share few commits", async () => {
  await using it = await testStore()
  const { store } = it
  const before = { ...store.stats }

  const all = Array.from({ length: 1000 }, (_, n) => store.tx((tx) => happened(tx, `${n}`)))
  await Promise.all(all)
  expect(await types(store.read)).toEqual(Array.from({ length: 1000 }, (_, n) => `${n}`))
  expect(store.stats.closures - before.closures).toBe(1000)
  expect(store.stats.commits - before.commits).toBeLessThanOrEqual(5)
})

test("short closures are answered before large ones begin, whose owners take turns, a few in a group", async () => {
  await using it = await testStore()
  const { store } = it
  const { commits } = store.stats
  const begun: string[] = []
  const long = (name: string, owner: string) =>
    store.tx(async () => {
      begun.push(name)
      Bun.sleepSync(15) // more than all of a group may take
    }, owner)
  const all = [long("a1", "a"), long("a2", "a"), long("a3", "a"), long("b1", "b")]
  const short = store.tx(async () => void begun.push("short"))
  all.push(short.then(() => void begun.push("answered")))
  await Promise.all(all)
  expect(begun).toEqual(["short", "answered", "a1", "b1", "a2", "a3"])
  expect(store.stats.commits - commits).toBe(5)
})

/** Far longer than a test may take. */
const FAR_APART_MS = 600_000

test("a closure that may wait begins at once, unless one has just been, and shares the next commit then", async () => {
  await using it = await testStore()
  const { store } = it
  const patient = (name: string) => store.tx((tx) => happened(tx, name), undefined, FAR_APART_MS)
  const { commits } = store.stats
  await patient("lone")
  expect(store.stats.commits - commits).toBe(1)

  const burst = ["one", "two", "three"].map(patient)
  await store.tx((tx) => happened(tx, "hurried"))
  await Promise.all(burst)
  expect(store.stats.commits - commits).toBe(2)
  expect(await types(store.read)).toEqual(["lone", "hurried", "one", "two", "three"])
})

test("closures that may wait begin a group of their own when it is time, or when the store closes", async () => {
  using database = new Database(":memory:")
  database.run("CREATE TABLE bell (id INTEGER)")
  const group = new GroupCommit(database, () => {})
  const ring = (id: number, apart_ms: number) =>
    group.run(async () => database.run("INSERT INTO bell VALUES (?)", [id]), undefined, apart_ms)
  await ring(1, 1)
  await Promise.all([ring(2, 1), ring(3, 1)])
  expect(group.stats).toEqual({ closures: 3, commits: 2 })
  const last = ring(4, FAR_APART_MS)
  await group.idle()
  await last
  expect(group.stats).toEqual({ closures: 4, commits: 3 })
})

test("shows no reader a group that is still open", async () => {
  await using it = await testStore()
  await using other = outside(it)
  const { store } = it
  const count = async () => (await other.rows("SELECT count(*) AS n FROM events"))[0]?.n
  const seen: unknown[] = []

  const first = store.tx((tx) => happened(tx, "one"))
  const second = store.tx(async (tx) => {
    await happened(tx, "two")
    seen.push(await types(store.read), await count())
  })
  await Promise.all([first, second])
  expect(seen).toEqual([[], 0])
  expect(await count()).toBe(2)
})

test("fails a closure that awaits the world, and goes on without it", async () => {
  await using it = await testStore()
  const { store } = it

  const slow = store.tx(async (tx) => {
    await happened(tx, "before the wait")
    await Bun.sleep(5)
    await happened(tx, "after the wait")
  })
  const quick = store.tx((tx) => happened(tx, "quick"))
  const [waited, went] = await Promise.allSettled([slow, quick])
  await Bun.sleep(10)

  expect(waited).toMatchObject({ reason: { message: expect.stringContaining("awaited") } })
  expect(went.status).toBe("fulfilled")
  expect(await types(store.read)).toEqual(["quick"])
})

test("a closure that awaits the world cannot write into the next group", async () => {
  await using it = await testStore()
  const { store } = it
  const met = Promise.withResolvers<void>()
  let late: Promise<unknown> = Promise.resolve()

  const stray = store.tx(async (tx) => {
    await nextTurn()
    await nextTurn()
    late = happened(tx, "stray")
    late.catch(() => {})
    met.resolve()
  })
  await refusal(stray)
  const next = store.tx(async (tx) => {
    await happened(tx, "next")
  })
  await Promise.all([next, met.promise])
  expect(await refusal(late)).toContain("outside its transaction")
  expect(await types(store.read)).toEqual(["next"])
})

test("a store that closes first commits what it was asked to", async () => {
  const folder = mkdtempSync(join(tmpdir(), "belfry-close-"))
  const options = { path: join(folder, "test.db"), cache_mb: 4, wal_autocheckpoint: 1000 }
  const store = openSqlite(options)
  const all = Array.from({ length: 600 }, (_, n) => store.tx((tx) => happened(tx, `${n}`)))
  await store.close()
  await Promise.all(all)

  const again = openSqlite(options)
  expect(await types(again.read)).toHaveLength(600)
  await again.close()
  rmSync(folder, { recursive: true })
})

test("an answer means that the commit is readable from outside", async () => {
  await using it = await testStore()
  await using other = outside(it)
  const { store } = it

  const counts = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      await store.tx((tx) => happened(tx, `${n}`))
      const rows = await other.rows(`SELECT id FROM events WHERE type = '${n}'`)
      return rows.length
    }),
  )
  expect(counts).toEqual(Array.from({ length: 20 }, () => 1))
})

test("keeps the pragmas that the promises stand on", async () => {
  await using it = await testStore()
  await using other = outside(it)

  expect(await other.rows("PRAGMA journal_mode")).toEqual([{ journal_mode: "wal" }])
  expect(await other.rows("PRAGMA auto_vacuum")).toEqual([{ auto_vacuum: 2 }])
  expect(await other.rows("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }])
})

test("goes on when a commit fails and whoever is told of it fails as well", async () => {
  using database = new Database(":memory:")
  database.run("PRAGMA foreign_keys = ON")
  database.run("CREATE TABLE bell (id INTEGER PRIMARY KEY)")
  const late = "REFERENCES bell (id) DEFERRABLE INITIALLY DEFERRED"
  database.run(`CREATE TABLE ring (bell INTEGER ${late})`)
  const group = new GroupCommit(database, () => {
    throw new Error("nobody hears")
  })

  const torn = group.run(async () => database.run("INSERT INTO ring VALUES (7)"))
  expect(await refusal(torn)).toContain("FOREIGN KEY")
  await group.run(async () => database.run("INSERT INTO bell VALUES (7)"))
  expect(database.query("SELECT id FROM bell").all()).toEqual([{ id: 7 }])
  await group.idle()
})

test("rolls back what a group before could not", async () => {
  using database = new Database(":memory:")
  database.run("CREATE TABLE bell (id INTEGER)")
  const group = new GroupCommit(database, () => {})
  database.run("BEGIN")
  database.run("INSERT INTO bell VALUES (1)")

  await group.run(async () => database.run("INSERT INTO bell VALUES (2)"))
  expect(database.query("SELECT id FROM bell").all()).toEqual([{ id: 2 }])
})
