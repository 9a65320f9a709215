import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { emit } from "../../src/events/emit"
import * as feed from "../../src/events/feed"
import type { Store } from "../../src/store/store"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { outside } from "../store/outside"

quietLog()

const PROJECT = idFor("project_1")

const tell = (store: Store, type: string) =>
  store.tx((tx) =>
    emit(tx, { account_id: idFor("a"), project_id: PROJECT, subject_id: null, type, data: {} }),
  )

const insert = (type: string) => `
  INSERT INTO events (id, account_id, project_id, type, data, created_at)
  VALUES ('${newId()}', '${idFor("a")}', '${PROJECT}', '${type}', '{}', ${Date.now()})`

const read = async (store: Store, after?: string) =>
  (await feed.read(store.read, PROJECT, { after, limit: 100, types: [] })).rows

const types = (rows: feed.Event[]) => rows.map(({ type }) => type)

test("an older transaction that commits later is not skipped", async () => {
  await using it = await testStore()
  const { store } = it
  await using both = pair(it)
  const [slow, quick] = both
  await tell(store, "first")
  const [first] = await read(store)

  await slow.rows("BEGIN")
  await slow.rows(insert("slow"))
  await quick.rows("BEGIN")
  await quick.rows(insert("quick"))
  await quick.rows("COMMIT")
  expect(types(await read(store, first?.id))).toEqual([]) // the quick one has to wait for the slow
  await slow.rows("COMMIT")

  const rows = await read(store, first?.id)
  expect(types(rows)).toEqual(["slow", "quick"])
  expect(await read(store, rows.at(-1)?.id)).toEqual([])
})

test("an older transaction that gives up holds nobody any longer", async () => {
  await using it = await testStore()
  const { store } = it
  await using both = pair(it)
  const [slow] = both

  await slow.rows("BEGIN")
  await slow.rows(insert("slow"))
  await tell(store, "quick")
  expect(await read(store)).toEqual([])
  await slow.rows("ROLLBACK")
  expect(types(await read(store))).toEqual(["quick"])
})

test("a reader who follows meets every event, whatever order the writers commit in", async () => {
  await using it = await testStore()
  const { store } = it
  await using both = pair(it)
  const [left, right] = both
  const seen: string[] = []
  let after: string | undefined
  const look = async () => {
    const rows = await read(store, after)
    after = rows.at(-1)?.id ?? after
    seen.push(...types(rows))
  }

  for (let round = 0; round < 10; round++) {
    const [older, newer] = round % 2 === 0 ? [left, right] : [right, left]
    await older.rows("BEGIN")
    await older.rows(insert(`older ${round}`))
    await newer.rows("BEGIN")
    await newer.rows(insert(`newer ${round}`))
    await look()
    await newer.rows("COMMIT")
    await look()
    await tell(store, `third ${round}`)
    await look()
    await older.rows("COMMIT")
    await look()
  }
  const names = ["older", "newer", "third"]
  const expected = Array.from({ length: 10 }, (_, n) => names.map((name) => `${name} ${n}`)).flat()
  expect(seen).toEqual(expected)
})

function pair(test: Parameters<typeof outside>[0]) {
  const both = [outside(test), outside(test)] as const
  return Object.assign([...both] as [(typeof both)[0], (typeof both)[1]], {
    async [Symbol.asyncDispose]() {
      for (const one of both) await one[Symbol.asyncDispose]()
    },
  })
}
