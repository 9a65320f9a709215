import { describe, expect, test } from "bun:test"
import { readParts } from "../../src/http/body"
import { BodyMemory } from "../../src/http/body-memory"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { openRequest } from "../harness/raw-request"
import { sharedService } from "../harness/shared-service"

const logged = quietLog()
const service = await sharedService()
const listener = service.listen()
const LIMIT = 1_048_576

/** Text with a chosen length. */
const ofLength = (bytes: number) => `{"a":"${"x".repeat(bytes - 8)}"}`

describe("the content type of a body", () => {
  test.each(["application/json", "application/json; charset=utf-8", "Application/JSON"])(
    "may be %s",
    async (type) => {
      const project = await service.project()
      const { status } = await project.post("/v1/emails", mail(), { "content-type": type })
      expect(status).toBe(201)
    },
  )

  test.each(["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded"])(
    "may not be %j",
    async (type) => {
      const project = await service.project()
      const refused = await project.post("/v1/emails", mail(), { "content-type": type })
      expect(refusal(refused)).toEqual([400, "invalid_json"])
      expect(refused.body.error.details).toEqual({ reason: "content_type" })
    },
  )

  test("does not matter without a body", async () => {
    const project = await service.project()
    const headers = { "content-type": "text/plain" }
    const { status } = await project.call("DELETE", "/v1/mailbox", { headers })
    expect(status).toBe(200)
  })
})

test.each([
  ['{"to": ', "syntax"],
  ['{"to":"a@b.test","to":"c@d.test"}', "duplicate_key"],
  ['{"metadata":{"__proto__":{"x":1}}}', "proto"],
  [`{"metadata":${"[".repeat(64)}${"]".repeat(64)}}`, "depth"],
  [`{"metadata":[${Array(100_001).fill("[]")}]}`, "too_many_values"],
  [`{"metadata":{${Array.from({ length: 10_001 }, (_, at) => `"${at}":1`)}}}`, "keys"],
])("%.40s is 400", async (body, reason) => {
  const project = await service.project()
  const refused = await project.post("/v1/emails", body)
  expect(refusal(refused)).toEqual([400, "invalid_json"])
  expect(refused.body.error.details).toEqual({ reason })
})

test.each(["null", "[]", "5", '"text"', "[[]]"])("%s is no object", async (body) => {
  const project = await service.project()
  for (const path of ["/v1/emails", "/v1/api-keys", "/v1/emails/batch"]) {
    expect((await project.post(path, body)).status).toBe(422)
  }
})

describe("a body that is too large", () => {
  test("by its own word is refused with both numbers, unread", async () => {
    const project = await service.project()
    const refused = await project.post("/v1/api-keys", ofLength(LIMIT + 1))
    expect(refusal(refused)).toEqual([413, "payload_too_large"])
    expect(refused.body.error.details).toEqual({ limit_bytes: LIMIT, received_bytes: LIMIT + 1 })
    expect((await project.post("/v1/api-keys", ofLength(LIMIT))).status).toBe(422)
  })

  test.each([
    ["/v1/emails", 15_728_640],
    ["/v1/emails/batch", 33_554_432],
  ])("has a limit of its own at %s", async (path, limit_bytes) => {
    const project = await service.project()
    const refused = await project.post(path, ofLength(limit_bytes + 1))
    expect(refused.status).toBe(413)
    expect(refused.body.error.details).toEqual({ limit_bytes, received_bytes: limit_bytes + 1 })
  })

  test.each([100_000_000, 5_000_000_000])("of %d bytes is refused with our words", async (size) => {
    const { key } = await service.project()
    const head = [
      "POST /v1/emails HTTP/1.1",
      "Host: localhost",
      `X-API-Key: ${key}`,
      "Content-Type: application/json",
      `Content-Length: ${size}`,
    ]
    using request = await openRequest(listener.port, head)
    await request.send("{")
    const { status, body } = await request.answer
    expect(status).toBe(413)
    expect(body.error).toMatchObject({
      code: "payload_too_large",
      details: { limit_bytes: 15_728_640, received_bytes: size },
    })
  })

  test("in chunks is cut at the limit", async () => {
    const { key } = await service.project()
    const chunk = "x".repeat(65_536)
    const head = [
      "POST /v1/api-keys HTTP/1.1",
      "Host: localhost",
      `X-API-Key: ${key}`,
      "Content-Type: application/json",
      "Transfer-Encoding: chunked",
    ]
    const chunks = `10000\r\n${chunk}\r\n`.repeat(20)
    using request = await openRequest(listener.port, head)
    await request.send(`${chunks}0\r\n\r\n`)
    const { status, body } = await request.answer
    expect(status).toBe(413)
    const { limit_bytes, received_bytes } = body.error.details
    expect(limit_bytes).toBe(LIMIT)
    expect(received_bytes).toBeGreaterThan(LIMIT)
    expect(received_bytes).toBeLessThanOrEqual(20 * 65_536)
  })

  test("in chunks that fit is read", async () => {
    const { key } = await service.project()
    const stream = new ReadableStream({
      start(controller) {
        for (const part of ['{"from":"a@example.test",', '"to":"b@example.test",']) {
          controller.enqueue(Buffer.from(part))
        }
        controller.enqueue(Buffer.from('"subject":"s","text":"t"}'))
        controller.close()
      },
    })
    const headers = { "x-api-key": key, "content-type": "application/json" }
    const init = { method: "POST", headers, body: stream }
    const response = await fetch(`${listener.url}/v1/emails`, init)
    expect(response.status).toBe(201)
  })
})

