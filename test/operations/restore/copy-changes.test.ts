import { expect, test } from "bun:test"
import { changeCopy } from "../../../src/operations/restore/copy-changes"
import { COMPLETE, notePosted, postedUpTo } from "../../../src/subscribers/postings"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { testStore } from "../../harness/store"

test("a copy on Postgres does not say that its posting lists are complete, and one on SQLite does", async () => {
  await using it = await testStore()
  const { store } = it
  await store.tx((tx) => notePosted(tx, null))
  await changeCopy(store, { runs_on: ALLOWED_WHILE_HELD, revoke_keys: false })
  expect(await postedUpTo(store.read)).toBe(store.isAlone ? COMPLETE : undefined)
})
