import { expect, test } from "bun:test"
import { paramsOf, request, requestOf, type Transport } from "../../src/client/client"
import { operations } from "../../src/client/operations"
import { linesThatFail, markedLines } from "../harness/compile"
import { testService } from "../harness/service"

test("calls carry their types there and back", async () => {
  await using service = await testService()
  const { key } = await service.project()
  const { url } = service.listen()
  const transport: Transport = async ({ method, path, query, body, headers }) => {
    const search = new URLSearchParams(query as Record<string, string>)
    const all = { ...headers, "x-api-key": key, "content-type": "application/json" }
    const init = { method, headers: all, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await fetch(`${url}${path}?${search}`, init)
    const is_json = response.headers.get("content-type")?.startsWith("application/json")
    return is_json ? response.json() : new Uint8Array(await response.arrayBuffer())
  }
  const mail = { from: "hello@example.test", to: "ann@example.com", subject: "Hi", text: "Hello." }
  const sent = await request(transport, "POST /v1/emails", {
    body: mail,
    headers: { "idempotency-key": "once" },
  })
  const email_id = sent.data.id
  const { data } = await request(transport, "GET /v1/emails/{email_id}", { params: { email_id } })
  expect(data).toMatchObject({ id: email_id, subject: "Hi", to: { email: "ann@example.com" } })
  const list = await request(transport, "GET /v1/emails", {
    query: { per_page: 1, status: "queued" },
  })
  expect(list.data.map(({ id }) => id)).toEqual([email_id])
  expect(list.meta).toMatchObject({ total: 1, has_more: false })
})

test("a request names its path and its parameters", () => {
  const name = "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}"
  expect(paramsOf(name)).toEqual(["webhook_id", "delivery_id"])
  const params = { webhook_id: "a/b", delivery_id: "1" }
  expect(requestOf(name, { params })).toMatchObject({
    method: "GET",
    path: "/v1/webhooks/a%2Fb/deliveries/1",
    accept: "application/json",
  })
  expect(() => requestOf(name, { params: { webhook_id: "1" } })).toThrow("delivery_id")
  expect(requestOf("GET /v1/emails/{email_id}/raw", { params: { email_id: "1" } }).accept).toBe(
    "message/rfc822",
  )
})

test.each([["."], [".."]])("no path is made with %s, which leads to another one", (topic_key) => {
  const asked = () => requestOf("GET /v1/topics/{topic_key}/subscribers", { params: { topic_key } })
  expect(asked).toThrow(`topic_key: A URL cannot hold ${topic_key} as a name`)
})

test("dots within a value stay in a path", () => {
  const params = { topic_key: "..." }
  expect(requestOf("GET /v1/topics/{topic_key}", { params }).path).toBe("/v1/topics/...")
})

test("the table says what flags and help need", () => {
  expect(operations["PATCH /v1/domains/{domain_id}"].body).toMatchObject({
    receiving: { type: "boolean" },
    tracking_subdomain: { type: "string", nullable: true },
  })
  expect(operations["PATCH /v1/domains/{domain_id}"].body).not.toHaveProperty("region")
  expect(operations["POST /v1/projects"]).toMatchObject({
    body: { name: { type: "string", required: true } },
    data: "Project",
    idempotent: true,
  })
  expect(operations["GET /v1/emails"]).toMatchObject({
    data: "EmailSummary",
    many: true,
    paged: true,
  })
})

const PROGRAM = `
import { request, type Transport } from "belfry/client/client"
export async function program(transport: Transport) {
  const { data } = await request(transport, "GET /v1/api-keys/{key_id}", { params: { key_id: "1" } })
  const name: string = data.name
  const size: number = data.name // wrong
  await request(transport, "GET /v1/api-keys/{key_id}") // wrong
  await request(transport, "GET /v1/api-keys/{key_id}", { params: { key: "1" } }) // wrong
  await request(transport, "GET /v1/api-keys/none") // wrong
  await request(transport, "GET /v1/api-keys")
  await request(transport, "GET /v1/api-keys", { query: { status: "lost" } }) // wrong
  await request(transport, "POST /v1/projects", { body: { name: "Website" } })
  await request(transport, "POST /v1/projects", { body: { slug: "website" } }) // wrong
  await request(transport, "POST /v1/projects") // wrong
  return [name, size]
}
`

test("a call with a wrong name, parameter, body or answer does not compile", async () => {
  expect(await linesThatFail(PROGRAM)).toEqual(markedLines(PROGRAM))
  expect(markedLines(PROGRAM).length).toBe(7)
})
