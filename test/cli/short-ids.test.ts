import { expect, test } from "bun:test"
import { existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { notifyEvents } from "../events/stream-facts"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { freshHome, onTerminal } from "./belfry"
import { email, FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"

quietLog()

const service = await sharedService()
const { url } = service.listen()

const idOf = (ending: string, first = "0199a1c2") => `${first}-0000-7000-8000-0000${ending}`
const at = (api: FakeApi, HOME = freshHome()) => ({
  BELFRY_URL: api.url,
  BELFRY_API_KEY: KEY,
  HOME,
})

/** A server with these emails, newest first, each of which can be read. */
function withEmails(...ids: string[]) {
  const api = new FakeApi()
  const emails = ids.map((id, n) => email({ id, subject: `No. ${n}` }))
  api.data("GET /v1/emails", emails, { has_more: false })
  for (const one of emails) api.data(`GET /v1/emails/${one.id}`, one)
  return api
}

test("a table shows the random end of each id, and a command takes it", async () => {
  const project = await service.project()
  const [event] = await notifyEvents(service.store, project, ["email.sent"], 0)
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key, HOME: freshHome() }
  const ending = event?.id.slice(-8) ?? ""
  const shown = await onTerminal(["events", "list", "--no-color"], { env })
  expect(shown.out).toMatch(new RegExp(`^ID +TYPE.*\\r\\n${ending}  email.sent`))
  const got = await belfry(["events", "get", ending], { env })
  expect(JSON.parse(got.out).id).toBe(event?.id)
  const followed = await belfry(["events", "list", "--after", ending], { env })
  expect([followed.exit, followed.out]).toEqual([0, "[]\n"])
})

test("what was listed last is not asked for again", async () => {
  const [id, other] = [idOf("aaaa1111"), idOf("aaaa2222")]
  using api = withEmails(id, other)
  const env = at(api)
  await onTerminal(["emails", "list"], { env })
  api.data("GET /v1/emails", [])
  const { exit, out } = await belfry(["emails", "get", "aaaa2222"], { env })
  expect([exit, JSON.parse(out).id]).toEqual([0, other])
  expect(api.seen.map(({ path }) => path)).toEqual(["/v1/emails", `/v1/emails/${other}`])
  expect(existsSync(join(env.HOME, ".cache/belfry/listed.json"))).toBe(true)
})

test("otherwise it is looked for among the 1,000 newest, page by page", async () => {
  const wanted = idOf("abcdef01")
  using api = withEmails()
  const pages = Array.from({ length: 12 }, (_, n) => [email({ id: idOf(`0000${1000 + n}`) })])
  pages[9] = [...Array(99).fill(email({ id: idOf("00000000") })), email({ id: wanted })]
  pages[10] = [email({ id: idOf("fedcba01") })]
  api.answer("GET /v1/emails", ({ query }) => {
    const n = Number(query.cursor ?? 0)
    const rows = n === 9 ? pages[9] : Array(100).fill(pages[n]?.[0])
    return { body: { data: rows, meta: { has_more: true, next_cursor: String(n + 1) } } }
  })
  api.data(`GET /v1/emails/${wanted}`, email({ id: wanted }))
  const env = at(api)
  expect((await belfry(["emails", "get", "abcdef01"], { env })).exit).toBe(0)
  const beyond = await belfry(["emails", "get", "fedcba01"], { env })
  expect(beyond.exit).toBe(3)
  expect(JSON.parse(beyond.err).error.message).toBe(
    "No id among the 1000 newest emails ends with fedcba01.",
  )
})

test("an ending that several have names them all, and nothing is done", async () => {
  const [one, two] = [idOf("aaaa1111"), idOf("aaaa1111", "0199a1c3")]
  using api = withEmails(one, two, idOf("bbbb1111"))
  const env = at(api)
  const piped = await belfry(["emails", "cancel", "aaaa1111"], { env })
  const { code, details } = JSON.parse(piped.err).error
  const candidates = [`${one}  ann@mailbox.test  No. 0`, `${two}  ann@mailbox.test  No. 1`]
  expect([piped.exit, code, details.candidates]).toEqual([2, "ambiguous_id", candidates])
  const shown = await onTerminal(["emails", "get", "aaaa1111", "--no-color"], { env })
  for (const candidate of candidates) expect(shown.out).toContain(`  ${candidate}\r\n`)
  expect(api.seen.every(({ method }) => method === "GET")).toBe(true)
})

test("a delivery's ending is looked for at its own endpoint", async () => {
  using api = new FakeApi()
  const [hook, delivery] = [idOf("aaaa1111"), idOf("bbbb2222")]
  api.data("GET /v1/webhooks", [{ id: hook, url: "https://a.b/" }])
  api.data(`GET /v1/webhooks/${hook}/deliveries`, [{ id: delivery, event_type: "email.sent" }])
  api.data(`GET /v1/webhooks/${hook}/deliveries/${delivery}`, { id: delivery, status: "failed" })
  const words = ["webhooks", "deliveries", "aaaa1111", "bbbb2222"]
  const { exit, out } = await belfry(words, { env: at(api) })
  expect([exit, JSON.parse(out).id]).toEqual([0, delivery])
})

test("endings of one server are nothing to another, and a home that takes no file is no obstacle", async () => {
  const id = idOf("aaaa1111")
  using here = withEmails(id)
  using there = withEmails(idOf("aaaa1111", "0199a1c9"))
  const env = at(here)
  await onTerminal(["emails", "list"], { env })
  const other = await belfry(["emails", "get", "aaaa1111"], {
    env: { ...env, BELFRY_URL: there.url },
  })
  expect(JSON.parse(other.out).id).toStartWith("0199a1c9")

  const HOME = freshHome()
  mkdirSync(join(HOME, ".cache/belfry/listed.json"), { recursive: true }) // a folder in its place
  expect((await onTerminal(["emails", "list"], { env: at(here, HOME) })).exit).toBe(0)
  expect((await belfry(["emails", "get", "aaaa1111"], { env: at(here, HOME) })).exit).toBe(0)
})

test("in a narrow table the subject gives way, and the recipient stands whole", async () => {
  const to = { email: "a.rather.long.recipient@dept.example.com", name: null }
  using api = new FakeApi()
  api.data("GET /v1/emails", [email({ to, subject: "A subject that is as long as the rest" })])
  const { out } = await onTerminal(["emails", "list", "--no-color"], { env: at(api), columns: 80 })
  expect(out).toContain(to.email)
  expect(out.split("\r\n").filter((line) => Bun.stringWidth(line) > 80)).toEqual([])
})

test("the author of a change is a person or a key, by the end of either id", async () => {
  const [person, key] = [idOf("aaaa1111"), idOf("bbbb2222")]
  using api = new FakeApi()
  api.data("GET /v1/accounts/me/members", [{ user_id: person, email: "ann@acme.test" }])
  api.data("GET /v1/api-keys", [{ id: key, name: "ci" }])
  api.data("GET /v1/audit-log", [])
  const env = at(api)
  for (const [ending, whole] of [
    ["aaaa1111", person],
    ["bbbb2222", key],
  ] as const) {
    expect((await belfry(["audit", "--actor", ending], { env })).exit).toBe(0)
    expect(api.seen.at(-1)?.query).toMatchObject({ actor_id: whole })
  }
  const nobody = await belfry(["audit", "--actor", "cccc3333"], { env })
  expect([nobody.exit, nobody.err]).toEqual([3, expect.stringContaining("members and API keys")])
})
