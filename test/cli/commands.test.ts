import { expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome, onTerminal } from "./belfry"
import { email, FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })

test("every option of emails send arrives in the request", async () => {
  using api = new FakeApi()
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  const file = join(freshHome(), "a b.txt")
  writeFileSync(file, "attached")
  const words = ["emails", "send", "--to", "Ann <ann@mailbox.test>", "--from", "me@mailbox.test"]
  words.push("--cc", "c@mailbox.test", "--bcc", "d@mailbox.test", "--subject", "Hi")
  words.push(
    "--text-file",
    "-",
    "--html",
    "<p>hi</p>",
    "--attach",
    file,
    "--tag",
    "a",
    "--tag",
    "b",
  )
  words.push("--reply-to", "r@mailbox.test", "--metadata", "k=v=w", "--metadata", '{"n":1}')
  words.push("--header", "X-Ref: a: b", "--category", "news", "--idempotency-key", "k1")
  const { exit, out } = await belfry(words, { env: at(api), stdin: "hello\n" })
  expect([exit, JSON.parse(out)]).toEqual([0, { id: ID, status: "queued" }])

  const [sent] = api.seen
  expect(sent?.headers).toMatchObject({ "idempotency-key": "k1", "x-api-key": KEY })
  expect(sent?.body).toEqual({
    to: "Ann <ann@mailbox.test>",
    from: "me@mailbox.test",
    cc: ["c@mailbox.test"],
    bcc: ["d@mailbox.test"],
    subject: "Hi",
    text: "hello\n",
    html: "<p>hi</p>",
    reply_to: "r@mailbox.test",
    tags: ["a", "b"],
    category: "news",
    metadata: { k: "v=w", n: 1 },
    headers: { "X-Ref": "a: b" },
    attachments: [{ filename: "a b.txt", content: "YXR0YWNoZWQ=", content_type: "text/plain" }],
  })
})

test("emails preflight shows each check with its warnings, and ends with 1 for what would be refused", async () => {
  using api = new FakeApi()
  const message = "An image has no alternative text."
  const detail = `${message} 1 more are in the warnings.`
  const found = {
    ok: false,
    errors: [{ code: "suppressed_recipient", message: "ann is suppressed", details: {} }],
    warnings: [
      { code: "accessibility", message },
      { code: "accessibility", message: "A link has no text." },
    ],
    rendered: { subject: "s", html: null, text: "t", size_bytes: 1840 },
    checks: [
      { name: "sender", outcome: "pass", detail: "The mail has a sender." },
      { name: "suppression", outcome: "fail", detail: "ann is suppressed" },
      { name: "accessibility", outcome: "warn", detail },
    ],
  }
  api.data("POST /v1/emails/preflight", found)
  const words = ["emails", "preflight", "--to", "ann@mailbox.test", "--text", "t"]
  const piped = await belfry(words, { env: at(api) })
  expect([piped.exit, JSON.parse(piped.out)]).toEqual([1, found])
  const shown = Bun.stripANSI((await onTerminal(words, { env: at(api) })).out)
  expect(shown).toContain(`! accessibility  ${detail}`)
  expect(shown).toContain("                 A link has no text.")
  expect(shown).toContain("✗ would be refused")
})

test("emails explain shows the summary and the stages that had something to do", async () => {
  using api = new FakeApi()
  const at = "2026-11-22T10:00:00.000Z"
  const step = (stage: string, outcome: string, detail: string) => ({
    ...{ at, stage, rule: "x", outcome, detail },
  })
  api.data(`GET /v1/emails/${ID}/explain`, {
    email_id: ID,
    verdict: "queued",
    summary: "The email waits.",
    steps: [
      step("auth", "pass", "It came over api."),
      step("template", "none", "No template."),
      step("queue", "wait", "It waits for its turn."),
    ],
  })
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const shown = Bun.stripANSI((await onTerminal(["emails", "explain", ID], { env })).out)
  expect(shown).toContain("The email waits.")
  expect(shown).toMatch(/✓ \d\d:00:00\.000 {2}auth {3}It came over api\./)
  expect(shown).toMatch(/… \d\d:00:00\.000 {2}queue {2}It waits for its turn\./)
  expect(shown).not.toContain("template")
})

