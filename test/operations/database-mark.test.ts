import { expect, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { raiseMark, raiseMarkAboveAll, whyPutBack } from "../../src/operations/database-mark"
import * as instanceValues from "../../src/store/instance-values"
import type { Store } from "../../src/store/store"
import { testStore } from "../harness/store"

const MARK = "database_mark"

const markOf = (store: Store) => instanceValues.find(store.read, MARK)

const setMark = (store: Store, mark: string) => store.tx((tx) => instanceValues.set(tx, MARK, mark))

test("a database of an earlier version is nothing that was put back, and gets a mark", async () => {
  await using base = await testStore()
  const { store, folder } = base
  expect(await whyPutBack(store, folder)).toBeUndefined()
  await raiseMark(store, folder)
  const first = await markOf(store)
  expect(first).toEndWith(" 1")
  expect(readFileSync(join(folder, "database-mark"), "utf8")).toBe(`${first}\n`)
  await raiseMark(store, folder)
  expect(await markOf(store)).toEndWith(" 2")
  expect(await whyPutBack(store, folder)).toBeUndefined()
})

test("a database that is older than its folder was put back, and the next mark is above both", async () => {
  await using base = await testStore()
  const { store, folder } = base
  await raiseMark(store, folder)
  const copied = (await markOf(store)) ?? ""
  for (let at = 0; at < 3; at++) await raiseMark(store, folder)
  await setMark(store, copied)
  const why = await whyPutBack(store, folder)
  expect(why).toContain("its mark is 1, not 4. So up to 3 minutes of work are missing")
  await raiseMark(store, folder)
  expect(await markOf(store)).toEndWith(" 5")
  expect(await whyPutBack(store, folder)).toBeUndefined()
})

test("the minutes are not told behind a hold, which raises the mark by a leap", async () => {
  await using base = await testStore()
  const { store, folder } = base
  await raiseMark(store, folder)
  const copied = (await markOf(store)) ?? ""
  await raiseMarkAboveAll(store, folder)
  await setMark(store, copied)
  const why = await whyPutBack(store, folder)
  expect(why).toContain("So more than a week of work may be missing in it.")
  expect(why).not.toContain("minutes")
})

test("a folder that lost its database has one without a mark, or another one", async () => {
  await using base = await testStore()
  const { store, folder } = base
  await raiseMark(store, folder)
  await store.tx((tx) => instanceValues.remove(tx, MARK))
  expect(await whyPutBack(store, folder)).toContain("has no mark")
  await setMark(store, "0199a1c2-0000-7000-8000-000000000000 900")
  const why = await whyPutBack(store, folder)
  if (store.isAlone) expect(why).toContain("comes from another folder")
  else expect(why).toBeUndefined()
})

test("a folder without a mark has another folder's database on SQLite, and is a new node on Postgres", async () => {
  await using base = await testStore()
  const { store, folder } = base
  await raiseMark(store, folder)
  const other = mkdtempSync(join(tmpdir(), "belfry-mark-"))
  const why = await whyPutBack(store, other)
  if (store.isAlone) expect(why).toContain("comes from another folder")
  else expect(why).toBeUndefined()
  rmSync(other, { recursive: true })
})
