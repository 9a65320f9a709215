import { describe, expect, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome, onTerminal } from "./belfry"
import { FakeApi, ID, KEY, received } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY, HOME: freshHome() })

/** What a terminal of 120 columns shows, without its end-of-line codes. */
async function screen(api: FakeApi, ...words: string[]) {
  const { exit, out } = await onTerminal(["inbound", ...words, "--no-color"], {
    env: { ...at(api), COLUMNS: "120" },
  })
  expect(exit).toBe(0)
  return out.replaceAll("\r", "")
}

const LIST = "GET /v1/inbound-emails"
const WAIT = "GET /v1/inbound-emails/wait"

describe("the list of received mail", () => {
  test("shows sender, kind and whether SPF and DMARC agree", async () => {
    using api = new FakeApi()
    api.data(LIST, [received(), received({ verified: true, from: null, kind: "bounce" })])
    const out = await screen(api, "list", "--to", "support@in.acme.test", "--since", "1d")
    expect(out).toMatch(/ID +FROM +TO +SUBJECT +KIND +VERIFIED/)
    expect(out).toMatch(/Ann <ann@elsewhere.*new +dmarc ✗/)
    expect(out).toMatch(/bounce +yes/)
    expect(api.seen[0]?.query).toMatchObject({ to: "support@in.acme.test" })
  })

  test("of DMARC reports shows what they say", async () => {
    using api = new FakeApi()
    const report = {
      org_name: "google.com",
      domain: "acme.test",
      policy: { p: "reject" },
      messages: 1000,
      aligned: 999,
      begin: "2026-11-20T00:00:00.000Z",
      end: "2026-11-21T00:00:00.000Z",
      records: [],
    }
    api.data(LIST, [received({ kind: "dmarc_report", report })])
    const out = await screen(api, "list", "--kind", "dmarc_report")
    expect(out).toMatch(/REPORTER +DOMAIN +POLICY +MAILS +ALIGNED/)
    expect(out).toMatch(/google\.com +acme\.test +reject +1000 +99 %/)
    expect(api.seen[0]?.query).toMatchObject({ kind: "dmarc_report" })
  })

  test("of TLS reports, bounces and complaints does the same", async () => {
    using api = new FakeApi()
    const failures = [
      { result_type: "certificate-expired" },
      { result_type: "starttls-not-supported" },
    ]
    const policies = [{ policy_domain: "acme.test", failures }]
    const tls = { organization_name: "Acme", policies, successful_sessions: 5, failed_sessions: 2 }
    api.data(LIST, [received({ kind: "tls_report", report: tls })])
    expect(await screen(api, "list", "--kind", "tls_report")).toMatch(
      /Acme +acme\.test +5 +2 +certificate-expired, starttls/,
    )
    const diagnostic = "550 5.1.1 No such user"
    const recipients = [{ email: "x@b.test", action: "failed", status: "5.1.1", diagnostic }]
    const dsn = { recipients, reporting_mta: "mx.b.test" }
    api.data(LIST, [received({ kind: "bounce", report: dsn })])
    expect(await screen(api, "list", "--kind", "bounce")).toMatch(
      /x@b\.test +failed +5\.1\.1 +550 5\.1\.1 No such user/,
    )
    const arf = {
      feedback_type: "abuse",
      original_recipients: ["x@b.test"],
      source_ip: "192.0.2.1",
    }
    api.data(LIST, [received({ kind: "complaint", report: arf })])
    expect(await screen(api, "list", "--kind", "complaint")).toMatch(/x@b\.test +abuse/)
  })

  test("shows a report that says nothing, and hostile words, without harm", async () => {
    using api = new FakeApi()
    for (const kind of ["dmarc_report", "tls_report", "bounce", "complaint"]) {
      api.data(LIST, [received({ kind, report: null }), received({ kind, report: {} })])
      await screen(api, "list", "--kind", kind)
    }
    const recipients = [{ email: "\u001b[2Jx\r\ny", diagnostic: "\u001b]0;title\u0007" }]
    api.data(LIST, [received({ kind: "bounce", report: { recipients } })])
    const out = await screen(api, "list", "--kind", "bounce")
    expect(out).not.toContain("\u001b]0;title")
    expect(out).not.toContain("\u001b[2J")
  })
})

