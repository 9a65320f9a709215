import { describe, expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome, onTerminal } from "./belfry"
import { everything } from "./every-command"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })

test("every option of webhooks create arrives in the request", async () => {
  using api = everything()
  const file = join(freshHome(), "transform.hbs")
  writeFileSync(file, '{"id":"{{id}}"}')
  const words = ["webhooks", "create", "https://a.b/", "--event", "email.*,sms.sent"]
  words.push("--event", "webhook.disabled", "--description", "Orders", "--header", "X-A: b: c")
  words.push("--signature", "both", "--max-attempts", "3", "--intervals", "30,5m,1h")
  words.push("--rate-limit", "5", "--filter", '{"field":"type","op":"exists"}')
  words.push("--transform-file", file, "--metadata", "team=shop", "--secret-file", "-")
  words.push("--idempotency-key", "one")
  const { exit, out } = await belfry(words, { env: at(api), stdin: "whsec_own\n" })
  expect([exit, JSON.parse(out).secret]).toEqual([0, "whsec_new"])
  expect(api.seen[0]?.headers["idempotency-key"]).toBe("one")
  expect(api.seen[0]?.body).toEqual({
    url: "https://a.b/",
    events: ["email.*", "sms.sent", "webhook.disabled"],
    description: "Orders",
    headers: { "X-A": "b: c" },
    header_format: "both",
    retry_policy: { max_attempts: 3, intervals: [30, 300, 3600] },
    rate_limit: 5,
    filter: { field: "type", op: "exists" },
    transform: '{"id":"{{id}}"}',
    metadata: { team: "shop" },
    secret: "whsec_own",
  })
})

test("a dry run shows no secret", async () => {
  using api = new FakeApi()
  const words = ["webhooks", "create", "https://a.b/", "--event", "*", "--dry-run"]
  words.push("--secret-file", "-")
  const { exit, out } = await belfry(words, { env: at(api), stdin: "whsec_own" })
  expect([exit, JSON.parse(out).body.secret]).toEqual([0, "…"])
  expect(api.seen).toEqual([])
})

test("none takes away what may be absent", async () => {
  using api = everything()
  const words = ["webhooks", "update", ID, "--description", "none", "--rate-limit", "none"]
  words.push("--filter", "none", "--transform-file", "none", "--header", "none")
  await belfry(words, { env: at(api) })
  const gone = { description: null, rate_limit: null, filter: null, transform: null, headers: {} }
  expect(api.seen[0]?.body).toEqual(gone)
})

test("a terminal gets tables, and is shown the secret once with the next step", async () => {
  using api = everything()
  const made = await onTerminal(["webhooks", "create", "https://a.b/", "--event", "*"], {
    env: at(api),
  })
  expect(made.out).toContain("whsec_new")
  expect(made.out).toContain(`→ belfry webhooks test ${ID}`)
  const listed = await onTerminal(["webhooks", "list"], { env: at(api) })
  expect(listed.out).toContain("FAILED")
  expect(listed.out).toContain("https://a.b/")
  const deliveries = await onTerminal(["webhooks", "deliveries", ID], { env: at(api) })
  expect(deliveries.out).toContain("email.sent")
})

test("a host that does not resolve is warned of on stderr, and stdout stays what the API said", async () => {
  using api = everything()
  const warning = { code: "host_not_resolved", message: "The host a.b does not resolve." }
  const made = { id: ID, url: "https://a.b/", secret: "whsec_new", warnings: [warning] }
  api.data("POST /v1/webhooks", made)
  api.data(`PATCH /v1/webhooks/${ID}`, { ...made, secret: undefined })
  api.data("GET /v1/webhooks", [], { warnings: [{ webhook_id: ID, ...warning }] })
  const run = (...words: string[]) => belfry(["webhooks", ...words], { env: at(api) })
  for (const words of [
    ["create", "https://a.b/", "--event", "*"],
    ["update", ID, "--event", "*"],
  ]) {
    const { exit, out, err } = await run(...words)
    expect([exit, JSON.parse(out).warnings]).toEqual([0, [warning]])
    expect(err).toContain("warning: The host a.b does not resolve.")
  }
  const listed = await run("list")
  expect([listed.exit, JSON.parse(listed.out)]).toEqual([0, []])
  expect(listed.err).toContain(`warning ${ID}: The host a.b does not resolve.`)
  expect((await run("list", "--quiet")).err).toBe("")
})

test("on a terminal of 80 columns each endpoint and each delivery is one line", async () => {
  using api = everything()
  const off = { status: "disabled", disabled_reason: "circuit_breaker", consecutive_failures: 10 }
  const url = "https://hooks.example.test/belfry/events"
  const events = ["email.*", "webhook.disabled"]
  const created_at = "2026-11-21T12:00:00.000Z"
  api.data("GET /v1/webhooks", [{ id: ID, url, events, held_count: 1204, created_at, ...off }])
  const tried = { status: "exhausted", attempts: 6, max_attempts: 6, last_response_status: 503 }
  const delivery = { id: ID, event_type: "email.soft_bounced", latency_ms: 12_345, created_at }
  api.data(`GET /v1/webhooks/${ID}/deliveries`, [{ ...delivery, ...tried }])
  const shown = async (...words: string[]) => {
    const { out } = await onTerminal([...words, "--no-color"], { env: at(api), columns: 80 })
    const lines = out.trimEnd().split("\r\n")
    expect(lines.filter((line) => Bun.stringWidth(line) > 80)).toEqual([])
    return lines
  }
  const [, endpoint] = await shown("webhooks", "list")
  expect(endpoint).toMatch(
    /^\S{8} {2}https:\/\/hooks\S*… {2}email\.\*\S*… {2}off: breaker +10 +1,204/,
  )
  const [, one] = await shown("webhooks", "deliveries", ID)
  expect(one).toMatch(/^\S{8} {2}email\.soft_bounced {2}exhausted {2}6\/6 +503/)
})

