import { describe, expect, test } from "bun:test"
import { events } from "../../src/events/tables"
import { MOST_ENTRIES } from "../../src/subscribers/preferences-input"
import { complaints, refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "../topics/made-subscribers"

const service = await sharedService()
const { store } = service
const DEFAULT = "/v1/subscribers/preferences/default"

const channel = { enabled: true, categories: {} }
const NOTHING = {
  ...{ email: channel, push: channel, sms: channel, in_app: channel },
  ...{ topics: {}, workflows: {}, quiet_hours: null },
}
const NIGHT = {
  ...{ enabled: true, start: "22:00", end: "08:00" },
  ...{ timezone: null, channels: ["push", "sms"] },
}

/** A project with the categories news and offers, the topic releases, and one subscriber. */
async function setUp() {
  const project = await service.project()
  for (const slug of ["news", "offers"]) {
    await project.post("/v1/subscribers/categories", { name: slug, slug })
  }
  await project.post("/v1/topics", { name: "Releases" })
  const [id = ""] = await makeSubscribers(service, project, [{ external_id: "user/42" }])
  const path = `/v1/subscribers/${id}/preferences`
  return {
    ...{ project, id, path },
    get: async () => (await project.get(path)).body.data,
    merge: async (body: object) => (await project.post(path, body)).body.data,
    replace: (body: object) => project.call("PUT", path, { body }),
  }
}

async function told({ project_id }: TestProject) {
  const all = await store.read.select().from(events).orderBy(events.id)
  return all
    .filter((event) => event.project_id === project_id && event.type.startsWith("subscriber."))
    .map(({ type, data }) => {
      const { channel, scope } = data as { channel: string; scope: { type: string; key: string } }
      return [type.slice("subscriber.".length), channel, scope.type, scope.key].join(" ").trim()
    })
}

describe("the preferences of a subscriber", () => {
  test("begin with nothing chosen, merge what is given, and forget what is null", async () => {
    const { project, path, get, merge } = await setUp()
    expect(await get()).toEqual(NOTHING)
    const first = await merge({
      email: { categories: { news: false } },
      topics: { releases: { push: false, in_app: true } },
      workflows: { welcome: false },
      quiet_hours: { timezone: "Asia/Kathmandu" },
    })
    const chosen = {
      ...NOTHING,
      email: { enabled: true, categories: { news: false } },
      topics: { releases: { push: false, in_app: true } },
      workflows: { welcome: false },
      quiet_hours: { ...NIGHT, timezone: "Asia/Kathmandu" },
    }
    expect(first).toEqual(chosen)
    const body = {
      email: { enabled: false, categories: { offers: true } },
      topics: { releases: { push: null } },
      quiet_hours: { start: "21:15" },
    }
    const second = await project.call("PATCH", path, { body })
    expect(second.body.data).toEqual({
      ...chosen,
      email: { enabled: false, categories: { news: false, offers: true } },
      topics: { releases: { in_app: true } },
      quiet_hours: { ...chosen.quiet_hours, start: "21:15" },
    })
    expect(await get()).toEqual(second.body.data)
    expect(await merge({ email: null, topics: null, workflows: null, quiet_hours: null })).toEqual(
      NOTHING,
    )
  })

  test("are replaced as a whole, and an answer put back changes nothing", async () => {
    const { get, merge, replace, project } = await setUp()
    await merge({ email: { categories: { news: false } }, workflows: { welcome: true } })
    const whole = await get()
    expect((await replace(whole)).body.data).toEqual(whole)
    expect(await told(project)).toEqual(["unsubscribed email category news"])
    const replaced = await replace({ push: { enabled: false } })
    expect(replaced.body.data).toEqual({ ...NOTHING, push: { enabled: false, categories: {} } })
  })

  test("tell of each channel, category and topic that is ended or begun again", async () => {
    const { project, merge, replace } = await setUp()
    await merge({ email: { enabled: false, categories: { news: false, offers: true } } })
    await merge({ topics: { releases: { sms: false } }, workflows: { welcome: false } })
    await merge({ email: { enabled: false } })
    await replace({ topics: { releases: { sms: true } } })
    expect(await told(project)).toEqual([
      "unsubscribed email project",
      "unsubscribed email category news",
      "unsubscribed sms topic releases",
      "resubscribed email project",
      "resubscribed email category news",
      "resubscribed sms topic releases",
    ])
  })

  test("are found by the external id, and only in their project", async () => {
    const { project, id, merge } = await setUp()
    await merge({ sms: { enabled: false } })
    const named = `/v1/subscribers/${encodeURIComponent("user/42")}/preferences`
    expect((await project.get(named)).body.data.sms.enabled).toBe(false)
    const other = await service.project()
    for (const name of [id, "nobody", "a%00b", "%ED%A0%80"]) {
      const path = `/v1/subscribers/${name}/preferences`
      const answers = [await other.get(path), await other.post(path, {})]
      for (const answer of [...answers, await other.call("PUT", path, { body: {} })]) {
        expect(answer.status).toBeGreaterThanOrEqual(400)
        expect(answer.status).toBeLessThan(500)
      }
    }
    const foreign = await other.get(`/v1/subscribers/${id}/preferences`)
    expect(refusal(foreign)).toEqual([404, "subscriber_not_found"])
  })

  test("do not show what is about a category that is gone, and keep it for one of that slug", async () => {
    const { project, get, merge } = await setUp()
    await merge({ email: { categories: { news: false } } })
    const { data } = (await project.get("/v1/subscribers/categories")).body
    const { id } = data.find(({ slug }: { slug: string }) => slug === "news")
    await project.call("DELETE", `/v1/subscribers/categories/${id}`)
    expect(await get()).toEqual(NOTHING)
    await project.post("/v1/subscribers/categories", { name: "news" })
    expect((await get()).email.categories).toEqual({ news: false })
  })

  test("tell an unknown channel of a topic where strictness is asked for", async () => {
    const { project, path, get } = await setUp()
    const body = { topics: { releases: { email: false, fax: true } } }
    const strict = await project.post(path, body, { "x-strict": "1" })
    expect([strict.status, complaints(strict)]).toEqual([422, ["topics.releases.fax"]])
    expect((await project.post(path, body)).status).toBe(200)
    expect((await get()).topics).toEqual({ releases: { email: false } })
  })

  test.each<[string, object, string]>([
    [
      "a category that is not there",
      { email: { categories: { nope: true } } },
      "email.categories.nope",
    ],
    ["a topic that is not there", { topics: { nope: { email: true } } }, "topics.nope"],
    ["a topic with NUL", { topics: { "a\0b": { email: true } } }, "topics.a\0b"],
    ["a workflow key in capitals", { workflows: { Welcome: true } }, "workflows.Welcome"],
    ["a reserved workflow key", { workflows: { bulk: true } }, "workflows.bulk"],
    ["a word for a switch", { email: { enabled: "no" } }, "email.enabled"],
    ["a number for a category", { email: { categories: { news: 0 } } }, "email.categories"],
    ["a switch for a topic", { topics: { releases: true } }, "topics.releases"],
    ["a list for a channel", { sms: [] }, "sms"],
    ["a time that no clock shows", { quiet_hours: { end: "25:00" } }, "quiet_hours.end"],
    [
      "a zone that is not there",
      { quiet_hours: { timezone: "Mars/Base" } },
      "quiet_hours.timezone",
    ],
    ["quiet hours of no length", { quiet_hours: { start: "08:00" } }, "quiet_hours.end"],
  ])("are refused with %s", async (_, body, path) => {
    const { project, path: url, get, replace } = await setUp()
    for (const refused of [await project.post(url, body), await replace(body)]) {
      expect(refused.status).toBe(422)
      expect(complaints(refused)).toEqual([path])
    }
    expect(await get()).toEqual(NOTHING)
    expect((await project.call("PUT", DEFAULT, { body })).status).toBe(422)
  })

  test("have a limited number of entries, whatever each change brings", async () => {
    const { project, path, merge } = await setUp()
    const flows = (from: number, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`w${from + at}`, true]))
    await merge({ workflows: flows(0, MOST_ENTRIES) })
    const refused = await project.post(path, { workflows: flows(MOST_ENTRIES, 1) })
    expect(complaints(refused)).toEqual(["workflows"])
    expect((await project.post(path, { workflows: flows(0, 1) })).status).toBe(200)
  })
})

