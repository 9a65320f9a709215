import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { purgeFanOuts } from "../../src/fan-out/fan-out-retention"
import { fanOuts } from "../../src/fan-out/tables"
import { OVER } from "../../src/jobs/work-item"
import { fanOutContents, messageContents, messages } from "../../src/messages/tables"
import { retentionSweeper } from "../../src/operations/retention-sweep"
import { counters } from "../../src/store/tables"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { testStore } from "../harness/store"
import { sampleRow } from "../harness/table-rows"
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

test("publishes that keep a message hold up no later one, and no call looks at all messages again", async () => {
  await using base = await testStore()
  const { tx, read } = base.store
  const project_id = newId()
  const ended = Array.from({ length: 101 }, () => ({
    ...sampleRow(fanOuts, { project_id, channels: [], completed_at: now() }),
    id: newId(),
  }))
  const made = ended.flatMap(({ id: fan_out_id }) =>
    ["older", "newer"].map(() => ({
      ...sampleRow(messages, { project_id, fan_out_id, channel: "email", tags: [], state: OVER }),
      ...{ id: newId(), fan_out_id },
    })),
  )
  const [first = "", last = ""] = [ended[0]?.id, ended.at(-1)?.id]
  const contents = made
    .filter(({ fan_out_id }) => fan_out_id !== last)
    .map(({ id: message_id }) => ({ message_id, content: {} }))
  await tx(async (tx) => {
    await tx.insert(fanOuts).values(ended as never[])
    for (const row of made) await tx.insert(messages).values(row as never)
    await tx.insert(messageContents).values(contents)
    const texts = ended.map(({ id }) => ({ fan_out_id: id, name: "values", content: {} }))
    await tx.insert(fanOutContents).values(texts)
  })
  clock.advance({ seconds: 40 * DAY })
  const ages = {
    bodies_before: secondsFromNow(-30 * DAY),
    messages_before: secondsFromNow(-90 * DAY),
  }
  const needing = new Map<string, string>()
  const purge = () => purgeFanOuts(base.store, project_id, ages, needing)
  const withTexts = async () =>
    (await read.select().from(fanOutContents)).map(({ fan_out_id }) => fan_out_id)
  const forget = (id = "") =>
    tx((tx) => tx.delete(messageContents).where(eq(messageContents.message_id, id)))

  await purge()
  expect([(await withTexts()).length, needing.size]).toEqual([100, 100])
  expect(await withTexts()).not.toContain(last)
  const [older, newer] = made
  expect(needing.get(first)).toBe(newer?.id)
  await forget(newer?.id)
  await purge()
  expect(needing.get(first)).toBe(older?.id)
  await forget(older?.id)
  await purge()
  expect(await withTexts()).not.toContain(first)
  expect([(await withTexts()).length, needing.size]).toEqual([99, 99])
})
