import { expect, test } from "bun:test"
import { requestOf } from "../../src/client/client"
import { curlOf, quoted } from "../../src/console/curl"

const ORIGIN = "http://127.0.0.1:8080"

test("a request is a line of curl that names the key by a variable", () => {
  const request = requestOf("GET /v1/mailbox", { query: { search: "it's", cursor: undefined } })
  expect(curlOf(request, ORIGIN)).toBe(
    `curl -sS 'http://127.0.0.1:8080/v1/mailbox?search=it%27s' \\\n  -H "X-API-Key: $BELFRY_API_KEY"`,
  )
})

test("a mail is saved under a name of its own, and a file under the name that the server gives it", () => {
  const params = { mail_id: "1", attachment_id: "0" }
  const raw = requestOf("GET /v1/mailbox/{mail_id}/raw", { params })
  expect(curlOf(raw, ORIGIN)).toEndWith(" -o mail.eml")
  const file = requestOf("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", { params })
  expect(curlOf(file, ORIGIN)).toEndWith(" -OJ")
})

test("a shell gives back each text as it was", async () => {
  const texts = ["plain", "it's", "a b", "$HOME `id` \\", "two\nlines", '"quotes"', "مرحبا"]
  for (const text of texts) {
    const said = await Bun.$`sh -c ${`printf %s ${quoted(text)}`}`.text()
    expect(said).toBe(text)
  }
})

test("the command sends what the page sends", async () => {
  using server = Bun.serve({
    port: 0,
    fetch: async (request) =>
      Response.json({
        method: request.method,
        key: request.headers.get("x-api-key"),
        type: request.headers.get("content-type"),
        body: await request.json(),
      }),
  })
  const body = { to: "ann@mailbox.test", subject: "It's $5 `now`", text: "a\nb" }
  const line = curlOf(requestOf("POST /v1/emails", { body }), String(server.url).replace(/\/$/, ""))
  const env = { PATH: process.env.PATH ?? "", BELFRY_API_KEY: "svc_test_1", NO_PROXY: "*" }
  const said = await Bun.$`sh -c ${line}`.env(env).json()
  expect(said).toEqual({ method: "POST", key: "svc_test_1", type: "application/json", body })
})
