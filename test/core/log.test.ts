import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { log, maskAlso, recentLines } from "../../src/core/log"
import { looksOf } from "../../src/http/target"

const last = () => recentLines().at(-1) ?? ""

describe("log", () => {
  test("keeps the last 200 entries for a crash report, also those that are not printed", () => {
    for (let number = 0; number < 250; number++) log.debug(`entry ${number}`)
    expect(recentLines()).toHaveLength(200)
    expect(JSON.parse(last())).toMatchObject({ level: "debug", message: "entry 249" })
    expect(recentLines()[0]).toContain("entry 50")
  })

  test.each([
    ["an API key", { note: "key svc_live_abcDEF123_secret-part used" }, "secret-part"],
    ["an application secret", { note: "svca_sec_abcdef" }, "abcdef"],
    ["a webhook secret", { note: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }, "MfKQ9r8"],
    ["a bearer token", { header: "Bearer eyJhbGciOi.x.y" }, "eyJhbGciOi"],
    ["a password in a URL", { url: "postgres://ann:hunter2@db:5432/x" }, "hunter2"],
    ["a field called password", { smtp: { password: "hunter2" } }, "hunter2"],
    ["a field called api_key", { api_key: "plain-looking" }, "plain-looking"],
    ["a header called Authorization", { headers: { Authorization: "opaque1" } }, "opaque1"],
    ["an error's message", { error: new Error("auth svc_live_zzzzzz failed") }, "zzzzzz"],
    ["an error's cause", { error: new Error("x", { cause: { secret: "deep1" } }) }, "deep1"],
    ["the bytes of a key", { private_key: Buffer.from("k") }, "107"],
  ])("masks %s", (_, fields, secret) => {
    log.debug("something", fields)
    expect(last()).toContain("********")
    expect(last()).not.toContain(secret)
  })

  test("masks what routes declare to be credentials, in every text", () => {
    for (const look of looksOf({ path: "/v1/x/{name}/{key}", credentials: ["key", "code"] })) {
      maskAlso(look)
    }
    const url = "https://a.test/v1/x/ses/hidden1?code=hidden2&y=1"
    log.debug(`asked ${url}`, { url, error: new Error(`no answer from ${url}, sorry`) })
    expect(last()).not.toContain("hidden")
    expect(last()).toContain("https://a.test/v1/x/ses/********?code=********&y=1")
  })

  test("leaves the rows of a failed statement out, and whatever is longer than 2 kB", () => {
    const cause = Object.assign(new Error("no room"), { code: "53100", detail: "row (ann@)" })
    const message = "Failed query: INSERT INTO raws\nparams: [ann@example.test, body]"
    const fields = { query: "INSERT", params: ["ann@example.test"] }
    log.debug("it failed", { error: Object.assign(new Error(message, { cause }), fields) })
    expect(last()).toContain("INSERT INTO raws")
    expect(last()).toContain("53100")
    expect(last()).toContain("log.test.ts") // the stack is still there
    for (const leak of ["ann@", "params", "body"]) expect(last()).not.toContain(leak)

    log.debug("long", { text: "x".repeat(100_000), error: new Error("y".repeat(100_000)) })
    expect(last().length).toBeLessThan(10_000)
  })

  test("writes what JSON cannot hold, and what has no end", () => {
    const circle: Record<string, unknown> = { big: 10n, nothing: Number.NaN, when: () => 1 }
    circle.self = circle
    log.debug("odd", { circle, bytes: new Uint8Array(5) })
    expect(JSON.parse(last())).toMatchObject({ message: "odd", bytes: "5 bytes" })
  })

  test("off a terminal it is one JSON line an entry, from the level of the settings", () => {
    const config = join(import.meta.dir, "../../src/core/config")
    const source = join(import.meta.dir, "../../src/core/log")
    const code = `
      import { log } from ${JSON.stringify(source)}
      import { loadSettings, useSettings } from ${JSON.stringify(config)}
      log.info("before\\nthe settings")
      useSettings(loadSettings({ environment: { BELFRY_LOG_LEVEL: "warn" } }))
      log.info("not wanted")
      log.warn("wanted", { count: 3 })
      useSettings(loadSettings({ environment: { BELFRY_LOG_FORMAT: "text" } }))
      log.info("line\\u001b[31m\\n", { to: "a b" })`
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", code])
    const lines = stderr.toString().trimEnd().split("\n")
    expect(stdout.length).toBe(0)
    expect(lines).toHaveLength(3)
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ message: "before\nthe settings" })
    expect(JSON.parse(lines[1] ?? "")).toMatchObject({ level: "warn", count: 3 })
    expect(lines[2]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} info {2}line\\u001b\[31m\\n to="a b"$/)
  })
})
