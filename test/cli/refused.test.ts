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
])("a refusal %d %s of webhooks says what to do", (status, code, details, step) => {
  expect(nextStep(new Failure(exitOfStatus(status), code, "No.", { details }))).toBe(step)
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
