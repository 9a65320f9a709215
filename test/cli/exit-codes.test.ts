import { expect, test } from "bun:test"
import { join } from "node:path"
import { profilesPath, saveProfile } from "../../cli/lib/profiles"
import { program } from "../harness/program"
import { freshHome, onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })

test.each([
  [404, 3],
  [401, 4],
  [403, 4],
  [409, 5],
  [402, 6],
  [429, 6],
  [400, 7],
  [413, 7],
  [422, 7],
  [500, 1],
  [503, 75],
  [504, 75],
])("an answer %d ends with %d, and its error body on stderr", async (status, exit) => {
  using api = new FakeApi()
  api.error(`GET /v1/emails/${ID}`, status, "a_code", { why: "because" })
  const ended = await belfry(["emails", "get", ID], { env: at(api) })
  expect([ended.exit, ended.out]).toEqual([exit, ""])
  const details = { why: "because" }
  expect(JSON.parse(ended.err)).toEqual({
    error: { code: "a_code", message: "This is a_code.", details },
    meta: { request_id: "req_1", server: api.url, key_from: "BELFRY_API_KEY" },
  })
})

test("a person reads what happened, which value, and what to do next", async () => {
  using api = new FakeApi()
  const fields = [{ path: "to.email", code: "invalid", message: "is not an address" }]
  api.error("POST /v1/emails", 422, "validation_error", { fields })
  api.error("GET /v1/emails", 403, "forbidden", { required_scope: "email:read" })
  const send = ["emails", "send", "--to", "x", "--no-color"]
  const invalid = await onTerminal(send, { env: at(api) })
  expect(invalid.exit).toBe(7)
  expect(invalid.out).toContain('✗ --to "x": is not an address (validation_error)')
  const refused = await onTerminal(["emails", "list", "--no-color"], { env: at(api) })
  expect(refused.out).toContain("→ use a key with the scope email:read")
})

test("a person is not told the same twice", async () => {
  using api = new FakeApi()
  const message = "to: This is not one email address."
  const details = { field: "to", reason: "This is not one email address." }
  api.answer("POST /v1/emails", {
    status: 422,
    body: { error: { code: "invalid_email", message, details } },
  })
  const send = ["emails", "send", "--to", "x", "--no-color"]
  const { out } = await onTerminal(send, { env: at(api) })
  expect(out.trim().split(/\s*\n\s*/)).toEqual([
    '✗ --to "x": This is not one email address. (invalid_email)',
    `request at ${api.url}, key from BELFRY_API_KEY`,
  ])
  const faulty = await onTerminal(["config", "show", "--set", "lgo=1", "--no-color"])
  expect(faulty.out.match(/lgo \(/g)).toHaveLength(1)
})

test("no server is 69, no key is 4, and both say what to do", async () => {
  const env = { BELFRY_URL: "http://127.0.0.1:1", BELFRY_API_KEY: KEY }
  const nobody = await onTerminal(["emails", "list", "--no-color"], { env })
  expect(nobody.exit).toBe(69)
  expect(nobody.out).toContain("→ start a server with `belfry up`")
  const away = await belfry(["emails", "list"], { env: { BELFRY_URL: "http://127.0.0.1:1" } })
  expect([away.exit, JSON.parse(away.err).error]).toMatchObject([
    69,
    { message: "No server answers at http://127.0.0.1:1.", details: { named_by: "BELFRY_URL" } },
  ])
  using api = new FakeApi()
  const keyless = await belfry(["emails", "list"], { env: { BELFRY_URL: api.url } })
  expect(keyless.exit).toBe(4)
})

test("a server that does not answer in time is 75", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Bun.sleep(5000) as never,
  })
  const env = { BELFRY_URL: `http://127.0.0.1:${server.port}`, BELFRY_API_KEY: KEY }
  const { exit, err } = await belfry(["emails", "list", "--timeout", "200ms"], { env })
  expect([exit, JSON.parse(err).error.code]).toEqual([75, "timeout"])
  await server.stop(true)
})

test("something that is not the API is told as such", async () => {
  using api = new FakeApi()
  api.answer("GET /v1/emails", { body: "<html>hello</html>" })
  const { exit, err } = await belfry(["emails", "list"], { env: at(api) })
  expect([exit, JSON.parse(err).error.code]).toEqual([1, "bad_answer"])
})

