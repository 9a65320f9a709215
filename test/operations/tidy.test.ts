import { expect, test } from "bun:test"
import { and, eq, like } from "drizzle-orm"
import { counterSweeper } from "../../src/operations/tidy"
import { counters } from "../../src/store/tables"
import { addSubscriber } from "../harness/audience"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const { store } = service

async function tagCounters({ project_id }: TestProject) {
  const { name } = counters
  const ours = and(eq(counters.project_id, project_id), like(name, "subscribers.tag.%"))
  const rows = await store.read.selectDistinct({ name }).from(counters).where(ours)
  return rows.map((row) => row.name).sort()
}

test("the counter of a tag that nobody has any more goes within a day", async () => {
  const project = await service.project()
  const path = (id: string) => `/v1/subscribers/${id}`
  const one = await addSubscriber(project, { tags: ["beta", "old"] })
  await addSubscriber(project, { tags: ["beta"] })
  const sweep = counterSweeper(store)
  await sweep()
  await project.call("PATCH", path(one.id), { body: { tags: ["young"] } })
  expect(await tagCounters(project)).toHaveLength(3)
  await sweep() // the turn of the day is over
  expect(await tagCounters(project)).toHaveLength(3)
  clock.advance({ seconds: 86_400 })
  await sweep()
  expect(await tagCounters(project)).toEqual(["subscribers.tag.beta", "subscribers.tag.young"])
  await project.call("DELETE", path(one.id))
  clock.advance({ seconds: 86_400 })
  await sweep()
  expect(await tagCounters(project)).toEqual(["subscribers.tag.beta"])
  expect((await project.get("/v1/subscribers?tag=beta")).body.meta.total).toBe(1)
  expect((await project.get("/v1/subscribers?tag=young")).body.meta.total).toBe(0)
})
