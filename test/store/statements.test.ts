import { expect, test } from "bun:test"
import { asc } from "drizzle-orm"
import { newEventId, newId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import { inserter } from "../../src/store/statements"
import { testStore } from "../harness/store"

const insert = inserter(events)

const rowOf = (subject_id: string | null, data: Record<string, unknown>) => ({
  id: newEventId(),
  account_id: newId(),
  project_id: newId(),
  subject_id,
  type: "test",
  data,
  detail: null,
  created_at: "2026-11-23T00:00:00.000Z",
})

test("values that stand in several rows, change, and are missing in between, are each row's own", async () => {
  await using it = await testStore()
  const [one, other] = [newId(), newId()]
  const given = [one, one, null, one, other, null, other, one]
  const rows = given.map((subject_id, nth) => rowOf(subject_id, { nth }))
  for (const some of [rows.slice(0, 3), rows.slice(3)]) await it.store.tx((tx) => insert(tx, some))
  const found = await it.store.read.select().from(events).orderBy(asc(events.id))
  expect(found.map(({ subject_id }) => subject_id)).toEqual(given)
  expect(found.map(({ data }) => data)).toEqual(given.map((_, nth) => ({ nth })))
})

test("a text that is no id is refused each time, and what stood before it is not written instead", async () => {
  await using it = await testStore()
  const good = rowOf(newId(), {})
  for (const _ of [1, 2]) {
    const write = it.store.tx((tx) => insert(tx, [good, rowOf("no id", {})]))
    await expect(write).rejects.toThrow('"no id" is not an id')
  }
  expect(await it.store.read.select().from(events)).toEqual([])
})
