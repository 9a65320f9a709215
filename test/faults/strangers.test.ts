import { Database } from "bun:sqlite"
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { receiver } from "../fakes/receiver"
import { filesIn } from "../harness/at-rest"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { lean } from "../scenarios/serve"

let server: Belfry
beforeAll(async () => {
  server = await startBelfry({ env: lean })
})
afterAll(() => server[Symbol.asyncDispose]())

interface Answer {
  status: number
  text: string
  /** Whatever stands there: it is what these tests ask. */
  body: ReturnType<typeof JSON.parse>
}

/** One request; a text goes as it is, so that a number can be written as only JSON writes it. */
async function ask(
  on: Belfry,
  method: string,
  path: string,
  { body, key }: { body?: unknown; key?: string | undefined } = {},
): Promise<Answer> {
  const payload = typeof body === "string" ? body : JSON.stringify(body)
  const answer = await on.request(path, {
    method,
    ...(payload !== undefined && { body: payload }),
    ...(key !== undefined && { headers: { authorization: `Bearer ${key}` } }),
  })
  const text = await answer.text()
  return { status: answer.status, text, body: text.startsWith("{") ? JSON.parse(text) : null }
}

const codeOf = ({ status, body }: Answer) => [status, body?.error?.code]
const REFUSED = [422, "validation_error"]

const mail = { from: "me@mailbox.test", to: "ann@mailbox.test", subject: "Hi", text: "hello" }

async function makeKey(scopes: string[], more: object = {}) {
  const wanted = { name: "made", scopes, ...more }
  const made = await ask(server, "POST", "/v1/api-keys", { body: wanted })
  expect(made.status).toBe(201)
  return made.body.data as { id: string; key: string }
}

/** Every file of the home that holds the text, wherever it stands in it. */
const filesWith = (home: string, text: string) =>
  filesIn(home).filter((path) => readFileSync(path).includes(text))

describe("a key that may write keys", () => {
  test("lifts neither the allowlist nor the end of a broader one, and makes no use of it", async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const bound = { ip_addresses: ["192.0.2.1"], expires_at }
    const broad = await makeKey(["email:send", "email:read"], bound)
    const narrow = await makeKey(["api_keys:write", "api_keys:read", "email:read"])
    const one = `/v1/api-keys/${broad.id}`
    const before = (await ask(server, "GET", one)).body.data
    const tries: [string, string, object | undefined][] = [
      ["PATCH", one, { expires_at: null }],
      ["PATCH", one, { name: "mine" }],
      ["PATCH", one, { scopes: ["email:read"] }],
      ["PUT", `${one}/ip-whitelist`, { ip_addresses: [] }],
      ["POST", `${one}/rotate`, {}],
      ["DELETE", one, undefined],
    ]
    for (const [method, path, body] of tries) {
      const refused = await ask(server, method, path, { body, key: narrow.key })
      expect([method, path, ...codeOf(refused)]).toEqual([method, path, 403, "forbidden"])
      expect(refused.text).not.toContain("svc_live_")
    }
    expect((await ask(server, "GET", one)).body.data).toEqual(before)
    const own = await ask(server, "DELETE", `/v1/api-keys/${narrow.id}`, { key: narrow.key })
    expect(own.body.data.status).toBe("revoked")
  })
})

