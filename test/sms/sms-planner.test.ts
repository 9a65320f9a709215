import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { projects } from "../../src/identity/tables"
import { messageContents } from "../../src/messages/tables"
import { providerConfigs } from "../../src/providers/tables"
import type { SmsSettings } from "../../src/sms/providers/provider"
import { smsPlanner } from "../../src/sms/sms-planner"
import { audience, messagesOf, publish, record, walkAll } from "../fan-out/audiences"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const sms = smsPlanner({ read: store.read, templates: service.parts.rules.templates })
const parts = { ...service.parts, planners: { ...service.parts.planners, sms } }
const ann = { phone: "+14155550100", name: "Ann" }
const bob = { phone: "+4366012345678", name: "Bob", email: null }

/** A project with a configuration of its own. */
async function configured(settings: SmsSettings = {}, options = {}): Promise<TestProject> {
  const project = await service.project(options)
  const { account_id, project_id } = project
  const at = now()
  const row = {
    ...{ id: newId(), account_id, project_id, kind: "sms_provider" as const, provider: "log" },
    ...{ name: "log", priority: 1, enabled: true, status: "active" as const, credentials: null },
    ...{ settings: { ...settings }, created_at: at, updated_at: at },
  }
  await store.tx((tx) => tx.insert(providerConfigs).values(row))
  return project
}

/** Publishes to the people and walks to the end. */
async function publishedTo(
  project: TestProject,
  people: Parameters<typeof audience>[2],
  wish: Parameters<typeof publish>[3],
) {
  const { topic } = await audience(store, project, people)
  const { id } = await publish({ parts }, project, topic, { channels: ["sms"], ...wish })
  await walkAll({ parts })
  const bodies = new Map(
    (await store.read.select().from(messageContents)).map(({ message_id, content }) => [
      message_id,
      (content as { body: string }).body,
    ]),
  )
  const rows = await messagesOf(parts, project, id)
  const texts = rows.map((row) => ({ ...row, body: bodies.get(row.id) }))
  return { id, texts, counts: (await record(parts, id)).channels.sms }
}

const saying = (body: string) => ({ content: { sms: { body } } })

