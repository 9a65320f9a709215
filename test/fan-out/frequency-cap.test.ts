import { expect, test } from "bun:test"
import { inArray } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { fanOutContents } from "../../src/messages/tables"
import { retentionSweeper } from "../../src/operations/retention-sweep"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { audience, publish, record, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service

const DAY = 86_400

const CAP = { count: 1, per_seconds: 30 * DAY }

async function withCap() {
  const project = await service.project()
  const body = { frequency_cap: CAP, retention: { bodies_days: 1 } }
  expect((await project.call("PATCH", "/v1/settings", { body })).status).toBe(200)
  const { topic } = await audience(store, project, [{}])
  const ids: string[] = []
  const sentBy = async (wish: Parameters<typeof publish>[3] = {}) => {
    const { id } = await publish(service, project, topic, wish)
    await walkAll(service)
    await deliverAll(service)
    const { email } = (await record(parts, id)).channels
    ids.push(id)
    return { sent: email?.sent, capped: email?.skipped.frequency_cap }
  }
  const texts = () =>
    store.read.select().from(fanOutContents).where(inArray(fanOutContents.fan_out_id, ids))
  const send = async () => {
    const { body } = await project.post("/v1/emails", mail({ subscriber_id: "reader-0" }))
    return (await project.get(`/v1/emails/${body.id}`)).body.data.status_reason
  }
  return { sentBy, send, texts }
}

test("a publish that does not ask for preferences is neither capped nor counted, also when its texts are gone", async () => {
  const { sentBy, send, texts } = await withCap()
  const ignoring = { respect_preferences: false }
  expect(await sentBy(ignoring)).toEqual({ sent: 1, capped: 0 })
  expect(await sentBy(ignoring)).toEqual({ sent: 1, capped: 0 })
  clock.advance({ seconds: 3 * DAY })
  expect((await texts()).some(({ name }) => name === "email")).toBe(true)
  await retentionSweeper(store, settings())()
  expect((await texts()).some(({ name }) => name === "email")).toBe(false)
  expect(await sentBy()).toEqual({ sent: 1, capped: 0 })
  expect(await sentBy()).toEqual({ sent: 0, capped: 1 })
  expect(await send()).toBe("frequency_cap")
  expect(await sentBy(ignoring)).toEqual({ sent: 1, capped: 0 })
})