test("--dry-run shows the request without its key, and sends nothing", async () => {
  using api = new FakeApi()
  const words = ["emails", "send", "--to", "a@mailbox.test", "--text", "x", "--dry-run"]
  const { exit, out } = await belfry(words, { env: at(api) })
  const shown = { method: "POST", url: `${api.url}/v1/emails`, body: { to: "a@mailbox.test" } }
  expect([exit, JSON.parse(out)]).toEqual([0, expect.objectContaining({ method: "POST" })])
  expect(JSON.parse(out)).toMatchObject(shown)
  expect(out).not.toContain(KEY)
  expect(api.seen).toEqual([])
})

test("a value that looks like a flag stays a value: it cannot send the key elsewhere", async () => {
  using api = new FakeApi()
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  const words = ["emails", "send", "--to", "a@mailbox.test", "--subject", "--url=http://evil.test"]
  const { exit } = await belfry([...words, "--text", "--json"], { env: at(api) })
  expect(exit).toBe(0)
  const body = { to: "a@mailbox.test", subject: "--url=http://evil.test", text: "--json" }
  expect(api.seen[0]?.body).toEqual(body)
})

test("emails send --wait follows the email and ends with 1 when it bounced", async () => {
  using api = new FakeApi()
  api.data("POST /v1/emails", { id: ID, status: "queued" })
  const statuses = ["queued", "sending", "bounced"]
  api.answer(`GET /v1/emails/${ID}`, () => ({
    body: { data: email({ status: statuses.shift() }), meta: {} },
  }))
  const words = ["emails", "send", "--to", "a@mailbox.test", "--text", "x", "--wait"]
  const { exit, out } = await belfry(words, { env: at(api) })
  expect([exit, JSON.parse(out).status]).toEqual([1, "bounced"])
})

test.each([
  ["a JSON array", '[{"to":"a@b.c"},{"to":"d@e.f"}]'],
  ["an object", '{"messages":[{"to":"a@b.c"},{"to":"d@e.f"}]}'],
  ["a line each", '{"to":"a@b.c"}\n{"to":"d@e.f"}\n'],
])("emails batch reads %s from stdin, and is 8 when one was refused", async (_, stdin) => {
  using api = new FakeApi()
  const error = { code: "invalid_email", message: "no", details: {} }
  const results = [
    { index: 0, id: ID, status: "queued" },
    { index: 1, error },
  ]
  api.data("POST /v1/emails/batch", { id: "b", total: 2, succeeded: 1, failed: 1, results })
  const { exit, out } = await belfry(["emails", "batch", "-"], { env: at(api), stdin })
  expect(exit).toBe(8)
  expect(JSON.parse(out).results).toEqual(results)
  expect(api.seen[0]?.body).toEqual({ messages: [{ to: "a@b.c" }, { to: "d@e.f" }] })
})

test("a line of a batch that is not JSON is named, and nothing is sent", async () => {
  using api = new FakeApi()
  const stdin = '{"to":"a@b.c"}\n{"to"\n'
  const { exit, err } = await belfry(["emails", "batch", "-"], { env: at(api), stdin })
  expect([exit, JSON.parse(err).error.message]).toEqual([7, "-: line 2 is not JSON."])
  expect(api.seen).toEqual([])
})

test("lists follow the cursor until --limit is reached", async () => {
  using api = new FakeApi()
  api.answer("GET /v1/emails", ({ query }) => {
    const data = Array.from({ length: Number(query.per_page) }, () => email())
    return { body: { data, meta: { next_cursor: "c", has_more: true } } }
  })
  const words = ["emails", "list", "--limit", "150", "--status", "sent", "--since", "1h"]
  const { out } = await belfry(words, { env: at(api) })
  expect(JSON.parse(out)).toHaveLength(150)
  expect(api.seen.map(({ query }) => [query.per_page, query.cursor])).toEqual([
    ["100", undefined],
    ["50", "c"],
  ])
  expect(api.seen[0]?.query.created_after).toMatch(/^\d{4}-.*Z$/)
})

test("mailbox wait prints the mail when it comes", async () => {
  using api = new FakeApi()
  const mail = { id: ID, from: "me@b.c", to: "ann@b.c", subject: "Your receipt", text: "42" }
  api.answer("GET /v1/mailbox", () => ({
    body: { data: api.seen.length < 3 ? [] : [{ ...mail, subject: "other", id: "x" }, mail] },
  }))
  api.data(`GET /v1/mailbox/${ID}`, { ...mail, html: null, attachments: [] })
  const words = ["mailbox", "wait", "--to", "ann@b.c", "--subject", "receipt", "--timeout", "30s"]
  const { exit, out } = await belfry(words, { env: at(api) })
  expect([exit, JSON.parse(out).text]).toEqual([0, "42"])
  expect(api.seen[0]?.query.to).toBe("ann@b.c")
})

