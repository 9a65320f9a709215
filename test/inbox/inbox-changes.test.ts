import { expect, test } from "bun:test"
import { isoFrom, millis, secondsFromNow } from "../../src/core/time"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { codesOf, inboxEvents, onlyMessage } from "./inboxes"
import { addSubscriber } from "./subscriber-app"

const clock = movableClock()
const service = await sharedService()

async function told(more: object = {}) {
  const project = await service.project()
  await addSubscriber(service, project, "ann")
  const sent = await project.post("/v1/inbox", { external_id: "ann", title: "Ding", ...more })
  const { id } = sent.body.data
  const change = (body: object) => project.call("PATCH", `/v1/inbox/${id}`, { body })
  return { project, id, change }
}

test("a change of the content, of what goes along, and of the end", async () => {
  const { project, change } = await told({ body: "Old", tags: ["old"], metadata: { a: 1 } })
  const before = await onlyMessage(project, "ann")
  const expires_at = secondsFromNow(60)
  const given = {
    ...{ title: "Dong", body: null, action_url: "/b", action_label: "Go", icon: "/i", expires_at },
    ...{ image_url: "/a.png", priority: "urgent", data: { b: 2 }, category: "news", tags: ["new"] },
    ...{ metadata: { b: 2 }, actions: [{ key: "a", label: "A", url: null, style: null }] },
  }
  const changed = await change(given)
  expect(changed.status).toBe(200)
  const actions = [{ ...given.actions[0], completed_at: null }]
  const { data } = changed.body
  expect(data).toMatchObject({ ...given, actions, seq: 2, id: before.id })
  expect(await onlyMessage(project, "ann")).toEqual(data)
  expect((await project.get("/v1/inbox?tag=old")).body.data).toEqual([])
  expect((await project.get("/v1/inbox?tag=new&category=news")).body.data).toHaveLength(1)
  expect((await change({ title: "Dong", category: "news" })).body.data.seq).toBe(2)
  expect((await change(given)).body.data.seq).toBe(2)
  expect((await change({ metadata: { c: 3 } })).body.data).toMatchObject({
    metadata: { c: 3 },
    seq: 3,
  })
})

test("a change of the state tells each event the first time", async () => {
  const { project, change } = await told()
  const state = async (body: object) => {
    const { seen_at, read_at, archived_at } = (await change(body)).body.data
    return [seen_at !== null, read_at !== null, archived_at !== null]
  }
  expect(await state({ read: true })).toEqual([true, true, false])
  expect(await state({ seen: false })).toEqual([false, false, false])
  expect(await state({ seen: true, archived: true })).toEqual([true, false, true])
  expect((await project.get("/v1/inbox?state=archived")).body.data).toHaveLength(1)
  expect(await state({ read: true, archived: false })).toEqual([true, true, false])
  expect(await inboxEvents(project)).toEqual(["inbox.created", "inbox.read", "inbox.archived"])
  const counts = { created: 1, seen: 1, read: 1, archived: 1 }
  expect((await project.get("/v1/inbox/stats?period=day")).body.data).toMatchObject(counts)
})

test("a change that is refused", async () => {
  const { project, id, change } = await told()
  for (const [body, codes] of [
    [{}, { body: "nothing_to_change" }],
    [{ title: null }, { title: "invalid" }],
    [{ action_url: "//a" }, { action_url: "invalid_url" }],
    [{ read: "yes" }, { read: "invalid" }],
    [{ expires_at: secondsFromNow(-1) }, { expires_at: "invalid" }],
  ] as const)
    expect(codesOf(await change(body))).toEqual(codes)
  const stranger = await service.project()
  const foreign = await stranger.call("PATCH", `/v1/inbox/${id}`, { body: { title: "Mine" } })
  expect(refusal(foreign)).toEqual([404, "not_found"])
  await project.post("/v1/subscribers/categories", { name: "News", slug: "news" })
  expect(codesOf(await change({ category: "other" }))).toEqual({ category: "unknown_category" })
})

test("what has expired is gone at once", async () => {
  const end = { expires_at: isoFrom(millis() + 60_000), collapse_key: "k" }
  const { project, id, change } = await told(end)
  clock.advance({ seconds: 61 })
  expect((await project.get(`/v1/inbox?external_id=ann`)).body.data).toEqual([])
  const next = { external_id: "ann", title: "Dong", collapse_key: "k" }
  expect((await project.post("/v1/inbox", next)).body.data.id).not.toBe(id)
  for (const answer of [await project.get(`/v1/inbox/${id}`), await change({ read: true })])
    expect(refusal(answer)).toEqual([404, "not_found"])
})