describe("a publish by SMS", () => {
  test("renders each body, counts its segments, and skips who has no number", async () => {
    const project = await configured({ from: "+14155550199", per_country_from: { "+43": "Acme" } })
    const people = [ann, { phone: null }, bob]
    const body = `Hello {{subscriber.name}} ${"x".repeat(160)}`
    const { texts, counts } = await publishedTo(project, people, saying(body))
    expect(texts).toMatchObject([
      { channel: "sms", address: ann.phone, sender: "+14155550199", units: 2, source: "topic" },
      { channel: "sms", address: bob.phone, sender: "Acme", units: 2, stream: "broadcast" },
    ])
    expect(texts.map(({ body: one }) => one?.slice(0, 9))).toEqual(["Hello Ann", "Hello Bob"])
    expect(texts[0]?.envelope).toMatchObject({ topic: "releases", sms: { encoding: "gsm7" } })
    expect(texts[0]?.envelope?.unsubscribe).toBeUndefined()
    expect(counts).toMatchObject({ planned: 3, sent: 2, failed: 0, skipped: { no_address: 1 } })
  })

  test("takes the texts of a template in the language of each", async () => {
    const project = await configured()
    const template = await project.post("/v1/templates", {
      name: "news",
      ...{ locale: "en", channels: { sms: { body: "News" } } },
      locales: { de: { channels: { sms: { body: "Neues {{date subscriber.metadata.at}}" } } } },
    })
    expect(template.status).toBe(201)
    await project.post(`/v1/templates/${template.body.data.id}/publish`)
    const at = "2026-11-29T23:30:00.000Z"
    const people = [ann, { ...bob, locale: "de-AT", timezone: "Europe/Vienna", metadata: { at } }]
    const wish = { template: "news", content: null }
    const { texts } = await publishedTo(project, people, wish)
    expect(texts.map(({ body }) => body)).toEqual(["News", "Neues 30. November 2026"])
    expect(texts[0]).toMatchObject({ template_id: template.body.data.id })
  })

  test("fails who cannot get it, and says so, while the others get it", async () => {
    const project = await configured()
    const body = "{{subscriber.metadata.words}}"
    const long = { ...bob, metadata: { words: "ы".repeat(671) } }
    const { texts, counts } = await publishedTo(
      project,
      [{ ...ann, metadata: { words: "Hi" } }, long, { phone: "+14155550101" }],
      saying(body),
    )
    expect(texts.map(({ status, status_reason, units }) => [status, status_reason, units])).toEqual(
      [
        ["queued", null, 1],
        ["failed", "too_many_segments", 0],
        ["failed", "template_render_failed", 0],
      ],
    )
    expect(counts).toMatchObject({ sent: 3, failed: 2 })
  })

  test("passes over a number whose country no configuration allows", async () => {
    const project = await configured({ allowed_countries: ["+1"] })
    const { texts, counts } = await publishedTo(project, [bob, ann], saying("Hi"))
    expect(texts.map(({ address }) => address)).toEqual([ann.phone])
    expect(counts).toMatchObject({ sent: 1, skipped: { no_address: 1 } })
  })

  test("takes its segments from the month, and goes on behind who does not fit", async () => {
    const project = await configured({}, { limits: { sms_per_month: 3 } })
    const people = [2, 2, 1].map((nth, at) => ({
      phone: `+1415555011${at}`,
      metadata: { rest: "x".repeat(160 * (nth - 1)) },
    }))
    const { texts, counts } = await publishedTo(
      project,
      people,
      saying("Hi{{subscriber.metadata.rest}}"),
    )
    expect(texts.map(({ units }) => units)).toEqual([2, 1])
    expect(counts?.skipped.quota).toBe(1)
  })

  test("waits in quiet hours, and goes beside email", async () => {
    const project = await configured()
    const [since, until] = [secondsFromNow(-3600), secondsFromNow(7200)].map((at) =>
      at.slice(0, 16),
    )
    const quiet_hours = {
      ...{ enabled: true, timezone: "UTC", channels: ["sms" as const] },
      ...{ start: since?.slice(11) ?? "", end: until?.slice(11) ?? "" },
    }
    const email = {
      subject: "Hi",
      html: null,
      text: "Hi",
      from: { email: "a@example.test", name: null },
    }
    const { texts, counts } = await publishedTo(
      project,
      [{ ...ann, preferences: { quiet_hours } }],
      {
        channels: ["email", "sms"],
        content: { email, ...saying("Hi").content },
      },
    )
    const times = texts.map(({ channel, scheduled_at }) => [channel, scheduled_at])
    expect(times.toSorted()).toEqual([
      ["email", null],
      ["sms", `${until}:00.000Z`],
    ])
    expect(counts?.sent).toBe(1)
  })

  test("is refused without a provider, and in the sandbox needs none", async () => {
    const [project, sandboxed] = [await service.project(), await service.project()]
    const { project_id } = sandboxed
    const settings = { sandbox: true }
    await store.tx((tx) => tx.update(projects).set({ settings }).where(eq(projects.id, project_id)))
    const { topic } = await audience(store, project, [ann])
    const wish = { channels: ["sms" as const], ...saying("Hi") }
    await expect(publish({ parts }, project, topic, wish)).rejects.toMatchObject({
      code: "sms_not_configured",
      status: 400,
    })
    const { texts } = await publishedTo(sandboxed, [ann], saying("Hi"))
    expect(texts).toMatchObject([{ sandbox: true, units: 1, sender: null }])
  })

  test.each([
    ["{{#if}}", "invalid_template"],
    ["   ", "template_render_failed"],
    ["ы".repeat(671), "template_render_failed"],
  ])("refuses the body %#", async (body, code) => {
    const project = await configured()
    const { topic } = await audience(store, project, [])
    const wish = { channels: ["sms" as const], ...saying(body) }
    await expect(publish({ parts }, project, topic, wish)).rejects.toMatchObject({
      code,
      details: { field: "content.sms.body" },
    })
  })
})
