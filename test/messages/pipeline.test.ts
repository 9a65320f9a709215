import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { monotonic } from "../../src/core/time"
import { readAhead, recentContents, recentContentsOf } from "../../src/messages/contents"
import * as pipeline from "../../src/messages/pipeline"
import { messageContents, messages } from "../../src/messages/tables"
import { testStore } from "../harness/store"
import { letter } from "./letters"

const body = (characters: number) => ({ html: null, text: "x".repeat(characters), headers: {} })

test("a content is given out once", () => {
  const fresh = recentContents()
  const content = body(10)
  fresh.keep("a", content)
  expect(fresh.remove("a")).toBe(content)
  expect(fresh.remove("a")).toBeUndefined()
  expect(fresh.size).toBe(0)
})

test("where there are too many, the first ones are kept, and what is large never is", () => {
  const fresh = recentContents()
  const ids = Array.from({ length: 200 }, () => newId())
  for (const id of ids) fresh.keep(id, body(60_000))
  expect(fresh.size).toBeLessThanOrEqual(4 * 1024 * 1024)
  expect(fresh.remove(ids[0] ?? "")).toBeDefined()
  expect(fresh.remove(ids.at(-1) ?? "")).toBeUndefined()
  fresh.keep("large", { ...body(1), headers: { "X-Long": "y".repeat(70_000) } })
  expect(fresh.remove("large")).toBeUndefined()
})

test("short contents count what they take beside their characters", () => {
  const fresh = recentContents()
  const content = { shared: "email", subscriber: { id: newId(), name: "Ada" } }
  const ids = Array.from({ length: 20_000 }, () => newId())
  for (const id of ids) fresh.keep(id, content)
  const kept = ids.filter((id) => fresh.remove(id) !== undefined)
  expect(kept.length).toBeGreaterThan(5_000)
  expect(kept.length).toBeLessThan(12_000)
})

test("contents that nothing asked for within ten seconds give way", () => {
  const fresh = recentContents()
  const ids = Array.from({ length: 200 }, () => newId())
  const long_ago = monotonic() - 11_000
  for (const id of ids) fresh.keep(id, body(60_000), { at: long_ago })
  fresh.keep("new", body(60_000))
  expect(fresh.remove(ids[0] ?? "")).toBeUndefined()
  expect(fresh.remove("new")).toBeDefined()
  expect(fresh.size).toBe(0)
})

test.each([10, 5_000, 70_000, 1_200_000])(
  "a text of %d characters is in the database as it was, for who has it from nowhere else",
  async (characters) => {
    await using it = await testStore()
    const text = `ä \ud800 "\r\n${"Dong \u{1f514} ".repeat(characters / 8)}`
    const content = { html: null, text, headers: { "X-One": "1" } }
    await it.store.tx((tx) => pipeline.accept(tx, [letter({ content })]))
    const [kept] = await it.store.read.select().from(messageContents)
    expect(kept?.content).toEqual(content)
  },
)

test("what is attempted next has its short contents in memory, however long ago it was accepted", async () => {
  await using it = await testStore()
  const { store } = it
  const list = [10, 20, 5_000].map((characters) => letter({ content: body(characters) }))
  await store.tx((tx) => pipeline.accept(tx, list))
  const recent = recentContentsOf(store.read)
  recent.clear()
  await readAhead(store.read, await store.read.select().from(messages))
  expect(list.map(({ id }) => recent.remove(id))).toEqual([body(10), body(20), undefined])
})