test("one mail shows its verdicts, the reasons of its spam score and its text", async () => {
  using api = new FakeApi()
  const attachments = [{ id: "0", filename: "a\u001b[2J.pdf" }]
  api.data(`GET /v1/inbound-emails/${ID}`, received({ attachments }))
  const out = await screen(api, "get", ID)
  expect(out).toContain("spf pass  dkim pass  dmarc fail  arc none")
  expect(out).toContain("1.5 (dmarc_fail 1.5)")
  expect(out).toContain("0 a.pdf")
  expect(out).toContain("Where is my order?")
  expect(out).toContain(`→ belfry inbound attachments ${ID}`)
})

describe("waiting for a mail", () => {
  test("with --extract prints the code alone, in a pipe and on a terminal", async () => {
    using api = new FakeApi()
    api.data(WAIT, received({ extracted: "493027" }))
    const words = ["inbound", "wait", "--to", "a@b.test", "--since", "1m", "--extract", "otp"]
    expect(await belfry(words, { env: at(api) })).toMatchObject({ exit: 0, out: "493027\n" })
    const shown = await onTerminal(words, { env: at(api) })
    expect(shown.out.trim()).toBe("493027")
    expect(api.seen[0]?.query).toMatchObject({ to: "a@b.test", extract: "otp", timeout: "25" })
  })

  test("prints the mail as JSON in a pipe, and where it is asked for", async () => {
    using api = new FakeApi()
    api.data(WAIT, received({ extracted: "493027" }))
    const words = ["inbound", "wait", "--to", "a@b.test"]
    const plain = await belfry(words, { env: at(api) })
    expect(JSON.parse(plain.out)).toMatchObject({ id: ID, text_body: "Where is my order?" })
    const extract = [...words, "--extract", "otp", "--json=id,extracted"]
    const chosen = await belfry(extract, { env: at(api) })
    expect(JSON.parse(chosen.out)).toEqual({ id: ID, extracted: "493027" })
  })

  test("asks again until the time is over, and ends with 1 and the reason", async () => {
    using api = new FakeApi()
    let asked = 0
    api.answer(WAIT, () => {
      asked += 1
      return { body: { data: null, meta: {} } }
    })
    const words = ["inbound", "wait", "--to", "a@b.test", "--timeout", "1s"]
    const { exit, err } = await belfry(words, { env: at(api) })
    expect([exit, JSON.parse(err).error.code]).toEqual([1, "timeout"])
    expect(asked).toBeGreaterThan(1)
    api.data(WAIT, received({ extracted: null }))
    const code = [...words, "--extract", "otp"]
    const without = await belfry(code, { env: at(api) })
    expect(without.exit).toBe(1)
    expect(JSON.parse(without.err).error).toMatchObject({
      message: "The newest mail to a@b.test has no code that could be found.",
      details: { inbound_id: ID },
    })
  })

  test.each([
    [["--extract", "password", "--to", "a@b.test"], 2],
    [[], 2],
    [["--to", "a@b.test", "--since", "soon"], 2],
  ])("with %p is refused before a request", async (words, exit) => {
    using api = new FakeApi()
    expect((await belfry(["inbound", "wait", ...words], { env: at(api) })).exit).toBe(exit)
    expect(api.seen).toEqual([])
  })
})