describe("the default preferences", () => {
  test("are replaced, and share their quiet hours with the settings", async () => {
    const { project } = await setUp()
    expect((await project.get(DEFAULT)).body.data).toEqual(NOTHING)
    const body = { email: { categories: { news: false } }, quiet_hours: { start: "23:00" } }
    const put = await project.call("PUT", DEFAULT, { body })
    const expected = {
      ...NOTHING,
      email: { enabled: true, categories: { news: false } },
      quiet_hours: { ...NIGHT, start: "23:00" },
    }
    expect(put.body.data).toEqual(expected)
    expect((await project.get(DEFAULT)).body.data).toEqual(expected)
    const settings = (await project.get("/v1/settings")).body.data
    expect(settings.quiet_hours).toEqual(expected.quiet_hours)
    expect(settings).not.toHaveProperty("default_preferences")
    await project.call("PATCH", "/v1/settings", { body: { quiet_hours: null, locale: "de" } })
    expect((await project.get(DEFAULT)).body.data).toEqual({ ...expected, quiet_hours: null })
    await project.call("PUT", DEFAULT, { body: {} })
    expect((await project.get(DEFAULT)).body.data).toEqual(NOTHING)
    expect((await project.get("/v1/settings")).body.data.locale).toBe("de")
  })

  test("are refused with an unknown category, and nothing changes", async () => {
    const { project } = await setUp()
    const body = { push: { categories: { nope: true } } }
    const refused = await project.call("PUT", DEFAULT, { body })
    expect(complaints(refused)).toEqual(["push.categories.nope"])
    expect((await project.get(DEFAULT)).body.data).toEqual(NOTHING)
  })
})