test("the token of a callback is judged first, and stands neither in answers nor on disk", async () => {
  const home = makeHome()
  const tokens = ["c".repeat(43), "d".repeat(43), "short-but-secret-token"]
  try {
    {
      await using own = await startBelfry({ home, env: lean })
      for (const token of tokens) {
        const path = `/v1/callbacks/email/ses/${token}`
        const answers = [
          await ask(own, "POST", path, { body: {} }),
          await ask(own, "POST", path, { body: "no JSON" }),
          await ask(own, "GET", path),
          await ask(own, "POST", `${path}/x`, { body: {} }),
        ]
        expect(answers.map(({ status }) => status)).toEqual([401, 401, 404, 404])
        for (const { text } of answers) expect(text).not.toContain(token)
      }
      expect(await own.stop()).toBe(0)
      for (const token of tokens) expect(own.stderr.all.join("\n")).not.toContain(token)
    }
    const database = new Database(join(home, "belfry/belfry.db"), { readonly: true })
    const rows = database.query("SELECT path FROM request_log WHERE path LIKE '/v1/callbacks/%'")
    const paths = (rows.all() as { path: string }[]).map(({ path }) => path)
    database.close()
    expect(paths).toHaveLength(2 * tokens.length)
    expect(new Set(paths)).toEqual(new Set(["/v1/callbacks/email/ses/{config_token}"]))
    for (const token of tokens) expect(filesWith(home, token)).toEqual([])
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

describe("the value of a webhook's header", () => {
  test("stands in no answer, no log line and no file, and the receiver gets it", async () => {
    const home = makeHome()
    const value = "Bearer kept-from-strangers-7001"
    using echo = receiver(({ headers }) => new Response(JSON.stringify(headers)))
    try {
      await using own = await startBelfry({ home, env: lean })
      const hook = { url: echo.url, events: ["*"], headers: { "X-Secret": value } }
      const made = await ask(own, "POST", "/v1/webhooks", { body: hook })
      const one = `/v1/webhooks/${made.body.data.id}`
      const tested = await ask(own, "POST", `${one}/test`, { body: {} })
      expect(echo.received[0]?.headers["x-secret"]).toBe(value)
      const delivery = `${one}/deliveries/${tested.body.data.delivery_id}`
      const kept = { headers: { "X-Secret": "****" } }
      const answers = [
        made,
        tested,
        await ask(own, "GET", delivery),
        await ask(own, "PATCH", one, { body: kept }),
        await ask(own, "GET", one),
        await ask(own, "GET", "/v1/webhooks"),
        await ask(own, "GET", "/v1/request-log"),
      ]
      for (const { text } of answers) expect(text).not.toContain("strangers-7001")
      expect(answers[4]?.body.data.headers).toEqual({ "X-Secret": "****" })
      await ask(own, "POST", `${one}/test`, { body: {} })
      expect(echo.received.at(-1)?.headers["x-secret"]).toBe(value)
      const unknown = await ask(own, "PATCH", one, { body: { headers: { "X-Other": "****" } } })
      expect(codeOf(unknown)).toEqual(REFUSED)
      expect(filesWith(home, "strangers-7001")).toEqual([]) // beside the running server, too
      expect(await own.stop()).toBe(0)
      expect(own.stderr.all.join("\n")).not.toContain("strangers-7001")
      expect(filesWith(home, "strangers-7001")).toEqual([])
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})

test.each([
  "DomainKey-Signature",
  "Resent-From",
  "Resent-Message-ID",
  "Authentication-Results",
  "Received-SPF",
  "ARC-Seal",
  "X-SES-CONFIGURATION-SET",
  "Delivered-To",
  "Errors-To",
  "Received",
  "Return-Path",
])("a mail sets no header %s, whichever way it comes", async (name) => {
  for (const spelt of [name, name.toLowerCase(), name.toUpperCase()]) {
    const body = { ...mail, headers: { [spelt]: "forged" } }
    const single = await ask(server, "POST", "/v1/emails", { body })
    expect(codeOf(single)).toEqual(REFUSED)
    const batch = await ask(server, "POST", "/v1/emails/batch", { body: { messages: [body] } })
    expect(batch.body.data).toMatchObject({ succeeded: 0, failed: 1 })
  }
})

describe("a cursor", () => {
  test("opens no other list, and not even the list of another server", async () => {
    await using other = await startBelfry({ env: lean })
    for (const on of [server, other]) {
      for (let n = 0; n < 3; n++) await ask(on, "POST", "/v1/emails", { body: mail })
      for (const scopes of [["email:read"], ["email:send"]]) {
        await ask(on, "POST", "/v1/api-keys", { body: { name: "listed", scopes } })
      }
    }
    const cursorOf = async (on: Belfry, list: string): Promise<string> =>
      (await ask(on, "GET", `/v1/${list}?per_page=1`)).body.meta.next_cursor
    const own = await cursorOf(server, "emails")
    expect((await ask(server, "GET", `/v1/emails?cursor=${own}`)).status).toBe(200)
    const [half = ""] = own.split(".")
    const foreign = [await cursorOf(server, "api-keys"), await cursorOf(other, "emails")]
    for (const cursor of [...foreign, half, `${half}.`, "x", "' OR 1=1 --"]) {
      const path = `/v1/emails?cursor=${encodeURIComponent(cursor)}`
      const refused = await ask(server, "GET", path)
      expect([cursor, ...codeOf(refused)]).toEqual([cursor, ...REFUSED])
    }
    for (const list of ["webhooks", "api-keys", "domains", "providers", "mailbox", "request-log"]) {
      const refused = await ask(server, "GET", `/v1/${list}?cursor=${own}`)
      expect([list, ...codeOf(refused)]).toEqual([list, ...REFUSED])
    }
  })
})

describe("a number in metadata", () => {
  const withMetadata = (number: string) =>
    JSON.stringify({ ...mail, metadata: { n: "HERE" } }).replace('"HERE"', number)

  test.each(["9007199254740993", "-9007199254740993", "1e16", "1e999", "-1e999", "[[1e400]]"])(
    "that JSON cannot carry exactly is refused: %s",
    async (number) => {
      const single = await ask(server, "POST", "/v1/emails", { body: withMetadata(number) })
      expect(codeOf(single)).toEqual(REFUSED)
      const body = `{"messages":[${withMetadata(number)}]}`
      const batch = await ask(server, "POST", "/v1/emails/batch", { body })
      expect(batch.body.data).toMatchObject({ succeeded: 0, failed: 1 })
    },
  )

  test.each(["9007199254740992", "-9007199254740992", "0.1", '"9007199254740993"'])(
    "is kept as it is: %s",
    async (number) => {
      const sent = await ask(server, "POST", "/v1/emails", { body: withMetadata(number) })
      expect(sent.status).toBe(201)
      const { body } = await ask(server, "GET", `/v1/emails/${sent.body.id}`)
      expect(body.data.metadata).toEqual({ n: JSON.parse(number) })
    },
  )
})
