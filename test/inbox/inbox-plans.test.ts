import { beforeAll, describe, expect, test } from "bun:test"
import { isoFrom, millis, now } from "../../src/core/time"
import { INBOX_FILTERS, list } from "../../src/inbox/inbox-list"
import { countsIn, unreadByCategory } from "../../src/inbox/ledger"
import { type InboxEntry, inboxEntries } from "../../src/inbox/tables"
import { inserter } from "../../src/store/statements"
import type { Store } from "../../src/store/store"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { engine, testStore } from "../harness/store"
import { outside } from "../store/outside"
import { planOf, slowSteps, statementsOf } from "../store/plans"

quietLog()

const PROJECT = idFor("project_1")
const ANN = idFor("ann")
const INDEXES = {
  ...{ all: "in_sight", unread: "unread", archived: "archived", snoozed: "snoozed" },
}
const later = isoFrom(millis() + 86_400_000)

/** A large inbox beside many small ones. */
async function fill(store: Store) {
  const at = now()
  const rows = Array.from({ length: 4000 }, (_, place): InboxEntry => {
    const id = idFor(`m${String(place).padStart(6, "0")}`)
    return {
      ...{ id, project_id: PROJECT, content_id: id, seq: place, category: null, told: 0 },
      subscriber_id: place % 2 === 0 ? ANN : idFor(`s${place % 500}`),
      ...{ collapse_key: null, completed: null, expires_at: null, created_at: at, updated_at: at },
      seen_at: place % 3 === 0 ? at : null,
      read_at: place % 3 === 0 ? at : null,
      archived_at: place % 7 === 0 ? at : null,
      ...(place % 11 === 0
        ? { snoozed_until: later, wakes_at: later }
        : { snoozed_until: null, wakes_at: null }),
    }
  })
  await store.tx((tx) => inserter(inboxEntries)(tx, rows))
}

const last = { after: idFor("m002000"), before: undefined }
const pages = [
  { limit: 26, offset: 0 },
  { limit: 26, offset: 0, ...last },
]
const asked = { subscriber_id: ANN }

describe("an inbox is read along its index", () => {
  let it: Awaited<ReturnType<typeof testStore>>

  beforeAll(async () => {
    it = await testStore()
    await fill(it.store)
    await using database = outside(it)
    // A Postgres counts by itself after some rows. A SQLite of ours never does.
    if (engine === "postgres") await database.rows("ANALYZE")
    return async () => it[Symbol.asyncDispose]()
  })

  async function plansOf(work: () => Promise<unknown>): Promise<string[][]> {
    await using database = outside(it)
    const plans: string[][] = []
    for (const text of await statementsOf(work)) plans.push(await planOf(database, text))
    return plans
  }

  test.each(INBOX_FILTERS.map((filter) => [filter]))("the list of %s", async (filter) => {
    for (const window of pages) {
      const read = () => list(it.store.read, PROJECT, { ...asked, filter }, window)
      const plans = await plansOf(read)
      expect(plans).toHaveLength(1)
      expect(plans.flatMap(slowSteps)).toEqual([])
      expect(plans.join("\n")).toContain(`inbox_entries_${INDEXES[filter]}`)
    }
  })

  test("the counts", async () => {
    const plans = await plansOf(async () => {
      await countsIn(it.store.read, ANN)
      await unreadByCategory(it.store.read, ANN)
      const found = await list(it.store.read, PROJECT, { ...asked, filter: "all" }, last26)
      await found.total()
    })
    expect(plans.flatMap(slowSteps)).toEqual([])
    const [counts, categories, , total] = plans
    expect([counts, categories, total].join()).not.toContain("inbox_entries")
  })
})

const last26 = { limit: 26, offset: 0 }
