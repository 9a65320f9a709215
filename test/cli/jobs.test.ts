import { describe, expect, test } from "bun:test"
import { type AppParts, routeTable } from "../../src/app"
import { openApi } from "../../src/http/openapi"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })

const job = (status: string) => ({
  id: ID,
  type: "webhook.replay",
  status,
  progress: { done: 3, total: 9, failed: 1 },
  result: null,
  error: null,
  created_at: "2026-11-21T10:00:00.000Z",
  completed_at: ["queued", "running"].includes(status) ? null : "2026-11-21T10:01:00.000Z",
})

describe("jobs get", () => {
  test("tells how far it is", async () => {
    using api = new FakeApi()
    api.data(`GET /v1/jobs/${ID}`, job("running"))
    const { exit, out } = await belfry(["jobs", "get", ID], { env: at(api) })
    expect([exit, JSON.parse(out)]).toEqual([0, job("running")])
  })

  test.each([
    ["completed", 0],
    ["failed", 1],
    ["cancelled", 1],
  ])("--wait asks until it ends: %s is %d", async (end, wanted) => {
    using api = new FakeApi()
    const statuses = ["queued", "running", end]
    api.answer(`GET /v1/jobs/${ID}`, () => ({
      body: { data: job(statuses.shift() ?? end), meta: {} },
    }))
    const { exit, out } = await belfry(["jobs", "get", ID, "--wait"], { env: at(api) })
    expect([exit, JSON.parse(out).status, api.seen.length]).toEqual([wanted, end, 3])
  })

  test("--wait gives up at the time limit with 75, and shows where it is", async () => {
    using api = new FakeApi()
    api.data(`GET /v1/jobs/${ID}`, job("running"))
    const words = ["jobs", "get", ID, "--wait", "--timeout", "2s"]
    const { exit, out } = await belfry(words, { env: at(api) })
    expect([exit, JSON.parse(out).status]).toEqual([75, "running"])
  })
})

test("jobs cancel wants a word for it", async () => {
  using api = new FakeApi()
  api.data(`POST /v1/jobs/${ID}/cancel`, job("cancelled"))
  const words = ["jobs", "cancel", ID]
  expect([(await belfry(words, { env: at(api) })).exit, api.seen.length]).toEqual([2, 0])
  const { exit, out } = await belfry([...words, "--yes"], { env: at(api) })
  expect([exit, JSON.parse(out).status]).toEqual([0, "cancelled"])
})

describe("routes", () => {
  test("prints the table of the server, whoever asks", async () => {
    using api = new FakeApi()
    const table = routeTable({} as AppParts).filter(({ page }) => !page)
    api.answer("GET /v1/openapi.json", { body: openApi(table, "1") })
    const { exit, out } = await belfry(["routes", "--json"], { env: { BELFRY_URL: api.url } })
    expect(exit).toBe(0)
    const named = (rows: { method: string; path: string }[]) =>
      rows.map((row) => JSON.stringify(row)).sort()
    const wanted = table.map((route) => {
      const { method, path, callers, scope, summary } = route
      return { method, path, callers, scope, summary }
    })
    expect(named(JSON.parse(out))).toEqual(named(wanted))
    expect(api.seen.map(({ headers }) => headers["x-api-key"])).toEqual([undefined])
  })

  test("of a server that has none is a failure", async () => {
    using api = new FakeApi()
    api.answer("GET /v1/openapi.json", { status: 404, body: { error: {} } })
    const { exit, err } = await belfry(["routes"], { env: at(api) })
    expect([exit, JSON.parse(err).error.code]).toEqual([1, "no_reference"])
  })
})
