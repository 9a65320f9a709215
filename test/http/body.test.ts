import { describe, expect, test } from "bun:test"
import { connect } from "node:net"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

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
    const { status, body } = await exchange(`${head.join("\r\n")}\r\n\r\n{`)
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
    const { status, body } = await exchange(`${head.join("\r\n")}\r\n\r\n${chunks}0\r\n\r\n`)
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

/** Speaks to the real socket, so that no client mends or refuses what we send. */
function exchange(
  request: string,
): Promise<{ status: number; body: ReturnType<typeof JSON.parse> }> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let answer = ""
  const socket = connect(listener.port, "127.0.0.1", () => socket.write(request))
  socket.on("data", (data) => {
    answer += data
    const [head = "", body = ""] = answer.split("\r\n\r\n")
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN)
    if (Buffer.byteLength(body) >= length) resolve(answer)
  })
  socket.on("error", reject)
  socket.on("close", () => resolve(answer))
  return promise.then((text) => {
    socket.destroy()
    const [head = "", body = ""] = text.split("\r\n\r\n")
    return { status: Number(head.split(" ")[1]), body: body ? JSON.parse(body) : undefined }
  })
}
