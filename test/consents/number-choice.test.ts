import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { brokenRecord } from "../../src/consents/consents"
import { unsubscribes } from "../../src/subscribers/tables"
import { addSubscriber, chainOfSubscriber } from "../harness/audience"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { chooseAll, eventsOf, NUMBER, write } from "../sms/told"

const service = await sharedService()
const { store } = service

const endedOf = async ({ project_id }: TestProject) =>
  (await store.read.select().from(unsubscribes).where(eq(unsubscribes.project_id, project_id)))
    .filter(({ channel }) => channel === "sms")
    .map(({ subscriber_id, category, reason }) => ({ subscriber_id, category, reason }))

const toldOf = async (project: TestProject) =>
  (await eventsOf(store, project, "subscriber.")).map(({ type, data }) => [
    type.replace("subscriber.", ""),
    data.subscriber_id,
    data.reason,
  ])

/** The text comes in, and everybody's choice is made. */
async function says(project: TestProject, text: string) {
  await write(store, project, text)
  await chooseAll(store)
}

test("STOP and START count for both subscribers with the number, and for nobody else", async () => {
  const [project, other] = [await service.project(), await service.project()]
  const [ann, bob] = [
    await addSubscriber(project, { phone: NUMBER }),
    await addSubscriber(project, { phone: NUMBER }),
  ]
  await addSubscriber(project, { phone: "+14155550102" })
  await addSubscriber(other, { phone: NUMBER })
  const both = [ann.id, bob.id].sort()
  await project.post(`/v1/subscribers/${ann.id}/unsubscribe`, { channel: "email" })
  await project.post(`/v1/subscribers/${ann.id}/unsubscribe`, { channel: "sms", category: "news" })
  const news = { subscriber_id: ann.id, category: "news", reason: null }

  for (const _ of [1, 2]) await says(project, "STOP")
  const ended = both.map((id) => ({ subscriber_id: id, category: "", reason: "stop" }))
  expect(await endedOf(project)).toEqual(expect.arrayContaining([news, ...ended]))
  const stopped = both.map((id) => ["unsubscribed", id, "stop"])
  expect((await toldOf(project)).slice(2)).toEqual(stopped)

  for (const _ of [1, 2]) await says(project, "Start")
  expect(await endedOf(project)).toEqual([news])
  const started = both.map((id) => ["resubscribed", id, "start"])
  expect((await toldOf(project)).slice(2)).toEqual([...stopped, ...started])
  expect([await endedOf(other), await toldOf(other)]).toEqual([[], []])

  const chain = await chainOfSubscriber(service, bob.id)
  expect(brokenRecord(chain)).toBeUndefined()
  expect(
    chain.map(({ channel, scope_type, action, source }) => [channel, scope_type, action, source]),
  ).toEqual([
    ["sms", null, "withdrawn", "sms"],
    ["sms", null, "granted", "sms"],
  ])
  expect(chain[0]?.proof).toStartWith("the text ")
})

test("the last word counts, when both were said before anybody's choice was made", async () => {
  const project = await service.project()
  await addSubscriber(project, { phone: NUMBER })
  for (const text of ["STOP", "START"]) await write(store, project, text)
  expect(await chooseAll(store)).toBe(2)
  expect([await endedOf(project), await toldOf(project)]).toEqual([[], []])
})

test("hundreds of subscribers with one number are all told", async () => {
  const project = await service.project()
  const people = Array.from({ length: 230 }, (_, at) => ({ external_id: `p${at}`, phone: NUMBER }))
  const added = await project.post("/v1/subscribers/bulk", { subscribers: people })
  expect(added.status).toBe(200)
  await says(project, "STOP")
  expect(await endedOf(project)).toHaveLength(230)
  expect(await toldOf(project)).toHaveLength(230)
})
