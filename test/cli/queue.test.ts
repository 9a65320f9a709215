import { expect, test } from "bun:test"
import { FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"

const QUEUE = { depth: 2, oldest_seconds: 3, running: 1, failed_24h: 0 }

const flags = (api: FakeApi) => ["--url", api.url, "--api-key", KEY]

test("a queue is paused and resumed by its name, a domain by its own", async () => {
  using api = new FakeApi()
  for (const [name, path] of [
    ["email", "email"],
    ["email:b.test", "email%3Ab.test"],
  ]) {
    api.data(`POST /v1/admin/queues/${path}/pause`, { queue: name, ...QUEUE, paused: true })
    api.data(`POST /v1/admin/queues/${path}/resume`, { queue: name, ...QUEUE, paused: false })
  }
  const runs: [string[], string, boolean][] = [
    [["pause", "email"], "email", true],
    [["resume", "email"], "email", false],
    [["pause", "--domain", "B.test"], "email:b.test", true],
    [["resume", "--domain", "b.test"], "email:b.test", false],
  ]
  for (const [words, queue, paused] of runs) {
    const { exit, out } = await belfry(["queue", ...words, ...flags(api)])
    expect([words, exit]).toEqual([words, 0])
    expect(JSON.parse(out)).toMatchObject({ queue, paused })
  }
})

test.each([[["pause"]], [["resume", "email", "--domain", "b.test"]]])(
  "queue %p names nothing, or too much",
  async (words) => {
    using api = new FakeApi()
    const { exit, err } = await belfry(["queue", ...words, ...flags(api)])
    expect(exit).toBe(2)
    expect(err).toContain("either a queue or --domain")
    expect(api.seen).toEqual([])
  },
)

test("all queues of the instance are listed, in as many pages as it takes, and with no flag to ask for less", async () => {
  using api = new FakeApi()
  const all = Array.from({ length: 230 }, (_, at) => ({
    ...{ queue: `email:d${at}.test`, ...QUEUE, paused: true },
  }))
  api.answer("GET /v1/admin/queues", ({ query }) => {
    const from = Number(query.cursor ?? 0)
    const to = from + Number(query.per_page)
    const has_more = to < all.length
    const meta = { next_cursor: has_more ? String(to) : null, has_more }
    return { body: { data: all.slice(from, to), meta } }
  })
  const { exit, out } = await belfry(["queue", "instance", ...flags(api)])
  expect([exit, JSON.parse(out)]).toEqual([0, all])
  expect((await belfry(["queue", "instance", "--limit", "5", ...flags(api)])).exit).toBe(2)
})

test("domains tell until when and why they wait", async () => {
  using api = new FakeApi()
  const line = { domain: "b.test", waiting: 3, running: 0, paused_until: null, reason: "421 busy" }
  api.data("GET /v1/queue", { by_state: [], by_domain: [line] })
  const { exit, out } = await belfry(["queue", "domains", ...flags(api)])
  expect(exit).toBe(0)
  expect(JSON.parse(out)).toEqual([line])
})
