import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { secondsFromNow } from "../../src/core/time"
import { fanOuts } from "../../src/fan-out/tables"
import { fanOutContents } from "../../src/messages/tables"
import { retentionSweeper } from "../../src/operations/retention-sweep"
import { counters } from "../../src/store/tables"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { audience, messagesOf, publish, record, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service

const DAY = 86_400

const textsOf = (id: string) =>
  store.read.select().from(fanOutContents).where(eq(fanOutContents.fan_out_id, id))

test("the texts of a publish stay as long as a message needs them, and its record as long as a message is left", async () => {
  const project = await service.project()
  const quiet_hours = {
    enabled: true,
    start: secondsFromNow(-3600).slice(11, 16),
    end: secondsFromNow(3600).slice(11, 16),
    timezone: "UTC",
    channels: ["email" as const],
  }
  const { topic } = await audience(store, project, [
    {},
    { name: "Ann", preferences: { quiet_hours } },
  ])
  const { id } = await publish(service, project, topic)
  await walkAll(service)
  await deliverAll(service)
  const sweep = retentionSweeper(store, settings())

  clock.advance({ seconds: 29 * DAY })
  await sweep()
  expect((await textsOf(id)).length).toBe(2)
  clock.advance({ seconds: 3 * DAY + 7200 })
  await deliverAll(service) // the one that slept through the quiet hours
  await sweep()
  const open = (await messagesOf(parts, project, id)).filter(({ status }) => status === "queued")
  expect(open).toEqual([])
  clock.advance({ seconds: 2 * DAY })
  await sweep()
  expect(await textsOf(id)).toEqual([])
  expect(await record(parts, id)).toMatchObject({ status: "completed" })
  const [first] = await messagesOf(parts, project, id)
  expect((await project.get(`/v1/emails/${first?.id}/content`)).status).toBe(404)

  clock.advance({ seconds: 90 * DAY })
  await sweep()
  await sweep()
  expect(await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))).toEqual([])
  expect(await store.read.select().from(counters).where(eq(counters.project_id, id))).toEqual([])
})
