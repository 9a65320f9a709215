import { expect, test } from "bun:test"
import { truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { exitOfStatus, Failure, nextStep } from "../../cli/lib/errors"
import { program } from "../harness/program"
import { environment, freshHome, onTerminal } from "./belfry"
import { FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })

test.each([["\u0004"], ["\r"]])(
  "%j at the question is a no, and nothing has happened",
  async (type) => {
    using api = new FakeApi()
    const words = ["mailbox", "clear", "--no-color"]
    const { exit, out } = await onTerminal(words, { env: at(api), until: "go on:", type })
    expect([exit, api.seen]).toEqual([2, []])
    expect(out).toContain("✗ Not confirmed: nothing was changed. (unconfirmed)")
  },
)

test("a key without scopes is not asked for; the help and the error list them", async () => {
  using api = new FakeApi()
  const words = ["keys", "create", "--name", "ci", "--no-color"]
  const { exit, out } = await onTerminal(words, { env: at(api) })
  expect([exit, api.seen]).toEqual([2, []])
  expect(out).toContain("✗ --scope is missing; the scopes are email:send, email:read, push:send")
  expect((await belfry(["keys", "create", "--help"])).out).toContain("Scopes: email:send")
})

test("a second value of an option that takes one is refused, not silently preferred", async () => {
  using api = new FakeApi()
  const words = ["emails", "send", "--to", "a@b.c", "--to", "d@e.f", "--text", "x"]
  const { exit, err } = await belfry(words, { env: at(api) })
  expect([exit, api.seen]).toEqual([2, []])
  expect(JSON.parse(err).error.message).toBe('--to is given twice: "a@b.c" and "d@e.f"')
})

test("what is larger than any server takes is not even read to its end", async () => {
  using api = new FakeApi()
  const file = join(freshHome(), "large")
  writeFileSync(file, "")
  truncateSync(file, 40 * 1024 * 1024)
  const send = ["emails", "send", "--to", "a@b.c", "--text-file"]
  const words = [...program, ...send]
  const child = Bun.spawn([...words, "-"], {
    env: environment(at(api)),
    stdin: Bun.file(file),
    stderr: "pipe",
  })
  expect(await child.exited).toBe(7)
  const { exit, err } = await belfry([...send, file], { env: at(api) })
  expect([exit, JSON.parse(err).error.code]).toEqual([7, "payload_too_large"])
  expect(api.seen).toEqual([])
})

test.each([
  [422, "validation_error", { fields: [{ code: "unknown_type" }] }, "see `belfry events types`"],
  [404, "webhook_not_found", {}, "see `belfry webhooks list`"],
  [409, "conflict", { reason: "not_active" }, "make it active with `belfry webhooks enable ID`"],
  [503, "service_unavailable", { reason: "gateway" }, "`belfry ai analyze` works without a model"],
])("a refusal %d %s says what to do", (status, code, details, step) => {
  expect(nextStep(new Failure(exitOfStatus(status), code, "No.", { details }))).toBe(step)
})

test.each([
  ["forbidden", "belfry setup"],
  ["feature_not_enabled", undefined],
])("on a server without an owner, %s has the next step %p", async (code, next) => {
  using api = new FakeApi()
  api.data("GET /v1/setup", { required: true }).error("GET /v1/ai/usage", 403, code)
  const { exit, err } = await belfry(["ai", "usage"], { env: at(api) })
  expect(exit).toBe(4)
  expect(JSON.parse(err).error.details.next?.split(" http", 1)[0]).toBe(next)
})

test.each([
  ["topic_key", ["topics", "members", ".."]],
  ["topic_key", ["topics", "leave", "..", "zoe"]],
  ["topic_key", ["topics", "rm", "."]],
  ["topic_key", ["topics", "cancel", "..", "1"]],
  ["subscriber_id", ["topics", "of", ".."]],
  ["subscriber_id", ["topics", "leave", "news", ".."]],
  ["subscriber_id", ["subscribers", "get", ".."]],
  ["external_id", ["subscribers", "get", "..", "--external"]],
  ["subscriber_id", ["subscribers", "rm", "ann", ".."]],
  ["subscriber_id", ["subscribers", "export", "."]],
])("a step of a path is no %s: nothing is asked or sent by %j", async (name, words) => {
  using api = new FakeApi()
  const { exit, err } = await belfry(words, { env: at(api) })
  expect([exit, api.seen]).toEqual([2, []])
  const step = words.find((word) => /^\.+$/.test(word))
  const text = `${name}: A URL cannot hold ${step} as a name, because it is a step of its path.`
  expect(JSON.parse(err).error.message).toBe(text)
})

test.each([
  ["--html", "receipt.html", "--html-file receipt.html"],
  ["--text", "./notes", "--text-file ./notes"],
  ["--text", "@notes", "--text-file notes"],
  ["--html", "@my file.html", "--html-file 'my file.html'"],
])(
  "%s %s is refused where such a file is, with the flag that reads it",
  async (flag, text, right) => {
    using api = new FakeApi()
    const cwd = freshHome()
    for (const name of ["receipt.html", "notes", "my file.html"])
      writeFileSync(join(cwd, name), "x")
    const send = (value: string) => [
      "emails",
      "send",
      "--to",
      "a@b.test",
      flag,
      value,
      "-o",
      "table",
    ]
    const { exit, err } = await belfry(send(text), { env: at(api), cwd })
    expect([exit, api.seen]).toEqual([2, []])
    expect(err).toContain(`→ read the file with ${right}\n`)
    api.data("POST /v1/emails", { id: "1", status: "queued" })
    for (const other of ["notes", "@nobody", "<b>a/b</b>", "see receipt.html"])
      expect((await belfry(send(other), { env: at(api), cwd })).exit).toBe(0)
  },
)

test("a template folder that is a file, or not there, is named as such", async () => {
  using api = new FakeApi()
  api.data("GET /v1/templates", [])
  const cwd = freshHome()
  writeFileSync(join(cwd, "file"), "x")
  const said = async (...words: string[]) => {
    const { exit, err } = await belfry(["templates", ...words], { env: at(api), cwd })
    return [exit, JSON.parse(err).error.message]
  }
  expect(await said("push", "nowhere")).toEqual([66, "the folder: There is no folder nowhere."])
  expect(await said("push", "file")).toEqual([66, "file is a file, not a folder."])
  expect(await said("pull", "file")).toEqual([66, "file is a file, not a folder."])
})

const ONE_WAY = "--choose email.categories.x=off".split(" ")
const OTHER_WAY = "--choose email.categories=on".split(" ")

test.each([
  [[...ONE_WAY, ...OTHER_WAY], "email.categories"],
  [[...OTHER_WAY, ...ONE_WAY], "email.categories.x"],
  [["--choose", "sms.enabled=on", "--choose", "sms.enabled=off"], "sms.enabled"],
])("choices that exclude each other are refused in either order: %j", async (words, name) => {
  using api = new FakeApi()
  const { exit, err } = await belfry(["subscribers", "preferences", "set", "u1", ...words], {
    env: at(api),
  })
  expect([exit, api.seen]).toEqual([2, []])
  expect(JSON.parse(err).error.message).toBe(`"${name}" is given in two ways`)
})