const headOf = (path: string, key: string, ...more: string[]) => [
  `POST ${path} HTTP/1.1`,
  "Host: localhost",
  `X-API-Key: ${key}`,
  "Content-Type: application/json",
  ...more,
]
const MB = 1_048_576

describe("a body of very many values", () => {
  const bomb = Buffer.from(`[${"[],".repeat(10 * MB)}[]]`)
  const SOME = 8 * MB

  test("is refused long before it has come", async () => {
    const { key } = await service.project()
    const head = headOf("/v1/emails/batch", key, `Content-Length: ${bomb.length}`)
    using request = await openRequest(listener.port, head)
    await request.send(bomb.subarray(0, SOME))
    const { status, body } = await request.answer
    expect(status).toBe(400)
    expect(body.error).toMatchObject({
      code: "invalid_json",
      details: { reason: "too_many_values" },
    })
  })

  test("is refused in chunks, too, be they ever so small", async () => {
    const { key } = await service.project()
    const head = headOf("/v1/emails/batch", key, "Transfer-Encoding: chunked")
    using request = await openRequest(listener.port, head)
    await request.send("1\r\n[\r\n")
    await request.send("3\r\n[],\r\n".repeat(120_000))
    expect((await request.answer).body.error.details).toEqual({ reason: "too_many_values" })
  })
})

describe("a large body", () => {
  const text = 'Grüße, \n"'.repeat(200_000)
  const attachments = [{ filename: "a.bin", content: Buffer.alloc(3 * MB, 7).toString("base64") }]

  test("is read as it was written", async () => {
    const project = await service.project()
    const { status, body } = await project.post("/v1/emails", mail({ text, attachments }))
    expect(status).toBe(201)
    const kept = await project.get(`/v1/emails/${body.id}/content`)
    expect(kept.body.data.text).toBe(text)
  })

  test("that is not JSON, or no UTF-8, is refused as a small one is", async () => {
    const project = await service.project()
    const good = Buffer.from(JSON.stringify(mail({ text, attachments })))
    const bad = await project.post("/v1/emails", good.subarray(0, -1))
    expect(refusal(bad)).toEqual([400, "invalid_json"])
    expect(bad.body.error.details).toEqual({ reason: "syntax" })
    good[good.indexOf("ü") + 1] = 0x20
    const broken = await project.post("/v1/emails", good)
    expect(broken.body.error.details).toEqual({ reason: "encoding" })
  })

  test("with an Idempotency-Key is known again, in whatever order its fields come", async () => {
    const project = await service.project()
    const key = { "idempotency-key": "large" }
    const first = await project.post("/v1/emails", mail({ text, attachments }), key)
    const turned = Object.fromEntries(Object.entries(mail({ text, attachments })).reverse())
    const again = await project.post("/v1/emails", turned, key)
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    expect(again.body.id).toBe(first.body.id)
    const other = await project.post("/v1/emails", mail({ text: `${text}!`, attachments }), key)
    expect(other.body.error.details.reason).toBe("idempotency_key_reused")
  })
})

test("a body that breaks off is no fault of ours", async () => {
  const { key } = await service.project()
  const head = headOf("/v1/emails", key, "Content-Length: 100000", "X-Request-Id: req_broken_off")
  const before = logged().length
  const request = await openRequest(listener.port, head)
  await request.send("{")
  while (service.app.server?.pendingRequests === 0) await Bun.sleep(1)
  request.cut()
  while (service.app.server?.pendingRequests !== 0) await Bun.sleep(1)
  expect(logged().slice(before)).toEqual([])
})

test("a body in crumbs leaves a turn to everybody else after each crumb", async () => {
  const crumbs = 2000
  let left = crumbs
  const body = new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array([0x20]))
      else controller.close()
    },
  })
  let turns = 0
  const count = () => {
    turns += 1
    turn = setImmediate(count)
  }
  let turn = setImmediate(count)
  const parts = await readParts(new Request("http://here.test", { method: "POST", body }), {
    reservation: new BodyMemory().enter("somebody"),
    signal: new AbortController().signal,
    limit_bytes: LIMIT,
    onPart: () => {},
  })
  clearImmediate(turn)
  expect(parts.map(({ length }) => length)).toEqual([crumbs])
  expect(turns).toBeGreaterThan(crumbs / 2)
})