test("mailbox wait says what did not come, and ends with 1", async () => {
  using api = new FakeApi()
  api.data("GET /v1/mailbox", [])
  const words = ["mailbox", "wait", "--to", "ann@b.c", "--timeout", "2s"]
  const { exit, err } = await belfry(words, { env: at(api) })
  expect([exit, JSON.parse(err).error.message]).toEqual([1, "No mail to ann@b.c came within 2 s."])
})

test("what destroys needs --yes off a terminal, and a typed word on one", async () => {
  using api = new FakeApi()
  api.data(`DELETE /v1/api-keys/${ID}`, { id: ID, name: "ci", status: "revoked", deleted: true })
  api.data("DELETE /v1/mailbox", { deleted: 3 })
  const env = at(api)
  const revoke = ["keys", "revoke", ID]
  expect((await belfry(revoke, { env })).exit).toBe(2)
  expect((await belfry(["mailbox", "clear"], { env })).exit).toBe(2)
  expect((await onTerminal(revoke, { env, until: "go on:", type: "no\r" })).exit).toBe(2)
  expect(api.seen).toEqual([])

  expect((await belfry([...revoke, "--yes"], { env })).exit).toBe(0)
  expect((await onTerminal(revoke, { env, until: "go on:", type: "revoke\r" })).exit).toBe(0)
  expect((await belfry(["mailbox", "clear", "--to", "a@b.c", "--yes"], { env })).exit).toBe(0)
  expect(api.seen.map(({ method }) => method)).toEqual(["DELETE", "DELETE", "DELETE"])
  expect(api.seen.at(-1)?.query).toEqual({ to: "a@b.c" })
})

test("emails tail of one email prints each event once, and ends when it is settled", async () => {
  using api = new FakeApi()
  const event = (id: string) => ({ id, type: `email.${id}`, timestamp: "2026-11-21T10:00:00.000Z" })
  api.answer(`GET /v1/emails/${ID}/events`, () => {
    const over = api.seen.length > 1
    const events = over ? [event("queued"), event("delivered")] : [event("queued")]
    return { body: { data: { email_id: ID, status: over ? "delivered" : "queued", events } } }
  })
  const { exit, out } = await belfry(["emails", "tail", ID], { env: at(api) })
  const types = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).type)
  expect([exit, types]).toEqual([0, ["email.queued", "email.delivered"]])
})

test("emails tail begins behind the last email, leaves out the past, and keeps the cursor", async () => {
  using api = new FakeApi()
  const time = "2026-11-21T10:00:00.000Z"
  const event = (id: string, created_at: string) => ({
    id,
    type: "email.sent",
    created_at,
    data: {},
  })
  api.data("GET /v1/health", { status: "ok", time })
  api.data("GET /v1/emails", [email()])
  api.data(`GET /v1/emails/${ID}/events`, { status: "sent", events: [{ id: "evt_1" }] })
  const feed = [event("evt_2", "2026-11-21T09:59:59.999Z"), event("evt_3", time)]
  api.answer("GET /v1/events", ({ query }) => ({
    body: { data: query.after === "evt_1" ? feed : [], meta: { next_after: "evt_3" } },
  }))
  const { exit, out } = await belfry(["emails", "tail", "--timeout", "500ms"], { env: at(api) })
  expect([exit, JSON.parse(out)]).toEqual([0, feed[1]])
  const asked = api.seen.filter(({ path }) => path === "/v1/events").map(({ query }) => query)
  expect(asked[0]).toMatchObject({ types: "email.*", wait: "1", after: "evt_1" })
  expect(asked[1]?.after).toBe("evt_3")
})

test("status tells a server that lives but is not ready with 75", async () => {
  using api = new FakeApi()
  api.answer("GET /healthz", { body: { status: "ok", version: "0.1.0", uptime_seconds: 3 } })
  api.answer("GET /readyz", { status: 503, body: { status: "error", checks: { disk: "low" } } })
  const { exit, out } = await belfry(["status"], { env: at(api) })
  expect(exit).toBe(75)
  expect(JSON.parse(out)).toMatchObject({ live: true, ready: false, checks: { disk: "low" } })
})

test("raw mail goes through a pipe byte for byte", async () => {
  using api = new FakeApi()
  api.answer(`GET /v1/emails/${ID}/raw`, { body: "Subject: \u001b[31mx\r\n\r\nhi\r\n" })
  const { out } = await belfry(["emails", "raw", ID], { env: at(api) })
  expect(out).toBe("Subject: \u001b[31mx\r\n\r\nhi\r\n")
})
