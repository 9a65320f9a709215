import { expect, spyOn, test } from "bun:test"
import { emit } from "../../src/events/emit"
import * as feed from "../../src/events/feed"
import type { Store } from "../../src/store/store"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

quietLog()

const PROJECT = idFor("project_1")

const tell = (store: Store, type: string) =>
  store.tx((tx) =>
    emit(tx, { account_id: idFor("a"), project_id: PROJECT, subject_id: null, type, data: {} }),
  )

// On Postgres the poll may be needed: an older transaction of somebody else holds events back.
test("who waits is woken by a commit, with polls that never come", async () => {
  const real = globalThis.setTimeout
  const never = (work: () => void, ms?: number) => real(ms === 1000 ? () => {} : work, ms)
  const timers = spyOn(globalThis, "setTimeout").mockImplementation(never as typeof setTimeout)
  await using it = await testStore()
  const { store } = it
  await tell(store, "before")
  const {
    rows: [known],
  } = await feed.read(store.read, PROJECT, { limit: 1, types: [] })
  const query = { after: known?.id, limit: 10, types: [] }
  let rounds = 0
  const counting: typeof store.read = Object.create(store.read, {
    select: {
      value: (...fields: []) => {
        rounds += 1
        return store.read.select(...fields)
      },
    },
  })

  const waiting = feed.readWaiting(counting, PROJECT, query, 20_000, new AbortController().signal)
  while (rounds < 2) await Bun.sleep(1) // it has looked once: the cursor, then the events
  await tell(store, "after")
  expect((await waiting).rows.map(({ type }) => type)).toEqual(["after"])
  timers.mockRestore()
})
