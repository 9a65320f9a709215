import { describe, expect, test } from "bun:test"
import { loadSettings, useSettings } from "../../src/core/config"
import { totals } from "../../src/store/counters"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const PATH = "/v1/subscribers"

const bulk = (project: TestProject, subscribers: unknown, mode?: string) =>
  project.post(`${PATH}/bulk`, { subscribers, ...(mode !== undefined && { mode }) })

const get = async (project: TestProject, id: string) =>
  (await project.get(`${PATH}/external/${encodeURIComponent(id)}`)).body.data

const numbered = (count: number, fields: object = {}) =>
  Array.from({ length: count }, (_, at) => ({ external_id: `user-${at}`, ...fields }))

describe("a list of subscribers", () => {
  test("is added, and changed where it is sent again", async () => {
    const project = await service.project()
    const first = await bulk(project, numbered(1000, { tags: ["x"], name: "Ann" }))
    expect(first.body.data).toEqual({ created: 1000, updated: 0, skipped: 0, failed: [] })
    const before = await get(project, "user-7")
    const second = await bulk(project, numbered(1000, { tags: ["x"] }))
    expect(second.body.data).toEqual({ created: 0, updated: 1000, skipped: 0, failed: [] })
    expect(await get(project, "user-7")).toEqual(before)
    const third = await bulk(project, [
      { external_id: "user-7", name: "Ben", tags: [] },
      { external_id: "user-1000" },
    ])
    expect(third.body.data).toEqual({ created: 1, updated: 1, skipped: 0, failed: [] })
    expect(await get(project, "user-7")).toMatchObject({ name: "Ben", tags: [] })
    expect((await project.get(`${PATH}?search=ben`)).body.data).toHaveLength(1)
    const names = ["subscribers", "subscribers.status.active", "subscribers.tag.x"]
    const sums = await totals(service.store.read, project.project_id, names)
    expect([...sums.values()]).toEqual([1001, 1001, 999])
  })

  test("leaves those that exist as they are, where it says so", async () => {
    const project = await service.project()
    await bulk(project, [{ external_id: "a", name: "Ann" }])
    const list = [
      { external_id: "a", name: "Other" },
      { external_id: "b", name: "Ben" },
      { external_id: "b", name: "Other" },
    ]
    const answer = await bulk(project, list, "skip")
    expect(answer.body.data).toEqual({ created: 1, updated: 0, skipped: 2, failed: [] })
    expect([(await get(project, "a")).name, (await get(project, "b")).name]).toEqual(["Ann", "Ben"])
  })

  test("may name one of them twice: the second changes the first", async () => {
    const project = await service.project()
    const answer = await bulk(project, [
      { external_id: "a", name: "Ann", tags: ["x"] },
      { external_id: "a", name: "Anna", email: "anna@example.test" },
      { external_id: "a", tags: ["y"] },
    ])
    expect(answer.body.data).toEqual({ created: 1, updated: 2, skipped: 0, failed: [] })
    const fields = { name: "Anna", email: "anna@example.test", tags: ["y"] }
    expect(await get(project, "a")).toMatchObject(fields)
    for (const query of ["tag=y", "search=anna"]) {
      expect((await project.get(`${PATH}?${query}`)).body.meta.total).toBe(1)
    }
    expect((await project.get(`${PATH}?tag=x`)).body.meta.total).toBe(0)
  })

  test("with broken ones has each of the others", async () => {
    const project = await service.project()
    const broken = [
      null,
      7,
      "user",
      [],
      {},
      { external_id: "" },
      { external_id: "bulk" },
      { external_id: "a\nb" },
      { external_id: "a\0" },
      { external_id: "\ud800" },
      { external_id: "x".repeat(256) },
      { external_id: "e", email: "nobody" },
      { external_id: "p", phone: "123" },
      { external_id: "l", locale: "??" },
      { external_id: "m", metadata: { a: 1e300, b: 2 ** 60 } },
      { external_id: "t", tags: [""] },
    ]
    const list = broken.flatMap((one, at) => [one, { external_id: `good-${at}` }])
    const { status, body } = await bulk(project, list)
    expect(status).toBe(200)
    const { created, failed } = body.data
    expect(created).toBe(broken.length)
    const failures = failed as { index: number; error: { code: string; message: string } }[]
    expect(failures.map(({ index }) => index)).toEqual(broken.map((_, at) => 2 * at))
    expect(failures.map(({ error }) => error.code)).toEqual([
      ...Array(4).fill("validation_error"),
      "missing_required_field",
      ...Array(6).fill("validation_error"),
      "invalid_email",
      "invalid_phone_number",
      ...Array(3).fill("validation_error"),
    ])
    expect(failures[11]?.error.message).toStartWith("subscribers.22.email: ")
    expect((await project.get(PATH)).body.meta.total).toBe(broken.length)
  })

  test("has from 1 to 1,000 of them", async () => {
    const project = await service.project()
    for (const list of [undefined, null, [], {}, "x", numbered(1001)]) {
      expect((await bulk(project, list)).status).toBe(422)
    }
  })

  test("has no other mode", async () => {
    const project = await service.project()
    expect(refusal(await bulk(project, numbered(1), "replace"))).toEqual([422, "validation_error"])
  })

  test("may have 50,000 keys and no more, and other bodies 10,000", async () => {
    const project = await service.project()
    const metadata = (keys: number) =>
      Object.fromEntries(Array.from({ length: keys }, (_, at) => [`k${at}`, at]))
    const large = await bulk(project, numbered(1000, { metadata: metadata(47) }))
    expect(large.body.data).toMatchObject({ created: 1000, failed: [] })
    const too_large = await bulk(project, numbered(1000, { metadata: metadata(48) }))
    expect(refusal(too_large)).toEqual([400, "invalid_json"])
    expect(too_large.body.error.details.reason).toBe("keys")
    const single = await project.post(PATH, { external_id: "x", metadata: metadata(10_001) })
    expect(refusal(single)).toEqual([400, "invalid_json"])
  })

  test("comes ten times a minute", async () => {
    clock.freeze() // no minute ends while we count
    const project = await service.project()
    for (let at = 0; at < 10; at++) expect((await bulk(project, numbered(1))).status).toBe(200)
    const answer = await bulk(project, numbered(1))
    expect(refusal(answer)).toEqual([429, "rate_limit_exceeded"])
    expect(answer.body.error.details).toMatchObject({ limit: 10, scope: "subscriber_bulk" })
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
    expect((await bulk(await service.project(), numbered(1))).status).toBe(200)
  })

  test("comes as often as the operator says", async () => {
    const project = await service.project()
    const before = loadSettings()
    try {
      const environment = { BELFRY_SUBSCRIBERS_BULK_PER_MINUTE: "12" }
      useSettings(loadSettings({ environment }))
      for (let at = 0; at < 12; at++) expect((await bulk(project, numbered(1))).status).toBe(200)
      expect((await bulk(project, numbered(1))).body.error.details).toMatchObject({ limit: 12 })
    } finally {
      useSettings(before)
    }
  })

  test("that is repeated under its Idempotency-Key takes no part of the ten", async () => {
    clock.freeze()
    const project = await service.project()
    const body = { subscribers: numbered(1) }
    const again = () => project.post(`${PATH}/bulk`, body, { "idempotency-key": "again" })
    const first = await again()
    for (let at = 0; at < 12; at++) {
      const { status, headers, body: answer } = await again()
      expect([status, headers.get("idempotent-replayed")]).toEqual([200, "true"])
      expect(answer.data).toEqual(first.body.data)
    }
    for (let at = 0; at < 9; at++) expect((await bulk(project, numbered(1))).status).toBe(200)
    expect((await bulk(project, numbered(1))).status).toBe(429)
    expect((await again()).status).toBe(200)
  })

  test("is saved once under an Idempotency-Key", async () => {
    const project = await service.project()
    const body = { subscribers: numbered(3) }
    const key = { "idempotency-key": "one" }
    const first = await project.post(`${PATH}/bulk`, body, key)
    const second = await project.post(`${PATH}/bulk`, body, key)
    expect(second.body.data).toEqual(first.body.data)
    expect(second.body.data.created).toBe(3)
  })

  test("that comes several times at once leaves each subscriber once", async () => {
    const project = await service.project()
    const lists = Array.from({ length: 5 }, (_, at) => numbered(100, { tags: [`t${at}`] }))
    lists[1]?.reverse()
    lists[3]?.reverse()
    const answers = await Promise.all(lists.map((list) => bulk(project, list)))
    const sum = (name: string) =>
      answers.reduce((all, { body }) => all + (body.data[name] as number), 0)
    expect([sum("created"), sum("updated")]).toEqual([100, 400])
    expect((await project.get(PATH)).body.meta.total).toBe(100)
    const tags = await Promise.all(
      lists.map(async (_, at) => (await project.get(`${PATH}?tag=t${at}`)).body.meta.total),
    )
    expect(tags.reduce((all, one) => all + one, 0)).toBe(100)
  })
})
