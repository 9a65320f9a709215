import { beforeAll, describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import { inserter } from "../../src/store/statements"
import type { Store } from "../../src/store/store"
import { hasSuppressions, unexpired } from "../../src/suppressions/look-up"
import { list } from "../../src/suppressions/suppression-list"
import { purgeExpired } from "../../src/suppressions/suppressions"
import { suppressions } from "../../src/suppressions/tables"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { outside } from "../store/outside"
import { planOf, slowSteps, statementsOf } from "../store/plans"

quietLog()

const PROJECT = idFor("project_1")
const page = { limit: 25, offset: 0, after: undefined, before: undefined }

const listed = (filter: Parameters<typeof list>[2]) => (store: Store) =>
  list(store.read, PROJECT, filter).list(page)

const asked = (addresses: string[]) => (store: Store) =>
  unexpired(store.read, PROJECT, "email", addresses)

const paths: [string, string, (store: Store) => Promise<unknown>][] = [
  ["one address", "suppressions_by_address", asked(["a@x.test"])],
  ["many addresses", "suppressions_by_address", asked(["a@x.test", "b@x.test", "c@x.test"])],
  [
    "whether there is any",
    "suppressions_by_",
    async (store) => hasSuppressions(store.read, idFor("project_2")),
  ],
  ["the list", "suppressions_by_project", listed({})],
  ["the list by reason", "suppressions_by_reason", listed({ reason: "bounce" })],
  ["the list by origin", "suppressions_by_origin", listed({ origin: "event" })],
  ["the list by reply", "suppressions_by_project", listed({ diagnostic: "ofr" })],
  [
    "the list by reason and reply",
    "suppressions_by_reason",
    listed({ reason: "bounce", diagnostic: "ofr" }),
  ],
  ["the list by channel", "suppressions_by_channel", listed({ channel: "sms" })],
  ["what has expired", "suppressions_by_expiry", purgeExpired],
]

/** Some of the addresses of many projects. */
async function fill(store: Store) {
  const day = 86_400_000
  const [created_at, ends] = [isoFrom(millis()), isoFrom(millis() + day)]
  const rows = Array.from({ length: 4000 }, (_, at) => ({
    id: newId(),
    project_id: idFor(`project_${at % 200}`),
    channel: at % 4000 < 400 ? ("sms" as const) : ("email" as const),
    address: `${at}@x.test`,
    reason: at % 3 === 0 ? ("bounce" as const) : ("manual" as const),
    origin: at % 7 === 0 ? ("event" as const) : ("import" as const),
    scope_type: "project" as const,
    scope_key: "",
    expires_at: at % 50 === 0 ? ends : null,
    created_at,
  }))
  await store.tx((tx) => insert(tx, rows))
}

const insert = inserter(suppressions)

describe("every look-up walks its index, so that it costs the same among millions:", () => {
  let it: Awaited<ReturnType<typeof testStore>>

  beforeAll(async () => {
    it = await testStore()
    await fill(it.store)
    return async () => it[Symbol.asyncDispose]()
  })

  test.each(paths)("%s", async (_, index, walk) => {
    await using database = outside(it)
    await database.rows("ANALYZE").catch(() => []) // on SQLite only the writer may
    const statements = await statementsOf(() => walk(it.store))
    expect(statements.length).toBeGreaterThan(0)
    for (const text of statements) {
      const plan = await planOf(database, text)
      expect(slowSteps(plan)).toEqual([])
      expect(plan.join("\n")).toContain(index)
    }
  })

  test("an address in every channel, and its few rows in order", async () => {
    await using database = outside(it)
    const statements = await statementsOf(() => listed({ address: "a@x.test" })(it.store))
    for (const text of statements) {
      const plan = (await planOf(database, text)).join("\n")
      expect(plan).toContain("suppressions_by_address")
      expect(plan).not.toMatch(/SCAN suppressions|Seq Scan/)
    }
  })
})
