import { afterAll, beforeAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { Elysia } from "elysia"
import { mountRoutes } from "../../src/http/request-handler"
import { jobs } from "../../src/jobs/tables"
import { OpenProviders } from "../../src/providers/open-providers"
import { providerRoutes } from "../../src/providers/routes"
import { providerConfigs } from "../../src/providers/tables"
import { type Carriers, heard, pigeons } from "../fakes/pigeon"
import { signedIn, team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"

const logged = quietLog()
const service = await testService()
const { store, parts } = service
const carriers: Carriers = new Map()
const providers = pigeons(carriers)
const open_providers = new OpenProviders(providers, parts.secrets)
const app = new Elysia({ normalize: false, strictPath: true })
mountRoutes(app, providerRoutes({ ...parts, providers, open_providers }, providers.table), parts)

const ALL = "/v1/providers/sms_provider/config"
const TOKEN = "a very secret token"
const credentials = { account: "one", auth_token: TOKEN }
const FORM = "application/x-www-form-urlencoded"

let callback: string
let ask: (method: string, path: string, body?: object) => ReturnType<typeof service.anybody.call>

beforeAll(async () => {
  const { owner, account_id, project_id } = await team(service)
  const headers = { "x-account-id": account_id, "x-project-id": project_id }
  const mine = signedIn(app, owner.token)
  ask = (method, path, body) => mine.call(method, path, { headers, ...(body && { body }) })
  const { body } = await ask("POST", ALL, { provider: "pigeon", credentials })
  callback = new URL(body.data.callback_url).pathname
})

afterAll(() => service[Symbol.asyncDispose]())

interface Call {
  path?: string
  query?: string
  body?: string
  type?: string
  method?: string
}

async function call({ path = callback, query = "", body, type, method = "POST" }: Call) {
  heard.length = 0
  const bytes = body === undefined ? {} : { body: new TextEncoder().encode(body) }
  const headers: Record<string, string> = type === undefined ? {} : { "content-type": type }
  const init = { method, headers, ...bytes }
  const answer = await app.handle(new Request(`http://10.0.0.1:8080${path}${query}`, init))
  return {
    status: answer.status,
    type: answer.headers.get("content-type"),
    text: await answer.text(),
  }
}

const kept = () => store.read.select().from(jobs).where(eq(jobs.name, "provider.feedback"))

const PROOF = `proof=${encodeURIComponent(TOKEN)}`
const JSON_PROOF = JSON.stringify({ id: "7", proof: TOKEN })

test.each<[string, Call]>([
  ["a form", { body: `id=7&${PROOF}`, type: `${FORM}; charset=utf-8` }],
  ["a form without a type", { body: `id=7&${PROOF}` }],
  ["JSON", { body: JSON_PROOF, type: "application/json" }],
  ["JSON that is called text", { body: JSON_PROOF, type: "text/plain" }],
  ["JSON without a type", { body: JSON_PROOF }],
  ["a query of a GET", { method: "GET", query: `?id=7&${PROOF}` }],
  ["a query beside a body", { query: "?id=7&proof=none", body: PROOF, type: FORM }],
])("the provider gets the fields of %s, and its own answer", async (_, asked) => {
  expect(await call(asked)).toEqual({ status: 200, type: "text/xml", text: "<Response/>" })
  const [seen] = heard
  expect(seen?.request.fields).toMatchObject({ id: "7", proof: TOKEN })
  expect(seen?.access).toEqual(credentials)
  // A signature covers the address that the provider was given, whichever way the request came, and its query.
  expect(seen?.request.url).toBe(`http://belfry.test${callback}${asked.query ?? ""}`)
  expect(Buffer.from(seen?.request.body ?? []).toString()).toBe(asked.body ?? "")
})

test("a callback that comes again is answered as before", async () => {
  const before = (await kept()).length
  for (const _ of [1, 2])
    expect((await call({ body: `id=9&${PROOF}`, type: FORM })).status).toBe(200)
  expect((await kept()).slice(before)).toMatchObject([
    { payload: { provider_message_id: "9", notices: [{ type: "delivered" }] } },
    { payload: { provider_message_id: "9" } },
  ])
})

test("a HEAD is answered as a GET, and tells nothing", async () => {
  const before = await kept()
  expect((await call({ method: "HEAD", query: `?id=7&${PROOF}` })).status).toBe(200)
  expect(await kept()).toEqual(before)
})

test.each<[string, () => Call]>([
  ["a wrong signature", () => ({ body: "id=7&proof=wrong", type: FORM })],
  ["no body", () => ({})],
  ["a list", () => ({ body: "[1]" })],
  ["a wrong token", () => ({ path: callback.replace(/.$/, "_"), body: PROOF, type: FORM })],
  ["another provider", () => ({ path: callback.replace("/pigeon/", "/owl/"), body: PROOF })],
  ["another channel", () => ({ path: callback.replace("/sms/", "/email/"), body: PROOF })],
])("%s is refused, and nothing is written", async (what, asked) => {
  const before = await kept()
  const { status, text } = await call(asked())
  const code = what === "another channel" ? "not_found" : "unauthorized"
  expect([status, JSON.parse(text).error.code]).toEqual([code === "not_found" ? 404 : 401, code])
  expect(await kept()).toEqual(before)
})

test("another account is refused until the credentials are replaced, and the log says so", async () => {
  const as = (account: string) => call({ body: `id=7&account=${account}&${PROOF}`, type: FORM })
  expect((await as("one")).status).toBe(200)
  const before = await store.read.select().from(providerConfigs)
  expect([(await as("two")).status, (await as("one")).status]).toEqual([401, 200])
  expect(await store.read.select().from(providerConfigs)).toEqual(before)
  expect(logged().join()).toContain("a callback from another account of the provider is refused")
  await ask("POST", ALL, { provider: "pigeon", credentials })
  expect([(await as("two")).status, (await as("one")).status]).toEqual([200, 401])
})

test.each([
  ["no JSON", { body: "no JSON", type: "application/json" }, 400, "invalid_json"],
  ["JSON too deep", { body: "[".repeat(100) }, 400, "invalid_json"],
  ["a body over 256 KiB", { body: "x".repeat(262_145), type: FORM }, 413, "payload_too_large"],
] as const)("%s is a clear error", async (_, asked, status, code) => {
  const answer = await call(asked)
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code])
})

