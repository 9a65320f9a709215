import { expect, test } from "bun:test"
import { onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"
import { ACCOUNT, session, signedInHome } from "./signed-in"

test("who is signed in calls as himself, in the account he chose, and not with the key", async () => {
  using api = new FakeApi()
  api.data("GET /v1/projects", [])
  const { env } = signedInHome(api.url, 600)
  expect((await belfry(["projects", "list", "--project", ID], { env })).exit).toBe(0)
  const [seen] = api.seen
  expect(seen?.headers).toMatchObject({
    authorization: "Bearer access.0.x",
    "x-account-id": ACCOUNT,
    "x-project-id": ID,
  })
  expect(seen?.headers["x-api-key"]).toBeUndefined()
  expect(seen?.query).toEqual({ per_page: "25" })
})

test("a key given by hand comes before the sign-in", async () => {
  using api = new FakeApi()
  api.data("GET /v1/usage", {})
  const { env } = signedInHome(api.url, 600)
  await belfry(["usage", "--json"], { env: { ...env, BELFRY_API_KEY: "svc_live_other" } })
  const [seen] = api.seen
  expect(seen?.headers["x-api-key"]).toBe("svc_live_other")
  expect(seen?.headers.authorization).toBeUndefined()
  expect(seen?.headers["x-account-id"]).toBeUndefined()
})

test("no sign-in goes to another server than its own", async () => {
  using api = new FakeApi()
  using other = new FakeApi()
  const { env } = signedInHome(api.url, 600)
  const { exit } = await belfry(["projects", "list", "--url", other.url], { env })
  expect(exit).toBe(4)
  // Whether it has an owner is asked of any server, and without a credential.
  expect(other.seen.map(({ path }) => path)).toEqual(["/v1/setup"])
  expect(other.seen[0]?.headers.authorization).toBeUndefined()
  expect(other.seen[0]?.headers["x-api-key"]).toBeUndefined()
})

test("an access token that ends soon is refreshed first, once, and the new one is kept", async () => {
  using api = new FakeApi()
  api.data("GET /v1/projects", []).data("POST /v1/session/refresh", session())
  const { env, stored } = signedInHome(api.url, 10)
  expect((await belfry(["projects", "list"], { env })).exit).toBe(0)
  expect(api.seen.map(({ path }) => path)).toEqual(["/v1/session/refresh", "/v1/projects"])
  expect(api.seen[0]?.body).toEqual({ refresh_token: "belfry_refresh_0" })
  expect(api.seen[0]?.headers.authorization).toBeUndefined()
  expect(api.seen[0]?.headers["x-api-key"]).toBeUndefined()
  expect(api.seen[1]?.headers.authorization).toBe("Bearer access.1.x")
  expect(stored()).toMatchObject({
    api_key: KEY,
    account_id: ACCOUNT,
    session: { refresh_token: "belfry_refresh_1" },
  })
})

test("a sign-in that is over says how to begin anew", async () => {
  using api = new FakeApi()
  api.error("POST /v1/session/refresh", 401, "unauthorized")
  const { env } = signedInHome(api.url, 0)
  const { exit, err } = await belfry(["projects", "list"], { env })
  expect([exit, JSON.parse(err).error.code]).toEqual([4, "unauthorized"])
})

test("a password is asked for without being shown, then the code of the second factor", async () => {
  using api = new FakeApi()
  const mfa_challenge = { token: "belfry_mfa_1", methods: ["totp"], expires_at: "" }
  api.data("POST /v1/session", { mfa_required: true, mfa_challenge })
  api.data("POST /v1/session/mfa", session())
  const words = ["login", api.url, "--email", "ann@mailbox.test", "--code", "123456"]
  const { exit, out } = await onTerminal(words, { until: "Password:", type: "se\u007fecret\r" })
  expect([exit, out.includes("secret")]).toEqual([0, false])
  expect(out).toContain("signed in as ann@mailbox.test")
  expect(api.seen.map(({ body }) => body)).toEqual([
    { email: "ann@mailbox.test", password: "secret" },
    { token: "belfry_mfa_1", code: "123456" },
  ])
})

test("--dry-run shows the request without the password, and sends nothing", async () => {
  using api = new FakeApi()
  const words = ["login", api.url, "--email", "ann@mailbox.test", "--password-stdin", "--dry-run"]
  const { out, err } = await belfry(words, { stdin: "Geheim-1234" })
  expect(out + err).toContain("/v1/session")
  expect(out + err).not.toContain("Geheim")
  expect(api.seen).toEqual([])
})

test("off a terminal nobody is asked", async () => {
  using api = new FakeApi()
  const { exit, err } = await belfry(["login", api.url, "--email", "ann@mailbox.test"])
  expect([exit, JSON.parse(err).error.code]).toEqual([2, "usage"])
  expect(api.seen).toEqual([])
})

test("with --device it waits until somebody approves elsewhere", async () => {
  using api = new FakeApi()
  const begun = {
    device_code: "belfry_device_1",
    user_code: "ABCD-EFGH",
    verification_uri: `${api.url}/device`,
    expires_in: 600,
    interval: 0.01,
  }
  api.data("POST /v1/session/device", begun)
  let asked = 0
  api.answer("POST /v1/session/device/token", () => {
    asked += 1
    const details = { reason: "authorization_pending" }
    const error = { code: "validation_error", message: "Not yet.", details }
    return asked < 3 ? { status: 422, body: { error, meta: {} } } : { body: { data: session() } }
  })
  const { exit, out, err } = await belfry(["login", api.url, "--device"])
  expect([exit, asked]).toEqual([0, 3])
  expect(err).toContain("ABCD-EFGH")
  expect(out).not.toContain("belfry_refresh")
})

test("logout ends the session and forgets it, and the key stays", async () => {
  using api = new FakeApi()
  api.data("DELETE /v1/session", { id: ID, deleted: true })
  const { env, stored } = signedInHome(api.url, 600)
  expect((await belfry(["logout"], { env })).exit).toBe(0)
  expect(api.seen[0]?.headers.authorization).toBe("Bearer access.0.x")
  expect(stored()).toEqual({ url: api.url, api_key: KEY })
  expect((await belfry(["logout"], { env })).exit).toBe(4)
  api.data("GET /v1/accounts/me", { id: ID, name: "Acme" })
  const who = await belfry(["whoami"], { env })
  expect(JSON.parse(who.out)).toMatchObject({
    kind: "key",
    account_id: ID,
    api_key: `${KEY.slice(0, 17)}…`,
  })
})

test("deleting a project asks for its name, and sends it", async () => {
  using api = new FakeApi()
  const path = `/v1/projects/${ID}`
  api.data(`GET ${path}`, { id: ID, name: "Shop" })
  api.data(`DELETE ${path}`, { id: ID, deleted: true })
  const { env } = signedInHome(api.url, 600)
  expect((await belfry(["projects", "delete", ID], { env })).exit).toBe(2)
  expect(api.seen.map(({ method }) => method)).toEqual(["GET"])
  expect((await belfry(["projects", "delete", ID, "--yes"], { env })).exit).toBe(0)
  expect(api.seen.at(-1)?.body).toEqual({ confirm: "Shop" })
})

test("keys doctor finds what an audit would", async () => {
  using api = new FakeApi()
  const now = new Date().toISOString()
  const good = {
    id: "good",
    name: "good",
    prefix: "svc_live_",
    last4: "abcd",
    scopes: ["email:send"],
    status: "active",
    ip_addresses: [],
    expires_at: now,
    last_used_at: now,
    created_at: now,
  }
  const old = new Date(Date.now() - 100 * 86_400_000).toISOString()
  const bad = { ...good, id: "bad", scopes: ["*"], expires_at: null, last_used_at: old }
  api.data("GET /v1/api-keys", [good, bad])
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const found = await belfry(["keys", "doctor"], { env })
  const problems = (JSON.parse(found.out) as { id: string; problem: string }[]).map(
    ({ id, problem }) => `${id}: ${problem}`,
  )
  expect(found.exit).toBe(8)
  expect(problems).toEqual(["bad: unused", "bad: may do everything", "bad: never expires"])
  api.data("GET /v1/api-keys", [good])
  expect((await belfry(["keys", "doctor"], { env })).exit).toBe(0)
})

test("keys allowlist, rotate and update ask what they should", async () => {
  using api = new FakeApi()
  const key = { id: ID, name: "k", scopes: [], ip_addresses: [], key: "svc_live_new" }
  api.data(`PUT /v1/api-keys/${ID}/ip-whitelist`, key)
  api.data(`POST /v1/api-keys/${ID}/rotate`, key)
  api.data(`PATCH /v1/api-keys/${ID}`, key)
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  await belfry(["keys", "allowlist", ID, "192.0.2.7", "2001:db8::/32"], { env })
  await belfry(["keys", "rotate", ID, "--overlap", "0"], { env })
  await belfry(["keys", "update", ID, "--scope", "email:send", "--expires", "never"], { env })
  expect(api.seen.map(({ body }) => body)).toEqual([
    { ip_addresses: ["192.0.2.7", "2001:db8::/32"] },
    { overlap_hours: 0 },
    { scopes: ["email:send"], expires_at: null },
  ])
  expect((await belfry(["keys", "update", ID], { env })).exit).toBe(2)
})
