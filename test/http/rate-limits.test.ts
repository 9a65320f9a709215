import { describe, expect, test } from "bun:test"
import { type AppParts, routeTable } from "../../src/app"
import { millis } from "../../src/core/time"
import type { AnyRoute } from "../../src/http/route"
import { type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })

const NAMES = [
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "ratelimit",
  "ratelimit-policy",
]

const limits = ({ headers }: Reply) => ({
  limit: Number(headers.get("x-ratelimit-limit")),
  remaining: Number(headers.get("x-ratelimit-remaining")),
  reset: Number(headers.get("x-ratelimit-reset")),
})

/** Each test has addresses of its own, since failures are counted by address. */
let last = 0
const freshAddress = () => `192.0.2.${++last}`
const from = (address: string) => ({ "x-forwarded-for": address })

/** Windows are minutes of the clock; starting in a new one leaves no room for chance. */
function startOfMinute() {
  clock.advance({ seconds: 60 - (millis() % 60_000) / 1000 })
}

test("every answer under /v1 tells the window", async () => {
  const project = await service.project()
  const { id } = (await project.post("/v1/emails", mail())).body
  const answers = [
    await project.get("/v1/emails"),
    await project.get(`/v1/emails/${id}/content`),
    await project.get("/v1/emails/none"),
    await project.post("/v1/emails", "{"),
    await project.post("/v1/emails", {}),
    await project.post("/v1/emails", mail({ from: "a@unverified.test" })),
    await service.anybody.get("/v1/emails"),
    await service.anybody.get("/v1/health"),
    await service.anybody.get("/v1/openapi.json"),
    await service.anybody.get("/v1/none"),
    await service.anybody.call("PUT", "/v1/emails"),
  ]
  for (const { headers, status } of answers) {
    expect([status, NAMES.filter((name) => !headers.has(name))]).toEqual([status, []])
  }
  for (const path of ["/healthz", "/readyz", "/docs", "/none"]) {
    const { headers } = await service.anybody.get(path)
    expect(NAMES.filter((name) => headers.has(name))).toEqual([])
  }
})

describe("the window of a key", () => {
  test("counts down, ends at a minute, and begins anew", async () => {
    const project = await service.project({ plan: "free" })
    startOfMinute()
    const first = await project.get("/v1/emails")
    const { reset } = limits(first)
    expect(limits(first)).toEqual({ limit: 60, remaining: 59, reset })
    expect(reset % 60).toBe(0)
    expect(reset).toBeGreaterThan(millis() / 1000)
    expect(reset).toBeLessThanOrEqual(millis() / 1000 + 60)
    expect(first.headers.get("ratelimit-policy")).toBe('"requests";q=60;w=60')
    expect(first.headers.get("ratelimit")).toMatch(/^"requests";r=59;t=\d+$/)

    for (let left = 58; left >= 0; left--) {
      expect(limits(await project.get("/v1/emails")).remaining).toBe(left)
    }
    const refused = await project.get("/v1/emails")
    expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
    expect(limits(refused)).toEqual({ limit: 60, remaining: 0, reset })
    const { retry_after, ...details } = refused.body.error.details
    expect(details).toEqual({ limit: 60, window_seconds: 60, scope: "requests" })
    expect(refused.headers.get("retry-after")).toBe(String(retry_after))
    expect(retry_after).toBeGreaterThan(0)
    expect(retry_after).toBeLessThanOrEqual(60)

    clock.advance({ seconds: retry_after })
    expect(limits(await project.get("/v1/emails")).remaining).toBe(59)
  })

  test("comes before the scope, and is nobody else's", async () => {
    const project = await service.project({ plan: "free", scopes: ["sms:send"] })
    startOfMinute()
    for (let count = 0; count < 60; count++) await project.get("/v1/emails")
    expect(refusal(await project.get("/v1/emails"))).toEqual([429, "rate_limit_exceeded"])
    const { key } = await project.addKey()
    expect((await project.get("/v1/emails", { "x-api-key": key })).status).toBe(200)
  })

  test.each([
    ["starter", 300],
    ["pro", 600],
    ["scale", 1200],
  ])("of the plan %s has %d", async (plan, limit) => {
    const project = await service.project({ plan })
    expect(limits(await project.get("/v1/emails"))).toMatchObject({ limit, remaining: limit - 1 })
  })

  test("without a limit says a million twice", async () => {
    const project = await service.project({ plan: "enterprise" })
    await project.get("/v1/emails")
    const told = limits(await project.get("/v1/emails"))
    expect(told).toMatchObject({ limit: 1_000_000, remaining: 1_000_000 })
  })
})

