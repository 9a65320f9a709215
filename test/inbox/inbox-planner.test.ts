import { expect, test } from "bun:test"
import { secondsFromNow } from "../../src/core/time"
import { inboxContents } from "../../src/inbox/tables"
import { audience, messagesOf, publish, record, walkAll } from "../fan-out/audiences"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { codesOf, inboxEvents, onlyMessage } from "./inboxes"

const clock = movableClock()
const service = await sharedService()
const { store, parts } = service

const EMAIL = { subject: "News", text: "Hello", from: "news@example.test" }

async function town(people: Parameters<typeof audience>[2] = [{ name: "Ann" }, { name: "Bob" }]) {
  const project = await service.project()
  const { topic, ids } = await audience(store, project, people)
  const ask = (body: object) => project.post("/v1/topics/releases/publish", body)
  /** Walks to the end, and reads the record. */
  const published = async (body: object) => {
    const made = await ask(body)
    await walkAll(service)
    return record(parts, made.body.data.id)
  }
  const contents = async () =>
    (await store.read.select().from(inboxContents)).filter(
      ({ project_id }) => project_id === project.project_id,
    )
  return { project, topic, ids, ask, published, contents }
}

const saying = (in_app: object, more: object = {}) => ({
  ...{ channels: ["in_app"], content: { in_app }, ...more },
})

test("a publish that says the same to all is stored once", async () => {
  const { project, ids, published, contents } = await town()
  await project.post(`/v1/subscribers/${ids[0]}/preferences`, { in_app: { enabled: false } })
  const said = {
    ...{
      title: "News",
      body: "Read it.",
      action_url: "/news",
      action_label: "Read",
      data: { a: 1 },
    },
    ...{ icon: "/i.svg", priority: "low", collapse_key: "news" },
  }
  const actions = [{ key: "go", label: "Go" }]
  const { channels } = await published(saying({ ...said, actions }, { category: "news" }))
  expect(channels.in_app).toMatchObject({ planned: 2, sent: 1, failed: 0 })
  expect(channels.in_app?.skipped.preference).toBe(1)
  const shown = { ...said, category: "news", seq: 1, subscriber_id: ids[1] }
  expect(await onlyMessage(project, "reader-1")).toMatchObject(shown)
  expect(await inboxEvents(project)).toEqual(["inbox.created"])
  await project.post(`/v1/subscribers/${ids[0]}/preferences`, { in_app: { enabled: true } })
  await published(saying({ title: "More" }))
  expect(await contents()).toHaveLength(2)
})

test("a personal publish is rendered for each member, and replaces by its key", async () => {
  const { project, published, contents } = await town()
  const { channels } = await published(
    saying(
      { title: "Hi {{subscriber.name}}", action_url: "/{{a}}", collapse_key: "k" },
      { variables: { a: "x" } },
    ),
  )
  expect(channels.in_app).toMatchObject({ sent: 2 })
  const first = await onlyMessage(project, "reader-0")
  expect(first).toMatchObject({ title: "Hi Ann", action_url: "/x" })
  expect(await onlyMessage(project, "reader-1")).toMatchObject({ title: "Hi Bob" })
  await published(saying({ title: "Again", collapse_key: "k" }))
  expect(await onlyMessage(project, "reader-0")).toMatchObject({ id: first.id, title: "Again" })
  expect(await contents()).toHaveLength(1)
})

test("a member whose texts cannot be made is counted as failed", async () => {
  const { project, published } = await town([{ name: "Ann" }, { name: "x".repeat(201) }])
  const { channels } = await published(saying({ title: "{{subscriber.name}}" }))
  expect(channels.in_app).toMatchObject({ planned: 2, sent: 2, failed: 1 })
  expect(await onlyMessage(project, "reader-0")).toMatchObject({ title: "Ann" })
  expect((await project.get("/v1/inbox")).body.data).toHaveLength(1)
})

test("one publish goes by email and into the inbox, from a template in the language of each", async () => {
  const { project, topic } = await town([{ name: "Ann", locale: "de" }, { email: null }])
  const texts = (title: string) => ({ channels: { in_app: { title }, email: EMAIL_TEXTS } })
  const template = { name: "news", ...texts("News"), locales: { de: texts("Neues") } }
  await project.post("/v1/templates", template)
  await project.call("PATCH", "/v1/settings", { body: { default_from: "news@example.test" } })
  const wish = { channels: ["email" as const, "in_app" as const], template: "news", content: null }
  const { id } = await publish(service, project, topic, wish)
  await walkAll(service)
  const { channels } = await record(parts, id)
  expect(channels.email).toMatchObject({ sent: 1, skipped: { no_address: 1 } })
  expect(channels.in_app).toMatchObject({ sent: 2 })
  expect(await onlyMessage(project, "reader-0")).toMatchObject({ title: "Neues" })
  expect(await onlyMessage(project, "reader-1")).toMatchObject({ title: "News" })
  const rows = await messagesOf(parts, project, id)
  expect(rows.map((row) => row.channel).sort()).toEqual(["email", "in_app", "in_app"])
})

const EMAIL_TEXTS = { subject: "News", text: "Hello" }

test("a publish whose messages end is told again by its key, also when they have ended", async () => {
  const { ask } = await town()
  const ending = saying({ title: "a", expires_at: secondsFromNow(60) }, { dedupe_key: "k" })
  const { id } = (await ask(ending)).body.data
  clock.advance({ seconds: 61 })
  const again = await ask(ending)
  expect([again.status, again.body.data.id]).toEqual([200, id])
  const late = await ask({ ...ending, dedupe_key: "other" })
  expect(codesOf(late)).toEqual({ "content.in_app.expires_at": "invalid" })
})

test("a publish is refused for what no member could get", async () => {
  const { ask } = await town()
  const codes = async (in_app: object) => codesOf(await ask(saying(in_app)))
  expect(await codes({ title: "a", action_url: "//b" })).toEqual({
    "content.in_app.action_url": "invalid_url",
  })
  expect(await codes({ title: "a", icon: "x" })).toEqual({ "content.in_app.icon": "invalid_url" })
  expect(await codes({ body: "a" })).toEqual({ "content.in_app.title": "missing_required_field" })
  const actions = [
    { key: "a", label: "A" },
    { key: "a", label: "B" },
  ]
  expect(await codes({ title: "a", actions })).toEqual({
    "content.in_app.actions.1.key": "duplicate",
  })
  const long = await ask(saying({ title: "x".repeat(201) }))
  expect(refusal(long)).toEqual([422, "template_render_failed"])
  expect(long.body.error.details.field).toBe("content.in_app.title")
  const both = { channels: ["email", "in_app"], content: { email: EMAIL, in_app: { title: "a" } } }
  expect((await ask(both)).status).toBe(201)
})
