import { describe, expect, test } from "bun:test"
import { messageContents } from "../../src/messages/tables"
import type { PushContent } from "../../src/push/push-content"
import { MOST_DEVICES } from "../../src/push/push-planner"
import { audience, messagesOf, publish, record, walkAll } from "../fan-out/audiences"
import { refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addDevice, pushProject } from "./pushes"

const service = await sharedService()
const { store, parts } = service

const saying = (fields: object) => ({
  texts: {},
  others: { priority: "high" },
  ttl_seconds: null,
  ...fields,
})

const NEWS = saying({ texts: { title: "News for {{subscriber.name}}" } })

/** Publishes to the people, the first of whom is `reader-0`, and walks to the end. */
async function publishedTo(
  project: TestProject,
  people: Parameters<typeof audience>[2],
  wish: Parameters<typeof publish>[3] = {},
) {
  const { topic, ids } = await audience(store, project, people)
  const asked = { channels: ["push" as const], content: { push: NEWS }, ...wish }
  const { id } = await publish(service, project, topic, asked)
  await walkAll(service)
  const contents = new Map(
    (await store.read.select().from(messageContents)).map(({ message_id, content }) => [
      message_id,
      content as PushContent,
    ]),
  )
  const rows = await messagesOf(parts, project, id)
  const pushes = rows.map((row) => ({ ...row, content: contents.get(row.id) }))
  return { pushes, ids, counts: (await record(parts, id)).channels.push }
}

describe("a publish by push", () => {
  test("reaches every device of a member, counts the member once, and skips who has none", async () => {
    const project = await pushProject(service, ["apns"], { limits: { sends_per_second: 5 } })
    const { project_id } = project
    const of = (at: number, more = {}) =>
      addDevice(store, project_id, { user_id: `reader-${at}`, ...more })
    const [phone, tablet] = [await of(0), await of(0)]
    await of(0, { scope: "environment:0:test" })
    await of(0, { status: "disabled" })
    const other = await of(2)
    const people = [{ name: "Ann" }, { name: "Bob" }, { name: "Carl" }]
    const { pushes, ids, counts } = await publishedTo(project, people)
    expect(pushes).toMatchObject([
      { address: phone.device_id, subject: "News for Ann", units: 1, subscriber_id: ids[0] },
      { address: tablet.device_id, subject: "News for Ann", source: "topic", user_id: "reader-0" },
      { address: other.device_id, subject: "News for Carl", batch_id: null, stream: "broadcast" },
    ])
    expect(pushes[0]?.batch_id).not.toBeNull()
    expect(pushes[1]?.batch_id).toBe(pushes[0]?.batch_id ?? "")
    expect(pushes[0]?.envelope).toMatchObject({ topic: "releases", push: { provider: "apns" } })
    expect(counts).toMatchObject({ planned: 3, sent: 2, failed: 0, skipped: { no_address: 1 } })
  })

  test("says what a template says in the language of each, and what is the same for all", async () => {
    const project = await pushProject(service)
    for (const at of [0, 1]) await addDevice(store, project.project_id, { user_id: `reader-${at}` })
    const texts = (title: string) => ({ push: { title, body: "7", data: { order: "7" } } })
    const made = await project.post("/v1/templates", {
      ...{ name: "news", locale: "en", channels: texts("News") },
      locales: { de: { channels: texts("Neues") } },
    })
    await project.post(`/v1/templates/${made.body.data.id}/publish`)
    const wish = { template: "news", content: null }
    const { pushes } = await publishedTo(project, [{}, { locale: "de" }], wish)
    expect(pushes.map(({ content }) => content)).toEqual([
      { title: "News", body: "7", data: { order: "7" }, priority: "high" },
      { title: "Neues", body: "7", data: { order: "7" }, priority: "high" },
    ])
  })

  test("fails at once what is too large, cannot be rendered, or has no credentials", async () => {
    const project = await pushProject(service, ["apns"])
    const { project_id } = project
    for (const at of [0, 1, 2]) await addDevice(store, project_id, { user_id: `reader-${at}` })
    const fcm = { user_id: "reader-0", provider: "fcm", platform: "android" } as const
    await addDevice(store, project_id, fcm)
    const people = ["short", "ы".repeat(2000), "x".repeat(2001)]
    const { pushes, counts } = await publishedTo(
      project,
      people.map((said) => ({ metadata: { said } })),
      { content: { push: saying({ texts: { body: "{{subscriber.metadata.said}}" } }) } },
    )
    expect(
      pushes.map(({ status, status_reason, units }) => [status, status_reason, units]),
    ).toEqual([
      ["queued", null, 1],
      ["failed", "provider_unavailable", 0],
      ["failed", "payload_too_large", 0],
      ["failed", "template_render_failed", 0],
    ])
    expect(counts).toMatchObject({ sent: 3, failed: 3 })
  })

  test("writes no more messages at once than it should, whoever has how many devices", async () => {
    const project = await pushProject(service)
    const { project_id } = project
    const each = Math.ceil(MOST_DEVICES / 6)
    const people = Array.from({ length: 9 }, () => ({}))
    const users = people.flatMap((_, at) => Array.from({ length: each }, () => `reader-${at}`))
    await Promise.all(users.map((user_id) => addDevice(store, project_id, { user_id })))
    const { topic, ids } = await audience(store, project, people)
    // The first ones are passed over, and fill a chunk all the same.
    const exclude = ids.slice(0, 7)
    const asked = { channels: ["push" as const], content: { push: NEWS }, exclude }
    const { id } = await publish(service, project, topic, asked)
    await walkAll(service)
    expect(await messagesOf(parts, project, id)).toHaveLength(2 * each)
    const all = await publish(service, project, topic, { ...asked, exclude: [] })
    await walkAll(service)
    const rows = await messagesOf(parts, project, all.id)
    expect(rows).toHaveLength(9 * each)
    const chunks = Map.groupBy(rows, ({ created_at }) => created_at)
    expect(Math.max(...[...chunks.values()].map(({ length }) => length))).toBeLessThanOrEqual(
      MOST_DEVICES,
    )
  })

  test("takes devices from the month, and passes over who does not fit as a whole", async () => {
    const project = await pushProject(service, ["apns"], { limits: { push_per_month: 3 } })
    for (const at of [0, 0, 1, 1, 2])
      await addDevice(store, project.project_id, { user_id: `reader-${at}` })
    const { pushes, counts } = await publishedTo(project, [{}, {}, {}])
    expect(pushes.map(({ user_id }) => user_id)).toEqual(["reader-0", "reader-0", "reader-2"])
    expect(counts).toMatchObject({ planned: 3, sent: 2, skipped: { quota: 1 } })
  })

  test("needs a provider, and content that a push message may have", async () => {
    const project = await service.project()
    await project.post("/v1/topics", { name: "Releases" })
    const asked = (push: object) =>
      project.post("/v1/topics/releases/publish", { channels: ["push"], content: { push } })
    const none = await asked({ title: "Hi {{subscriber.name}}" })
    expect(refusal(none)).toEqual([400, "push_not_configured"])
    expect((await asked({})).body.error.details).toMatchObject({ field: "content.push.title" })
    const wrong = await asked({ title: "Hi", data: { _ack: "x" }, ttl_seconds: -1 })
    expect(wrong.body.error.details.fields).toMatchObject([{ path: "content.push.ttl_seconds" }])
    expect(refusal(await asked({ title: "Hi", url: "x" }))).toEqual([422, "invalid_url"])
  })
})
