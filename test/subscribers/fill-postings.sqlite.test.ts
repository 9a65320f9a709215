import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { nextTurn } from "../../src/core/time"
import { rawSqlite } from "../../src/store/statements"
import type { Store } from "../../src/store/store"
import { decoded, idsWith, numberOf } from "../../src/subscribers/posting-block"
import {
  areComplete,
  fillSome,
  keepPosted,
  notePosted,
  postedUpTo,
} from "../../src/subscribers/postings"
import { termsOf } from "../../src/subscribers/search-words"
import { list } from "../../src/subscribers/subscriber-list"
import { change, insertAll, newRow, removeRows } from "../../src/subscribers/subscribers"
import { subscriberPostings, subscribers } from "../../src/subscribers/tables"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

const logged = quietLog()

const PROJECT = newId()
const FIRST_PAGE = { limit: 100, offset: 0, after: undefined, before: undefined }

const made = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, nth) => {
    const at = from + nth
    const fields = { name: `Ann Number${at % 7}`, tags: at % 3 ? [] : ["third"] }
    return newRow(PROJECT, { external_id: `user-${at}`, fields })
  })

const addAll = (store: Store, rows: ReturnType<typeof made>) =>
  store.tx((tx) => insertAll(tx, rows))

/** The numbers of each list, joined from its parts, whose bounds must hold. */
async function kept(store: Store): Promise<Map<string, number[]>> {
  const { term, first } = subscriberPostings
  const parts = await store.read.select().from(subscriberPostings).orderBy(term, first)
  const lists = new Map<string, number[]>()
  for (const part of parts) {
    const numbers = decoded(part.numbers)
    const before = lists.get(part.term)?.at(-1) ?? 0
    expect(numbers.length).toBeGreaterThan(0)
    expect(before).toBeLessThanOrEqual(part.first)
    expect(part.first).toBeLessThanOrEqual(numbers[0] ?? 0)
    lists.set(part.term, [...(lists.get(part.term) ?? []), ...numbers])
  }
  return lists
}

/** The same from the rows of the subscribers. */
async function expected(store: Store): Promise<Map<string, number[]>> {
  const lists = new Map<string, number[]>()
  for (const row of await store.read.select().from(subscribers).orderBy(subscribers.id)) {
    for (const term of termsOf(row)) lists.set(term, [...(lists.get(term) ?? []), numberOf(row.id)])
  }
  return new Map([...lists].sort(([one], [other]) => Buffer.compare(bytes(one), bytes(other))))
}

const bytes = (text: string) => Buffer.from(text)

const found = async (store: Store, words: string[], tag?: string) => {
  const rows = await list(store.read, PROJECT, { words, tag })
  return (await rows.list(FIRST_PAGE)).rows.map(({ external_id }) => external_id)
}

test("lists of an older database are filled in steps, while subscribers come, change and go", async () => {
  await using it = await testStore()
  const { store } = it
  const rows = made(0, 900)
  await addAll(store, rows)
  expect(await postedUpTo(store.read)).toBeUndefined()
  expect(await fillSome(store)).toBe(true) // begins
  expect(await fillSome(store)).toBe(true) // the first 100
  expect(await areComplete(store.read)).toBe(false)
  expect(await kept(store)).not.toEqual(await expected(store))

  const [early, late] = [rows[10], rows[800]]
  if (!early || !late) throw new Error("missing rows")
  await store.tx(async (tx) => {
    await change(tx, early, { name: "Berta" })
    await change(tx, late, { name: "Berta" })
    await removeRows(tx, [rows[11] ?? early, rows[801] ?? late])
  })
  await addAll(store, made(900, 950))
  expect(await found(store, ["ber"])).toEqual(["user-800", "user-10"])

  while (await fillSome(store));
  expect(await areComplete(store.read)).toBe(true)
  expect(await kept(store)).toEqual(await expected(store))
  expect(await found(store, ["ber"])).toEqual(["user-800", "user-10"])

  await addAll(store, made(950, 1000))
  await store.tx((tx) => change(tx, rows[12] ?? early, { tags: ["third", "new"] }))
  await store.tx((tx) => removeRows(tx, rows.slice(300, 700)))
  expect(await kept(store)).toEqual(await expected(store))
  expect(await fillSome(store)).toBe(false)
})

test("an empty database has complete lists after the first steps of a start", async () => {
  await using it = await testStore()
  await keepPosted(it.store)()
  while (await fillSome(it.store));
  expect(await areComplete(it.store.read)).toBe(true)
  await addAll(it.store, made(0, 10))
  expect(await kept(it.store)).toEqual(await expected(it.store))
})

test("after a full disk the lists are filled as soon as there is room again", async () => {
  await using it = await testStore()
  const { store } = it
  await addAll(store, made(0, 1500))
  const allow = (pages: number) =>
    store.tx(async (tx) => void rawSqlite.get(tx)?.run(`PRAGMA max_page_count = ${pages}`))
  await allow(1) // no more than it has
  const stop = keepPosted(store, 1)
  while (!logged().some((line) => line.includes("could not be filled"))) await nextTurn()
  expect(await areComplete(store.read)).toBe(false)
  await allow(1_000_000)
  while (!(await areComplete(store.read))) await nextTurn()
  await stop()
  expect(await kept(store)).toEqual(await expected(store))
})

test("lists that are not known to be true are written anew", async () => {
  await using it = await testStore()
  const { store } = it
  while (await fillSome(store));
  await addAll(store, made(0, 300))
  await store.tx((tx) => notePosted(tx, undefined))
  await addAll(store, made(300, 400)) // unknown to the lists
  expect(await found(store, ["ann"])).toHaveLength(100)
  while (await fillSome(store));
  expect(await kept(store)).toEqual(await expected(store))
})

test("a list takes numbers in any order, and loses them again", async () => {
  await using it = await testStore()
  const { store } = it
  while (await fillSome(store));
  const rows = made(0, 2400)
  for (const [at, row] of rows.entries()) {
    const days = ((at * 7919) % 2400) / 2 // years apart, and not in their order
    row.id = idsWith(numberOf(row.id) - Math.floor(days * 86_400_000) * 4096).high
  }
  for (let at = 0; at < rows.length; at += 100) await addAll(store, rows.slice(at, at + 100))
  expect(await kept(store)).toEqual(await expected(store))
  await store.tx((tx) => removeRows(tx, rows.slice(0, 2300)))
  expect(await kept(store)).toEqual(await expected(store))
  await store.tx((tx) => removeRows(tx, rows.slice(2300)))
  expect(await kept(store)).toEqual(new Map())
})

test("two subscribers with one number are both found, and one stays when the other goes", async () => {
  await using it = await testStore()
  const { store } = it
  while (await fillSome(store));
  const [one, other] = made(0, 2)
  if (!one || !other) throw new Error("missing rows")
  other.id = `${one.id.slice(0, 19)}ffff${one.id.slice(23)}`
  expect(numberOf(other.id)).toBe(numberOf(one.id))
  await addAll(store, [one, other])
  expect(await found(store, ["ann"])).toEqual(["user-1", "user-0"])
  expect(await found(store, ["number"], "third")).toEqual(["user-0"])
  await store.tx((tx) => removeRows(tx, [other]))
  expect(await found(store, ["ann"])).toEqual(["user-0"])
})