test("an endpoint that is off, and one with something held, show what to do next", async () => {
  using api = everything()
  const next = async (...words: string[]) =>
    (await onTerminal([...words, "--no-color"], { env: at(api) })).out
      .trimEnd()
      .split("\r\n")
      .at(-1)
  const off = { id: ID, url: "https://a.b/", events: ["*"], status: "disabled", held_count: 3 }
  api.data(`GET /v1/webhooks/${ID}`, off)
  expect(await next("webhooks", "get", ID)).toBe(`→ belfry webhooks enable ${ID} --replay`)
  api.data(`POST /v1/webhooks/${ID}/enable`, { ...off, status: "active" })
  expect(await next("webhooks", "enable", ID)).toBe(`→ belfry webhooks replay ${ID} --since 7d`)
})

test("webhooks test ends with 1 when the receiver did not take it", async () => {
  using api = everything()
  const failed = { delivered: false, delivery_id: ID, response_status: 500, error: "http_status" }
  api.data(`POST /v1/webhooks/${ID}/test`, failed)
  const { exit, out } = await belfry(["webhooks", "test", ID], { env: at(api) })
  expect([exit, JSON.parse(out).error]).toEqual([1, "http_status"])
})

describe("what is destroyed is asked for first", () => {
  test.each([
    ["webhooks delete", []],
    ["webhooks rotate", ["--now"]],
  ])("%s", async (name, more) => {
    using api = everything()
    const words = [...name.split(" "), ID, ...more]
    const { exit } = await belfry(words, { env: at(api) })
    expect([exit, api.seen]).toEqual([2, []])
    expect((await belfry([...words, "--yes"], { env: at(api) })).exit).toBe(0)
  })
})

test("retry is of one delivery, or of all within a span; not of neither, nor both", async () => {
  using api = everything()
  for (const words of [[ID], [ID, ID, "--all"]]) {
    const { exit } = await belfry(["webhooks", "retry", ...words], { env: at(api) })
    expect(exit).toBe(2)
  }
  expect(api.seen).toEqual([])
  const words = ["webhooks", "retry", ID, "--all", "--since", "1d", "--event", "email.*,sms.sent"]
  await belfry([...words, "--status", "exhausted"], { env: at(api) })
  const { path, body } = api.seen[0] ?? {}
  expect(path).toBe(`/v1/webhooks/${ID}/deliveries/bulk-retry`)
  const span = { since: expect.any(String), event_types: ["email.*", "sms.sent"] }
  expect(body).toEqual({ ...span, status: ["exhausted"] })
})

test("trigger overrides the example: dots lead inside, and JSON stays what it is", async () => {
  using api = everything()
  const words = ["trigger", "user.login", "--override", "user.email=kim@example.com"]
  words.push("--override", "user.age=7", "--override", '{"note":null}', "--override", "flag=true")
  const { exit } = await belfry(words, { env: at(api) })
  expect(exit).toBe(0)
  const data = { user: { email: "kim@example.com", age: 7 }, note: null, flag: true }
  expect(api.seen[0]?.body).toEqual({ type: "user.login", data })
})

test.each([
  ["webhooks create https://a.b/ --event * --filter nonsense"],
  ["webhooks create https://a.b/ --event * --header nonsense"],
  ["webhooks create https://a.b/ --event * --max-attempts many"],
  ["webhooks create https://a.b/"],
  ["webhooks create --event email.sent"],
  [`webhooks update ${ID}`],
  [`webhooks update ${ID} --enabled perhaps`],
  [`webhooks replay ${ID}`],
  ["trigger email.sent --override nonsense"],
])("%s is a mistake of the command line", async (line) => {
  using api = everything()
  const { exit } = await belfry(line.split(" "), { env: at(api) })
  expect([exit, api.seen]).toEqual([2, []])
})

test("queue list is a table of states and one of domains", async () => {
  using api = new FakeApi()
  const line = { queue: "email", state: "retrying", reason: "451 later", count: 3 }
  const by_state = [{ ...line, oldest_seconds: 61, next_attempt_at: null }]
  const domain = { domain: "two.test", waiting: 2, running: 1, paused_until: null, reason: null }
  api.data("GET /v1/queue", { by_state, by_domain: [domain] })
  const { out } = await onTerminal(["queue", "list"], { env: at(api) })
  for (const part of ["retrying", "451 later", "1 min", "two.test"]) expect(out).toContain(part)
  const piped = await belfry(["queue", "list"], { env: at(api) })
  expect(JSON.parse(piped.out)).toEqual({ by_state, by_domain: [domain] })
})