test("settings are those that the provider declares; others are refused by name", async () => {
  const set = (settings: object) => ask("POST", ALL, { provider: "pigeon", credentials, settings })
  const { body } = await set({ from: "BELL", max_per_second: 3 })
  expect(body.data.settings).toEqual({ from: "BELL", max_per_second: 3 })
  const one = `${ALL}/${body.data.id}`
  const change = (settings: object) => ask("PATCH", one, { settings })
  expect((await change({ allowed: ["+43"], max_per_second: null })).body.data.settings).toEqual({
    from: "BELL",
    allowed: ["+43"],
  })
  for (const [settings, path] of [
    [{ spf: ["a:h.test"] }, "settings.spf"],
    [{ from: "x".repeat(21) }, "settings.from"],
    [{ allowed: "+43" }, "settings.allowed"],
  ] as const) {
    const refused = [await set(settings), await change(settings)]
    const told = refused.map(({ status, body }) => [status, body.error.details.fields[0].path])
    expect(told).toEqual([
      [422, path],
      [422, path],
    ])
  }
})

test("a provider of texts is tried by a login, and by a text to a number", async () => {
  const settings = { allowed: ["+43"] }
  const { body } = await ask("POST", ALL, { provider: "pigeon", credentials, settings })
  const one = `${ALL}/${body.data.id}`
  const tried = (to?: string) => ask("POST", `${one}/test`, to === undefined ? {} : { to })
  carriers.set("one", { got: [] })
  expect((await tried()).body.data).toMatchObject({ ok: true, detail: "The loft is open." })
  expect((await tried("+436601234567")).body.data.detail).toStartWith(
    "It accepted a text to +43660",
  )
  expect(carriers.get("one")?.got).toHaveLength(1)
  for (const [to, code] of [
    ["ann@example.test", "invalid_phone_number"],
    ["+14155550100", "validation_error"],
  ] as const) {
    const refused = await tried(to)
    expect([refused.status, refused.body.error.code]).toEqual([422, code])
  }

  carriers.set("one", { fault: "authentication", got: [] })
  const failed = await tried("+436601234567")
  expect([failed.status, failed.body.error.code]).toEqual([502, "provider_error"])
  expect((await ask("GET", one)).body.data).toMatchObject({
    status: "error",
    last_error: "no wind",
  })
  carriers.set("one", { got: [] })
  expect((await tried("+436601234567")).status).toBe(200)
  expect((await ask("GET", one)).body.data).toMatchObject({ status: "active", next_probe_at: null })
})
