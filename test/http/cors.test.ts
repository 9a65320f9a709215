import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { listen } from "../../src/http/listener"
import { UNLIMITED } from "../../src/http/rate-limits"
import { subscribers } from "../../src/subscribers/tables"
import { client, type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import {
  addSubscriber,
  bearer,
  CLOSED,
  INBOX,
  OPEN,
  PEOPLE,
  SHARED,
  subscriberApp,
  tokenOf,
  UNSCOPED,
} from "../inbox/subscriber-app"

const clock = movableClock()
const service = await sharedService()
const { store, anybody } = service
const whole = subscriberApp(service)
const app = client(whole, undefined)

const OURS = "https://app.example.test"
const EVIL = "https://evil.test"

/** A project whose pages are listed, with a subscriber. */
async function listed(allowed_origins: string[] | null = [OURS], plan = "enterprise") {
  const project = await service.project({ plan })
  await project.call("PATCH", "/v1/settings", { body: { allowed_origins } })
  const subscriber_id = await addSubscriber(service, project)
  return { project, subscriber_id, token: await tokenOf(project, subscriber_id) }
}

const from = (origin: string, more: Record<string, string> = {}) => ({ origin, ...more })

const corsOf = ({ headers }: Reply | Response) =>
  [...headers.keys()].filter((name) => name.startsWith("access-control-")).toSorted()

const allowed = ({ headers }: Reply | Response) => headers.get("access-control-allow-origin")

describe("a page of a listed origin", () => {
  test("is answered, and may read what it needs of the headers", async () => {
    const { token } = await listed()
    const answer = await app.get(INBOX, from(OURS, bearer(token)))
    expect([answer.status, allowed(answer)]).toEqual([200, OURS])
    expect(answer.headers.get("vary")).toBe("Origin")
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull()
    const readable = answer.headers.get("access-control-expose-headers")?.split(", ") ?? []
    expect(readable).toContain("Retry-After")
    expect(readable).not.toContain("X-Account-Sending-Status-Reason")
  })

  test("may also read why it was refused", async () => {
    const { token, subscriber_id } = await listed()
    const invalid = await app.get(`${INBOX}?much=9`, from(OURS, bearer(token)))
    expect([invalid.status, allowed(invalid)]).toEqual([422, OURS])
    const own = eq(subscribers.id, subscriber_id)
    await store.tx((tx) => tx.update(subscribers).set({ status: "blocked" }).where(own))
    const blocked = await app.get(INBOX, from(OURS, bearer(token)))
    expect([blocked.status, allowed(blocked)]).toEqual([401, OURS])
    clock.advance({ seconds: 604_801 })
    const over = await app.get(INBOX, from(OURS, bearer(token)))
    expect([over.status, allowed(over)]).toEqual([401, OURS])
    const elsewhere = await app.get(INBOX, from(EVIL, bearer(token)))
    expect([elsewhere.status, corsOf(elsewhere)]).toEqual([401, []])
  })
})

describe("a page of another origin", () => {
  test.each([
    EVIL,
    "http://app.example.test",
    "https://app.example.test:8443",
    "https://app.example.test.evil.test",
    "https://evil.test/https://app.example.test",
    "null",
    "",
  ])("is refused without a word of CORS: %j", async (origin) => {
    const { token } = await listed()
    for (const [method, path] of [
      ["GET", INBOX],
      ["POST", INBOX],
      ["GET", SHARED],
    ] as const) {
      const headers = from(origin, bearer(token))
      const refused = await app.call(method, path, {
        headers,
        ...(method === "POST" && { body: {} }),
      })
      expect(refusal(refused)).toEqual([403, "forbidden"])
      expect(refused.body.error.details).toEqual({ reason: "origin_not_allowed" })
      expect(corsOf(refused)).toEqual([])
      expect(refused.headers.get("vary")).toBe("Origin")
    }
  })

  test("is let in where the project lists none", async () => {
    const { token } = await listed(null)
    for (const origin of [EVIL, "null", "capacitor://localhost"]) {
      const answer = await app.get(INBOX, from(origin, bearer(token)))
      expect([answer.status, allowed(answer)]).toEqual([200, origin])
    }
  })

  test("is refused from the first request after the setting changed", async () => {
    const { project, token } = await listed(null)
    expect((await app.get(INBOX, from(EVIL, bearer(token)))).status).toBe(200)
    await project.call("PATCH", "/v1/settings", { body: { allowed_origins: [OURS] } })
    expect((await app.get(INBOX, from(EVIL, bearer(token)))).status).toBe(403)
  })
})

test("a row of every origin lets in anybody, and knows a subscriber by the token", async () => {
  const { token, subscriber_id, project } = await listed()
  for (const headers of [{}, from(EVIL), from("null")]) {
    const open = await app.get(OPEN, headers)
    expect([open.status, open.body.data.kind, allowed(open)]).toEqual([200, "none", "*"])
    expect(open.headers.get("access-control-allow-credentials")).toBeNull()
    const known = await app.get(OPEN, { ...headers, ...bearer(token) })
    expect([known.body.data.subscriber_id, allowed(known)]).toEqual([subscriber_id, "*"])
  }
  for (const [headers, status] of [
    [bearer("a.b.c"), 401],
    [{ authorization: "Basic eDp5" }, 401],
    [bearer(project.key), 403],
    [{ "x-api-key": project.key }, 403],
  ] as const) {
    const refused = await app.get(OPEN, from(EVIL, headers))
    expect([refused.status, allowed(refused)]).toEqual([status, "*"])
  }
  const asked = from(EVIL, { "access-control-request-method": "GET" })
  const preflight = await app.call("OPTIONS", OPEN, { headers: asked })
  expect([preflight.status, allowed(preflight)]).toEqual([200, "*"])
  expect(preflight.headers.get("access-control-allow-headers")).toContain("Authorization")
})

test("a request without an origin passes, and hears nothing of CORS", async () => {
  const { token } = await listed()
  const answer = await app.get(INBOX, bearer(token))
  expect([answer.status, corsOf(answer)]).toEqual([200, []])
})

test("keys and people are never answered for pages, wherever these come from", async () => {
  const { project } = await listed(null)
  const { owner } = await team(service)
  for (const origin of [OURS, EVIL, "null"]) {
    for (const path of [SHARED, CLOSED]) {
      const keyed = await app.get(path, from(origin, { "x-api-key": project.key }))
      expect([keyed.status, corsOf(keyed)]).toEqual([200, []])
      const sent = await app.get(path, from(origin, bearer(project.key)))
      expect([sent.status, corsOf(sent)]).toEqual([200, []])
    }
    const listing = await project.get("/v1/emails", { origin })
    expect([listing.status, corsOf(listing)]).toEqual([200, []])
    const person = await owner.get("/v1/emails", { origin })
    expect([person.status, corsOf(person)]).toEqual([200, []])
    const stranger = await app.get(INBOX, { origin })
    expect([stranger.status, corsOf(stranger)]).toEqual([401, []])
    const forged = await app.get(INBOX, from(origin, bearer("a.b.c")))
    expect([forged.status, corsOf(forged)]).toEqual([401, []])
  }
})

test("routes of others are closed to a subscriber, and those of subscribers to others", async () => {
  const { token, project } = await listed()
  const closed = await app.get(CLOSED, from(OURS, bearer(token)))
  expect(refusal(closed)).toEqual([403, "forbidden"])
  expect(closed.body.error.details).toEqual({ required_scope: "inbox:read" })
  expect(corsOf(closed)).toEqual([])
  const removing = await app.call("DELETE", SHARED, { headers: bearer(token) })
  expect(refusal(removing)).toEqual([403, "forbidden"])
  expect((await app.get(SHARED, bearer(token))).status).toBe(200)

  for (const [path, required_role, remedy] of [
    [UNSCOPED, "key", "Call it with an API key."],
    [PEOPLE, "console", "Sign in, and send the access token."],
  ] as const) {
    const unscoped = await app.get(path, bearer(token))
    expect(refusal(unscoped)).toEqual([403, "forbidden"])
    expect(unscoped.body.error.details).toEqual({ required_role })
    expect(unscoped.body.error.message).toContain(remedy)
  }

  const key = await app.get(INBOX, { "x-api-key": project.key })
  expect(refusal(key)).toEqual([403, "forbidden"])
  expect(key.body.error.details).toEqual({ required_role: "subscriber" })
})

describe("before a request, a browser", () => {
  const asking = (method: string, origin: string | undefined = OURS) => ({
    ...(origin !== undefined && { origin }),
    "access-control-request-method": method,
    "access-control-request-headers": "authorization,content-type",
  })
  const ask = (path: string, headers: Record<string, string>) =>
    app.call("OPTIONS", path, { headers })

  test("is told what pages may send to routes of subscribers", async () => {
    for (const method of ["GET", "POST"]) {
      const answer = await ask(INBOX, asking(method))
      expect([answer.status, answer.text, allowed(answer)]).toEqual([200, "", OURS])
      expect(answer.headers.get("access-control-allow-methods")).toBe("GET, POST")
      const sendable = answer.headers.get("access-control-allow-headers")?.toLowerCase() ?? ""
      expect(sendable.split(", ")).toContain("authorization")
      expect(sendable).not.toContain("x-api-key")
      expect(sendable).not.toContain("secret")
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull()
      expect(answer.headers.get("x-request-id")).toBeTruthy()
    }
    const shared = await ask(SHARED, asking("GET"))
    expect(shared.headers.get("access-control-allow-methods")).toBe("GET")
  })

  test.each([
    ["of a route for keys", CLOSED, "GET"],
    ["of a method for keys", SHARED, "DELETE"],
    ["of a method that is not there", INBOX, "PATCH"],
    ["of a path that is not there", "/v1/test-nothing", "GET"],
  ])("is told nothing %s", async (_, path, method) => {
    const answer = await ask(path, asking(method))
    expect([answer.status, corsOf(answer)]).toEqual([404, []])
  })

  test("is told nothing where it does not say what for", async () => {
    const no_method = await ask(INBOX, { origin: OURS })
    expect([no_method.status, corsOf(no_method)]).toEqual([404, []])
    const no_origin = await ask(INBOX, { "access-control-request-method": "GET" })
    expect([no_origin.status, corsOf(no_origin)]).toEqual([404, []])
    for (const path of ["/v1/emails", "/v1/subscriber-inbox/token", "/v1/settings"]) {
      const built = await anybody.call("OPTIONS", path, { headers: asking("POST") })
      expect([path, built.status, corsOf(built)]).toEqual([path, 404, []])
    }
  })

  test("gets the same answers over a real connection", async () => {
    const listener = listen(whole, { host: "127.0.0.1", port: 0, idle_seconds: 10 })
    try {
      const url = `${listener.url}${INBOX}`
      const answer = await fetch(url, { method: "OPTIONS", headers: asking("GET") })
      expect([answer.status, allowed(answer), await answer.text()]).toEqual([200, OURS, ""])
      const { token } = await listed()
      const read = await fetch(url, { headers: from(OURS, bearer(token)) })
      expect([read.status, allowed(read)]).toEqual([200, OURS])
      const refused = await fetch(url, { headers: from(EVIL, bearer(token)) })
      expect([refused.status, corsOf(refused)]).toEqual([403, []])
    } finally {
      await listener.stop()
    }
  })
})

test("each subscriber has a window of its own, apart from that of the key", async () => {
  const { project, token } = await listed([OURS], "free")
  const other = await tokenOf(project, await addSubscriber(service, project))
  clock.freeze()
  clock.advance({ seconds: 60 }) // a new minute for the key
  const limit = Number((await app.get(INBOX, bearer(token))).headers.get("x-ratelimit-limit"))
  expect(limit).toBe(60)
  for (let count = 1; count < limit; count++) {
    expect((await app.get(INBOX, bearer(token))).status).toBe(200)
  }
  const refused = await app.get(INBOX, from(OURS, bearer(token)))
  expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
  expect([allowed(refused), refused.headers.has("retry-after")]).toEqual([OURS, true])
  const neighbour = await app.get(INBOX, bearer(other))
  expect([neighbour.status, neighbour.headers.get("x-ratelimit-remaining")]).toEqual([200, "59"])
  expect((await project.get("/v1/emails")).status).toBe(200)
})

test("on a plan without a limit a subscriber is told so", async () => {
  const { token } = await listed()
  const { headers } = await app.get(INBOX, bearer(token))
  expect(headers.get("x-ratelimit-limit")).toBe(String(UNLIMITED))
  expect(headers.get("x-account-sending-status")).toBe("active")
})

test("a repeated request is answered to its own subscriber only", async () => {
  const { project, token, subscriber_id } = await listed()
  const other_id = await addSubscriber(service, project)
  const other = await tokenOf(project, other_id)
  const post = (whose: string) =>
    app.post(INBOX, {}, { ...bearer(whose), "idempotency-key": "one" })
  expect((await post(token)).body.data.subscriber_id).toBe(subscriber_id)
  const again = await post(token)
  expect(again.headers.get("idempotent-replayed")).toBe("true")
  const theirs = await post(other)
  expect(theirs.headers.has("idempotent-replayed")).toBe(false)
  expect(theirs.body.data.subscriber_id).toBe(other_id)
})
