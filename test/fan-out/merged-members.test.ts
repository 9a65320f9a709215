import { expect, test } from "bun:test"
import { CHUNK } from "../../src/fan-out/audience-source"
import { projectCaller } from "../../src/identity/caller"
import { mergeSubscribers } from "../../src/operations/merge-subscribers"
import type { Store } from "../../src/store/store"
import { sharedService } from "../harness/shared-service"
import { audience, begun, messagesOf, publish, record, walkAll } from "./audiences"

const service = await sharedService()
const { parts, store } = service

/** A publish whose first chunk is written. The last member's turn is yet to come. `excluded`: by their place. */
async function halfWalked(excluded: number[] = []) {
  const project = await service.project()
  const everybody = Array.from({ length: CHUNK + 2 }, () => ({}))
  const { topic, ids } = await audience(store, project, everybody)
  const exclude = excluded.map((nth) => ids.at(nth) ?? "")
  const { id } = await publish(service, project, topic, { exclude })
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

test("one that followed the topic only after the publish began takes over the place, too", async () => {
  const { project, topic, ids, id, merge, reached } = await halfWalked()
  const members = `/v1/topics/${topic.key}/subscribers`
  const late = async (external_id: string): Promise<string> => {
    const email = `${external_id}@example.test`
    const made = await project.post("/v1/subscribers", { external_id, email })
    await project.post(members, { subscriber_ids: [external_id] })
    return made.body.data.id
  }
  const [heir, other] = [await late("heir"), await late("other")]
  await merge(heir, ids.at(-1))
  await merge(other, ids[1]) // its turn is over, so the other one keeps its own place
  expect((await project.get(members)).body.data[0].subscriber_id).toBe(other)
  const { body } = await project.get(`/v1/topics/${topic.key}`)
  expect(body.data.subscriber_count).toBe(CHUNK + 2)
  await walkAll(service)
  const all = await reached()
  expect(all.filter((one) => one === heir).length).toBe(1)
  expect(all.filter((one) => one === other).length).toBe(1)
  expect((await record(parts, id)).channels.email).toMatchObject({ sent: CHUNK + 2 })
})

test("a merge that dies on its way leaves nobody out", async () => {
  const { project, ids, id, reached } = await halfWalked()
  const [written = "", waiting = ""] = [ids[0], ids.at(-1)]
  const caller = await projectCaller(store.read, project.project_id)
  if (!caller) throw new Error("the project does not send")
  const tx: Store["tx"] = (work) =>
    store.tx(async (open) => {
      await work(open)
      throw new Error("the process was killed")
    })
  const dying = { read: store.read, tx } as Store
  await expect(mergeSubscribers(dying, caller, waiting, written)).rejects.toThrow("killed")
  await walkAll(service)
  expect((await reached()).sort()).toEqual([...ids].sort())
  expect((await record(parts, id)).channels.email).toMatchObject({ sent: CHUNK + 2 })
})

test("a subscriber that takes over an excluded one before its turn gets nothing", async () => {
  const { project, ids, id, merge, reached } = await halfWalked([-1])
  const made = await project.post("/v1/subscribers", {
    external_id: "taker",
    email: "t@mailbox.test",
  })
  const [taker, between] = [made.body.data.id, ids.at(-2)]
  await merge(between, ids.at(-1))
  await merge(taker, between) // by way of another one
  await walkAll(service)
  const all = await reached()
  expect([all.includes(taker), all.length]).toEqual([false, CHUNK])
  expect((await record(parts, id)).channels.email).toMatchObject({
    ...{ planned: CHUNK + 1, sent: CHUNK, skipped: { preference: 1 } },
  })
})
