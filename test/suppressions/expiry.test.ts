import { expect, test } from "bun:test"
import { isoFrom, millis } from "../../src/core/time"
import { purgeExpired, suppressAll } from "../../src/suppressions/suppressions"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const clock = movableClock()

test("what has expired is removed, and an event tells of it", async () => {
  const project = await service.project()
  const add = (email: string, seconds?: number) => {
    const expires_at = seconds === undefined ? null : isoFrom(millis() + seconds * 1000)
    return project.post("/v1/suppressions", { email, expires_at })
  }
  await add("a@x.test", 60)
  await add("b@x.test", 3600)
  await add("c@x.test")
  while ((await purgeExpired(service.store)) > 0);
  expect((await project.get("/v1/suppressions")).body.meta.total).toBe(3)

  clock.advance({ seconds: 61 })
  const again = await add("a@x.test")
  expect(again.status).toBe(201) // what has expired is in nobody's way
  clock.advance({ seconds: 3600 })
  expect(await purgeExpired(service.store)).toBe(1)
  expect(await purgeExpired(service.store)).toBe(0)

  const { data, meta } = (await project.get("/v1/suppressions")).body
  expect([data.map(({ address }: { address: string }) => address), meta.total]).toEqual([
    ["a@x.test", "c@x.test"],
    2,
  ])
  const feed = (await project.get("/v1/events?types=suppression.deleted")).body.data
  const gone = feed.map((event: { data: { address: string } }) => event.data.address)
  expect(gone).toEqual(["a@x.test", "b@x.test"])
})

test("a thousand that expire at once go in pieces", async () => {
  const project = await service.project()
  const { project_id } = project
  const list = Array.from({ length: 450 }, (_, at) => ({
    ...{ channel: "email" as const, address: `${at}@x.test`, reason: "manual" as const },
    ...{ origin: "api" as const, expires_at: isoFrom(millis() + 1000) },
  }))
  await service.store.tx((tx) => suppressAll(tx, project_id, list))
  clock.advance({ seconds: 2 })
  const pieces: number[] = []
  while (pieces.at(-1) !== 0) pieces.push(await purgeExpired(service.store))
  expect(pieces).toEqual([200, 200, 50, 0])
  expect((await project.get("/v1/suppressions?reason=manual")).body.meta.total).toBe(0)
})
