import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { millis } from "../../src/core/time"
import { hourOf, KEPT_HOURS, NONE, purgeHours } from "../../src/reputation/hour-counts"
import { reputationHours } from "../../src/reputation/tables"
import { testStore } from "../harness/store"

test("an old hour of an account goes in small transactions, and nothing that is younger", async () => {
  await using test = await testStore()
  const { store } = test
  const [account_id, project_id, other_id] = [newId(), newId(), newId()]
  const now = hourOf(millis())
  const old = now - KEPT_HOURS - 1
  const row = (hour: number, name: string, shard = 0) => ({
    ...{ account_id, project_id, dimension: "tag" as const, name, hour, shard },
    ...NONE,
  })
  const tags = Array.from({ length: 450 }, (_, nth) => row(old, `order-${nth}`, nth % 2))
  const young = [row(now, "order-1"), row(now - KEPT_HOURS, "order-2")]
  const total = { ...row(old, ""), dimension: "project" as const }
  const other = { ...row(old, "order-1"), account_id: other_id }
  const rows = [...tags, ...young, total, other]
  await store.tx((tx) => tx.insert(reputationHours).values(rows))

  const gone: number[] = []
  for (let removed = await purgeHours(store); removed > 0; removed = await purgeHours(store)) {
    gone.push(removed)
  }
  expect(Math.max(...gone)).toBeLessThanOrEqual(200)
  expect(gone.reduce((sum, removed) => sum + removed)).toBe(rows.length - young.length)
  const left = await store.read.select().from(reputationHours)
  expect(left.map(({ hour }) => hour).sort()).toEqual(young.map(({ hour }) => hour).sort())
})
