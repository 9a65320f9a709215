import { expect, test } from "bun:test"
import { CHUNK } from "../../src/fan-out/walk-rows"
import { sharedService } from "../harness/shared-service"
import { audience, begun, messagesOf, publish, record, walkAll } from "./audiences"

const service = await sharedService()
const { parts, store } = service

/** A publish whose first chunk is written. The last member's turn is yet to come. */
async function halfWalked() {
  const project = await service.project()
  const everybody = Array.from({ length: CHUNK + 2 }, () => ({}))
  const { topic, ids } = await audience(store, project, everybody)
  const { id } = await publish(service, project, topic)
  const walk = await begun(service, id)
  expect(await walk.step()).toBe("more")
  const merge = async (into_id: string | undefined, from_id: string | undefined) => {
    const merged = await project.post(`/v1/subscribers/${into_id}/merge`, { from_id })
    expect(merged.status).toBe(200)
  }
  const reached = async () =>
    (await messagesOf(parts, project, id)).map(({ subscriber_id }) => subscriber_id)
  return { project, topic, ids, id, merge, reached }
}

test("a member that takes over one with a message gets no second one, and is counted as skipped", async () => {
  const { ids, id, merge, reached } = await halfWalked()
  const [written, waiting] = [ids[0], ids.at(-1)]
  await merge(waiting, written)
  await walkAll(service)
  const all = await reached()
  expect(all.filter((one) => one === waiting).length).toBe(1)
  expect(all.length).toBe(new Set(all).size)
  expect(await record(parts, id)).toMatchObject({
    status: "completed",
    channels: { email: { planned: CHUNK + 2, sent: CHUNK + 1, skipped: { preference: 1 } } },
  })
})

test("a member with a message that left, and takes over the place of another, gets no second one", async () => {
  const { project, topic, ids, id, merge, reached } = await halfWalked()
  const [written, waiting] = [ids[0], ids.at(-1)]
  const path = `/v1/topics/${topic.key}/subscribers/${written}`
  expect((await project.call("DELETE", path)).status).toBe(200)
  await merge(written, waiting)
  await walkAll(service)
  const all = await reached()
  expect(all.filter((one) => one === written).length).toBe(1)
  expect((await record(parts, id)).channels.email).toMatchObject({
    ...{ sent: CHUNK + 1, skipped: { preference: 1 } },
  })
})

test("a subscriber that takes over a member before its turn gets the message", async () => {
  const { project, ids, id, merge, reached } = await halfWalked()
  const made = await project.post("/v1/subscribers", { external_id: "heir" })
  const heir: string = made.body.data.id
  await merge(heir, ids.at(-1))
  await walkAll(service)
  const all = await reached()
  expect(all.filter((one) => one === heir).length).toBe(1)
  expect((await record(parts, id)).channels.email).toMatchObject({ sent: CHUNK + 2 })
})