test.each([
  [["emails", "list", "--nope"]],
  [["emails", "nope"]],
  [["nope"]],
  [["emails", "get"]],
  [["emails", "send"]],
  [["emails", "list", "--limit", "zero"]],
  [["emails", "list", "--timeout", "soon"]],
  [["emails", "list", "--profile", "nobody"]],
  [["emails", "list", "--url", "nowhere"]],
  [["up", "--port", "70000"]],
  [["config", "explain", "htp.listen"]],
])("a wrong command line %p is 2, and JSON off a terminal", async (words) => {
  const { exit, out, err } = await belfry(words)
  expect([exit, out]).toEqual([2, ""])
  expect(Object.keys(JSON.parse(err).error)).toEqual(["code", "message", "details"])
})

test("a GET answered 503 with Retry-After is asked again while there is time", async () => {
  using api = new FakeApi()
  const body = { error: { code: "service_unavailable", message: "Wait.", details: {} } }
  api.answer("GET /v1/emails", () =>
    api.seen.length < 2
      ? { status: 503, body, headers: { "retry-after": "0" } }
      : { body: { data: [], meta: {} } },
  )
  expect((await belfry(["emails", "list"], { env: at(api) })).exit).toBe(0)
  expect(api.seen).toHaveLength(2)
})

test("a POST is never repeated", async () => {
  using api = new FakeApi()
  const body = { error: { code: "service_unavailable", message: "Wait.", details: {} } }
  api.answer("POST /v1/emails", { status: 503, body, headers: { "retry-after": "0" } })
  const words = ["emails", "send", "--to", "a@mailbox.test", "--subject", "x", "--text", "y"]
  expect((await belfry(words, { env: at(api) })).exit).toBe(75)
  expect(api.seen).toHaveLength(1)
})

test("Ctrl-C is 130", async () => {
  using api = new FakeApi()
  api.data("GET /v1/mailbox", [])
  const child = Bun.spawn([...program, "mailbox", "wait", "--to", "a@b.c"], {
    env: { PATH: process.env.PATH ?? "", ...at(api) },
    stderr: "ignore",
  })
  while (api.seen.length === 0) await Bun.sleep(10)
  child.kill("SIGINT")
  expect(await child.exited).toBe(130)
})

const FOLDER = freshHome()
const missing = join(FOLDER, "missing.json")

test.each([
  [["emails", "send", "--to", "a@b.c", "--file", missing], "--file"],
  [["emails", "send", "--to", "a@b.c", "--text-file", missing], "--text-file"],
  [["emails", "send", "--to", "a@b.c", "--attach", missing], "--attach"],
  [["emails", "batch", missing], "FILE"],
  [
    ["webhooks", "create", "https://a.b/", "--event", "*", "--secret-file", missing],
    "--secret-file",
  ],
  [["config", "show", "--config", missing], "--config"],
])("a file that is missing is 66, with the flag and the name: %p", async (words, flag) => {
  const { exit, out, err } = await belfry(words, {
    env: { BELFRY_URL: "localhost:1", BELFRY_API_KEY: KEY },
  })
  expect([exit, out]).toEqual([66, ""])
  const { code, message } = JSON.parse(err).error
  expect([code, message]).toEqual(["missing_file", `${flag}: There is no file ${missing}.`])
})

test("a folder in the place of a file, and a missing file with a key, are 66 too", async () => {
  const env = { BELFRY_URL: "localhost:1", BELFRY_API_KEY: KEY }
  const folder = await belfry(["emails", "batch", FOLDER], { env })
  expect([folder.exit, JSON.parse(folder.err).error.message]).toEqual([
    66,
    `FILE: ${FOLDER} is a folder, not a file.`,
  ])
  const keyless = { BELFRY_URL: "localhost:1", BELFRY_API_KEY_FILE: missing }
  const no_key = await belfry(["emails", "list"], { env: keyless })
  expect([no_key.exit, no_key.err.includes(missing)]).toEqual([66, true])
})

/** What a person reads where the words run with these variables. */
const read = async (words: string[], env: Record<string, string>) =>
  (await onTerminal([...words, "--no-color"], { env })).out

