import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { nextTurn } from "../../src/core/time"
import type { Store } from "../../src/store/store"
import {
  areComplete,
  fillSome,
  keepPosted,
  notePosted,
  postedUpTo,
} from "../../src/subscribers/postings"
import { list } from "../../src/subscribers/subscriber-list"
import { insertAll, newRow } from "../../src/subscribers/subscribers"
import { subscriberPostings } from "../../src/subscribers/tables"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

const PROJECT = newId()

const LEFT = { project_id: PROJECT, term: "ann", first: 0, numbers: Buffer.alloc(8) }

test("Postgres keeps no lists, and removes those that came from an SQLite", async () => {
  await using it = await testStore()
  const { store } = it
  await store.tx(async (tx) => {
    await notePosted(tx, null)
    await tx.insert(subscriberPostings).values(LEFT)
  })
  const rows = Array.from({ length: 5 }, (_, at) =>
    newRow(PROJECT, { external_id: `user-${at}`, fields: { name: "Ann" } }),
  )
  await store.tx((tx) => insertAll(tx, rows))
  expect(await areComplete(store.read)).toBe(false)
  const found = await list(store.read, PROJECT, { words: ["ann"] })
  const window = { limit: 100, offset: 0, after: undefined, before: undefined }
  expect((await found.list(window)).rows).toHaveLength(5)
  while (await fillSome(store));
  expect(await postedUpTo(store.read)).toBeUndefined()
  expect(await store.read.select().from(subscriberPostings)).toEqual([])
})

test("an error does not end that: it is tried again", async () => {
  await using it = await testStore()
  const { store } = it
  await store.tx((tx) => tx.insert(subscriberPostings).values(LEFT))
  let fails = 2
  const tx: Store["tx"] = (closure) =>
    fails-- > 0 ? Promise.reject(new Error("no space left on device")) : store.tx(closure)
  const stop = keepPosted({ ...store, tx }, 1)
  while ((await store.read.select().from(subscriberPostings)).length > 0) await nextTurn()
  await stop()
  expect(fails).toBeLessThan(0)
})