test("public routes have 6,000 an address", async () => {
  const address = freshAddress()
  const { headers } = await service.anybody.get("/v1/health", from(address))
  expect(headers.get("x-ratelimit-limit")).toBe("6000")
  expect(headers.get("x-ratelimit-remaining")).toBe("5999")
})

test("a flood at one public route closes no other one", async () => {
  const address = freshAddress()
  const ask = ({ method, path }: Pick<AnyRoute, "method" | "path">) =>
    service.anybody.call(method, path.replaceAll(/\{\w+\}/g, "none"), { headers: from(address) })
  // A refused pixel is still a picture, with the headers of the refusal.
  const isRefused = async (row: Pick<AnyRoute, "method" | "path">) =>
    (await ask(row)).headers.get("x-ratelimit-remaining") === "0"
  const pixel = { method: "GET", path: "/t/o/{token}" } as const
  clock.freeze()
  for (let count = 0; count < 60; count++) await Promise.all(Array(100).fill(pixel).map(ask))
  expect(await isRefused(pixel)).toBe(true)
  const others = routeTable({} as AppParts).filter(
    ({ callers, path }) => callers.includes("none") && path !== pixel.path,
  )
  for (const row of others) {
    expect([row.method, row.path, await isRefused(row)]).toEqual([row.method, row.path, false])
  }
})

test("after 300 wrong credentials further ones are refused, and right ones are not", async () => {
  const project = await service.project()
  const address = freshAddress()
  startOfMinute()
  const guess = () =>
    service.anybody.get("/v1/emails", { "x-api-key": "svc_live_x", ...from(address) })
  for (let count = 0; count < 300; count++) expect((await guess()).status).toBe(401)
  const refused = await guess()
  expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
  expect(refused.body.error.details).toMatchObject({ limit: 300, window_seconds: 60 })
  expect(refused.headers.has("retry-after")).toBe(true)

  const answers = await Promise.all([project.get("/v1/emails", from(address)), guess()])
  expect(answers.map(({ status }) => status)).toEqual([200, 429])
  clock.advance({ seconds: 60 })
  expect((await guess()).status).toBe(401)
})

test("what strangers ask for leaves the window of the public routes alone", async () => {
  const address = freshAddress()
  startOfMinute()
  for (const path of ["/v1/emails", "/v1/none", "/none"]) {
    await service.anybody.get(path, from(address))
  }
  const { headers } = await service.anybody.get("/v1/health", from(address))
  expect(headers.get("x-ratelimit-remaining")).toBe("5999")
})

test("a known caller hears of his own window, whatever he is refused for", async () => {
  startOfMinute()
  const used = await service.project({ plan: "free" })
  for (let count = 0; count < 60; count++) await used.get("/v1/emails")
  const elsewhere = await service.project({ plan: "free", ip_addresses: ["203.0.113.1"] })
  const locked = await service.project({ plan: "free", status: "locked" })
  const narrow = await service.project({ plan: "free", scopes: ["sms:send"] })
  for (const [project, code, remaining] of [
    [used, "rate_limit_exceeded", 0],
    [elsewhere, "ip_not_allowed", 60],
    [locked, "account_locked", 60],
    [narrow, "insufficient_scope", 59],
  ] as const) {
    const refused = await project.get("/v1/emails")
    expect([code, limits(refused)]).toMatchObject([code, { limit: 60, remaining }])
    expect(refused.headers.get("x-account-sending-status")).toBe("active")
  }
})