test("a refusal names the server, the source of the key, and the profile that has another", async () => {
  using api = new FakeApi()
  const XDG_CONFIG_HOME = freshHome()
  const stored = { url: api.url, api_key: KEY, data_dir: "/data" }
  saveProfile(profilesPath({ XDG_CONFIG_HOME }), "local", stored)
  const list = ["emails", "list"]
  api.error("GET /v1/emails", 401, "unauthorized")
  const of_profile = await read(list, { XDG_CONFIG_HOME })
  expect(of_profile).toContain(`at ${api.url}, key from the profile local (data folder /data)`)
  const wrong = { XDG_CONFIG_HOME, BELFRY_API_KEY: "svc_live_old" }
  const other = "use the key of the profile local with --profile local"
  expect(await read(list, wrong)).toContain(`→ unset BELFRY_API_KEY, and ${other}`)
  const by_flag = await read([...list, "--api-key", "x"], { XDG_CONFIG_HOME })
  expect(by_flag).toContain(`→ leave out --api-key, and ${other}`)
  expect(by_flag).toContain(`request req_1 at ${api.url}, key from --api-key`)
})

test("whoami asks the server, so a key that it does not know is no one's", async () => {
  using api = new FakeApi()
  api.data("GET /v1/accounts/me", { id: ID, name: "Acme" })
  const known = await belfry(["whoami"], { env: at(api) })
  expect(JSON.parse(known.out)).toMatchObject({ accounts: [{ id: ID, name: "Acme" }] })
  api.error("GET /v1/accounts/me", 403, "forbidden", { required_scope: "usage:read" })
  expect((await belfry(["whoami"], { env: at(api) })).exit).toBe(0)
  api.error("GET /v1/accounts/me", 401, "unauthorized")
  expect((await belfry(["whoami"], { env: at(api) })).exit).toBe(4)
  api.data("GET /v1/setup", { needed: false })
  const nobody = await belfry(["whoami", "--url", api.url], { env: {} })
  expect([nobody.exit, JSON.parse(nobody.out).kind]).toEqual([4, "nobody"])
  const secure = await belfry(["whoami", "--url", api.url.replace("http:", "https:")], { env: {} })
  expect([secure.exit, secure.err]).toEqual([69, expect.stringContaining("speaks http, not https")])
})

test("an address with the wrong scheme, and one that refers elsewhere, names the right one", async () => {
  using api = new FakeApi()
  const secure = api.url.replace("http:", "https:")
  const wrong = await read(["emails", "list", "--url", secure], at(api))
  expect(wrong).toContain(`The server at ${secure} speaks http, not https. (unreachable)`)
  expect(wrong).toContain(`→ its address is ${api.url}`)
  const headers = { location: "https://mail.example.test/v1/emails" }
  api.answer("GET /v1/emails", { status: 301, headers })
  const moved = await read(["emails", "list"], at(api))
  expect(moved).toContain("→ give its address, https://mail.example.test")
})

test("what is not there is named, by its argument or its flag", async () => {
  using api = new FakeApi()
  api.error(`GET /v1/emails/${ID}`, 404, "not_found")
  expect(await read(["emails", "get", ID], at(api))).toContain(`This is not_found: ${ID}.`)
  api.error("POST /v1/emails", 404, "template_not_found")
  const send = ["emails", "send", "--to", "a@b.test", "--template", "welcom"]
  const missing = await read(send, at(api))
  expect(missing).toContain("This is template_not_found: --template welcom.")
  expect(missing).toContain("→ see `belfry templates list`")
})

test.each([[["-o", "table"]], [["--output=table"]], [["-otable"]]])(
  "with %j errors are text in a pipe too, also those of a line that cannot be read",
  async (form) => {
    const { err } = await belfry(["emails", "lst", ...form])
    expect(err).toBe("✗ unknown command 'lst' (Did you mean list?) (usage)\n  → see --help\n")
  },
)

test.each([
  ["emials", "emails"],
  ["lisn", "listen"],
  ["tial", undefined],
  ["mailbix2", "mailbox"],
  ["mlbx", undefined],
])("%s suggests %s: no more than two typing errors away", async (typed, suggested) => {
  const { err } = await belfry([typed])
  const end = suggested ? ` (Did you mean ${suggested}?)` : ""
  expect(JSON.parse(err).error.message).toBe(`unknown command '${typed}'${end}`)
})
