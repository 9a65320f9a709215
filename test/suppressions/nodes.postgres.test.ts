import { afterAll, expect, test } from "bun:test"
import { settings } from "../../src/core/config"
import { openStore } from "../../src/store/open"
import { hasSuppressions, suppressedAmong } from "../../src/suppressions/look-up"
import { suppress } from "../../src/suppressions/suppressions"
import { sharedService } from "../harness/shared-service"

const first = await sharedService()

/** Another node on the same database, which knows nothing of the first one. */
const store = await openStore({ ...settings(), database_url: first.database_url })
afterAll(() => store.close())

const ANN = { channel: "email", address: "ann@x.test", reason: "bounce", origin: "event" } as const

test("what one node suppresses the other knows when it delivers, whatever it remembers", async () => {
  const { project_id } = await first.project()
  expect(await hasSuppressions(store.read, project_id, { recent: true })).toBe(false)
  await first.store.tx((tx) => suppress(tx, project_id, ANN))
  // Accept may still believe what it read a moment ago.
  const found = await suppressedAmong(store.read, { project_id, channel: "email" }, ["ann@x.test"])
  expect([...found.keys()]).toEqual(["ann@x.test"])
  expect(await hasSuppressions(store.read, project_id)).toBe(true)
})

test("of the same address, suppressed at both nodes at once, there is one", async () => {
  const { project_id } = await first.project()
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      (at % 2 ? store : first.store).tx((tx) => suppress(tx, project_id, ANN)),
    ),
  )
  expect(all.filter((row) => row !== undefined)).toHaveLength(1)
})

test("look-ups of one turn share a query, and each gets its own rows", async () => {
  const projects = [await first.project(), await first.project()]
  for (const { project_id } of projects) {
    await first.store.tx((tx) => suppress(tx, project_id, ANN))
  }
  const [one = "", two = ""] = projects.map(({ project_id }) => project_id)
  const asked = await Promise.all([
    suppressedAmong(store.read, { project_id: one, channel: "email" }, [
      "ann@x.test",
      "ben@x.test",
    ]),
    suppressedAmong(store.read, { project_id: two, channel: "email" }, ["ben@x.test"]),
    suppressedAmong(store.read, { project_id: two, channel: "email" }, ["ann@x.test"]),
    suppressedAmong(store.read, { project_id: two, channel: "email" }, []),
  ])
  expect(asked.map((found) => [...found.values()].map((row) => row.project_id))).toEqual([
    [one],
    [],
    [two],
    [],
  ])
})