describe("answering", () => {
  const REPLY = `POST /v1/inbound-emails/${ID}/reply`

  test("sends text from stdin with a file", async () => {
    using api = new FakeApi()
    api.data(REPLY, { id: ID, status: "queued" })
    const file = join(freshHome(), "a.txt")
    writeFileSync(file, "attached")
    const words = ["inbound", "reply", ID, "--text", "-", "--attach", file, "--subject", "Hi"]
    const { exit, out } = await belfry(words, { env: at(api), stdin: "hello\n" })
    expect([exit, JSON.parse(out)]).toEqual([0, { id: ID, status: "queued" }])
    expect(api.seen[0]?.body).toEqual({
      text: "hello\n",
      subject: "Hi",
      attachments: [{ filename: "a.txt", content: "YXR0YWNoZWQ=", content_type: "text/plain" }],
    })
  })

  test("without a text is refused, and a mail that must not be answered ends with 5", async () => {
    using api = new FakeApi()
    const none = await belfry(["inbound", "reply", ID], { env: at(api) })
    expect([none.exit, api.seen]).toEqual([2, []])
    api.error(REPLY, 409, "conflict", { reason: "auto_submitted", id: ID })
    const words = ["inbound", "reply", ID, "--text", "hello"]
    expect((await belfry(words, { env: at(api) })).exit).toBe(5)
  })
})

describe("attachments", () => {
  const FILE = { id: "0", filename: "a.pdf", content_type: "application/pdf", size: 5 }
  const link = { ...FILE, url: "https://elsewhere.test/v1/files/v1.x.y", expires_at: "" }

  test("are saved from this server, whatever host their address names", async () => {
    using api = new FakeApi()
    api.data(`GET /v1/inbound-emails/${ID}/attachments/0`, link)
    api.answer("GET /v1/files/v1.x.y", { body: "bytes" })
    const path = join(freshHome(), "saved.pdf")
    const words = ["inbound", "attachments", ID, "0", "--save-as", path]
    const { exit, out } = await belfry(words, { env: at(api) })
    expect([exit, JSON.parse(out)]).toEqual([0, { id: "0", path, size: 5 }])
    expect(readFileSync(path, "utf8")).toBe("bytes")
    const shown = await belfry(words.slice(0, 4), { env: at(api) })
    expect(JSON.parse(shown.out).url).toBe(link.url)
  })

  test("of a mail are listed", async () => {
    using api = new FakeApi()
    api.data(`GET /v1/inbound-emails/${ID}`, received({ attachments: [FILE] }))
    expect(await screen(api, "attachments", ID)).toMatch(/0 +a\.pdf +application\/pdf +5/)
    const alone = await belfry(["inbound", "attachments", ID, "--save-as", "x"], { env: at(api) })
    expect(alone.exit).toBe(2)
  })
})

test("a route is made and changed by the flag of its action", async () => {
  using api = new FakeApi()
  const route = { id: ID, match: { to: "*@b.test" }, action: "drop", target: null, priority: 5 }
  api.data("POST /v1/inbound-routes", route)
  api.data(`PATCH /v1/inbound-routes/${ID}`, route)
  const create = ["inbound", "routes", "create", "*@b.test"]
  const update = ["inbound", "routes", "update", ID]
  const env = at(api)
  await belfry([...create, "--forward", "kim@b.test", "--priority", "5"], { env })
  await belfry([...create, "--webhook", "all"], { env })
  await belfry([...create, "--webhook", ID], { env })
  await belfry([...update, "--drop"], { env })
  await belfry([...update, "--match", "a@b.test"], { env })
  const match = { to: "*@b.test" }
  expect(api.seen.map(({ body }) => body)).toEqual([
    { match, action: "forward", target: "kim@b.test", priority: 5 },
    { match, action: "webhook", target: null },
    { match, action: "webhook", target: ID },
    { action: "drop", target: null },
    { match: { to: "a@b.test" } },
  ])
  for (const words of [create, [...create, "--drop", "--webhook", "all"], update]) {
    expect((await belfry(words, { env })).exit).toBe(2)
  }
  expect(api.seen).toHaveLength(5)
})
