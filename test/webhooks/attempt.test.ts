import { describe, expect, test } from "bun:test"
import { Webhook as Standard } from "standardwebhooks"
import { secondsFromNow } from "../../src/core/time"
import { OVER } from "../../src/jobs/work-item"
import { newSecret, verify } from "../../src/lib/signature"
import { hostileReceiver, type Misdeed } from "../fakes/hostile-receiver"
import { hangs, type Received, receiver } from "../fakes/receiver"
import { type DeliveryRow, type EndpointOptions, testHooks, until } from "../harness/hooks"

/** One event to one endpoint; what arrived, and the row when its first attempt is over. */
async function attempted(
  options: Omit<EndpointOptions, "url"> & { url?: string; timeout?: number } = {},
  answer?: Parameters<typeof receiver>[0],
) {
  const { timeout = 30_000, ...chosen } = options
  await using hooks = await testHooks({ "webhooks.timeout": timeout })
  using fake = receiver(answer)
  const endpoint = await hooks.endpoint({ url: fake.url, ...chosen })
  await hooks.emit(1)
  await hooks.deliver()
  let row: DeliveryRow | undefined
  await until(async () => {
    row = (await hooks.deliveries(endpoint.id))[0]
    return row !== undefined && row.attempts > 0
  })
  if (!row) throw new Error("no delivery")
  return { row, received: fake.received, secret: endpoint.plain }
}

const first = (received: Received[]): Received => {
  const [one] = received
  if (!one) throw new Error("nothing arrived")
  return one
}

const seconds = () => Math.floor(Date.now() / 1000)

describe("an attempt", () => {
  test("is a POST of the envelope as compact JSON, signed by the endpoint's secret", async () => {
    const { received, secret, row } = await attempted()
    const { headers, body, id } = first(received)
    expect(headers["content-type"]).toBe("application/json")
    expect(headers["user-agent"]).toBe("belfry-webhooks/1")
    expect(body).toBe(JSON.stringify(JSON.parse(body)))
    expect(JSON.parse(body)).toEqual({
      id: row.event_id,
      type: "email.delivered",
      api_version: "2026-02-01",
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { number: 0, subject: "Grüße, \u2028 und „mehr“" },
    })
    expect(id).toBe(row.event_id)
    expect(new Standard(secret).verify(body, headers)).toEqual(JSON.parse(body))
    expect(row).toMatchObject({
      status: "success",
      attempts: 1,
      last_response_status: 200,
      last_response_body: "thanks",
      last_error: null,
      owner: null,
    })
    expect(row.attempt_log).toEqual([
      {
        attempt: 1,
        at: expect.any(String),
        response_status: 200,
        error: null,
        latency_ms: expect.any(Number),
      },
    ])
    expect(row.state).toBe(OVER)
  })

  test("carries the signatures of both secrets for as long as the one before counts", async () => {
    const previous = newSecret()
    const until = { previous, previous_secret_expires_at: secondsFromNow(60) }
    const { received, secret } = await attempted(until)
    const { headers, body } = first(received)
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(2)
    for (const one of [secret, previous]) new Standard(one).verify(body, headers)

    const over = { previous, previous_secret_expires_at: secondsFromNow(-1) }
    const later = first((await attempted(over)).received)
    expect(later.headers["webhook-signature"]?.split(" ")).toHaveLength(1)
  })

  test("carries the headers of the endpoint's format", async () => {
    for (const header_format of ["legacy", "both"] as const) {
      const { received, secret } = await attempted({ header_format })
      const { headers, body } = first(received)
      expect("webhook-signature" in headers).toBe(header_format === "both")
      expect(headers["x-svc-signature"]).toStartWith("sha256=")
      expect(verify({ secret, headers, body, now_seconds: seconds() })).toBe("ok")
    }
  })

  test("carries the endpoint's own headers, which cannot stand in for ours", async () => {
    const headers = {
      Authorization: "Bearer of-the-receiver",
      "X-Team": "ops",
      "Webhook-Signature": "v1,forged",
      "Content-Type": "text/plain",
    }
    const { received, row, secret } = await attempted({ headers })
    const one = first(received)
    expect(one.headers).toMatchObject({
      authorization: "Bearer of-the-receiver",
      "x-team": "ops",
      "content-type": "application/json",
    })
    new Standard(secret).verify(one.body, one.headers)
    expect(row.request_headers).toMatchObject({
      authorization: "****",
      "content-type": "application/json",
      "webhook-signature": "****",
      "x-team": "****",
    })
  })

  test("shows no value of a custom header, not even one that the receiver sends back", async () => {
    const value = "opensesame-4711"
    const echo = ({ headers }: Received) => {
      const sent = headers["x-token"]
      return new Response(`{"headers":{"X-Token":"${sent}"}} ${"x".repeat(950)}${sent}`, {
        status: 400,
        headers: { "x-echo": `got ${sent}` },
      })
    }
    const { row, received } = await attempted({ headers: { "X-Token": value } }, echo)
    expect(first(received).headers["x-token"]).toBe(value)
    expect(row.request_headers).toMatchObject({ "x-token": "****" })
    expect(row.response_headers).toMatchObject({ "x-echo": "got ****" })
    expect(row.last_response_body).toStartWith('{"headers":{"X-Token":"****"}}')
    expect(JSON.stringify(row)).not.toContain(value.slice(0, 6))
  })

  test("shows no signature that the receiver sends back", async () => {
    const signatures = ["webhook-signature", "x-svc-signature"]
    const echo = ({ headers }: Received) => {
      const [standard = "", legacy = ""] = signatures.map((name) => headers[name])
      return new Response(`${standard} and ${legacy}`, { headers: { "x-echo": standard } })
    }
    const { row, received } = await attempted({ header_format: "both" }, echo)
    for (const name of signatures) expect(first(received).headers[name]).toBeTruthy()
    expect(row.response_headers).toMatchObject({ "x-echo": "****" })
    expect(row.last_response_body).toBe("**** and ****")
  })

  test("keeps a thousand characters of the answer, 8 KiB of its headers, and no NUL", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, number) => [`x-long-${number}`, "h".repeat(400)]),
    )
    const { row } = await attempted({}, () => {
      return new Response(`a\0b${"é😀".repeat(5000)}`, { status: 500, headers: many })
    })
    expect(row.last_response_body?.length).toBeLessThanOrEqual(1000)
    expect(row.last_response_body).toStartWith("abé😀")
    expect(row.last_response_body?.isWellFormed()).toBe(true)
    expect(JSON.stringify(row.response_headers).length).toBeLessThan(10_000)
    expect(row).toMatchObject({ status: "failed", last_error: "http_status" })
  })

  test("fails on whatever is not 2xx, and follows no redirect", async () => {
    for (const status of [204, 301, 302, 307, 400, 404, 500, 503]) {
      const headers = { location: "/elsewhere" }
      const { row, received } = await attempted({}, () => new Response(null, { status, headers }))
      const failed = { status: "failed", last_error: "http_status" } as const
      expect(row).toMatchObject(status === 204 ? { status: "success" } : failed)
      expect(row.last_response_status).toBe(status)
      expect(received).toHaveLength(1)
    }
  })

  test.each<Misdeed>([
    "endless body",
    "endless chunks",
    "one byte a second",
    "half an answer",
    "bad chunk",
    "bad gzip",
    "gzip bomb",
  ])("succeeds on a status of 2xx with %s", async (misdeed) => {
    using odd = hostileReceiver(misdeed)
    const { row } = await attempted({ url: odd.url })
    expect(row).toMatchObject({ status: "success", last_error: null, last_response_status: 200 })
    expect(row.last_response_body?.length).toBeLessThanOrEqual(1000)
    expect(odd.connections()).toBe(1)
  })

  test("says what kept it from an answer", async () => {
    const { row: late } = await attempted({ timeout: 200 }, hangs)
    expect(late).toMatchObject({ last_error: "timeout", last_response_status: null })
    const { row: nobody } = await attempted({ url: "http://127.0.0.1:1/" })
    expect(nobody.last_error).toBe("connection")
    expect(nobody.request_headers).toMatchObject({ "webhook-id": nobody.event_id })
  })

  test("is refused inside, and nothing of it is kept", async () => {
    const { row, received } = await attempted({ url: "http://10.0.0.1/hook" })
    expect(received).toEqual([])
    expect(row).toMatchObject({
      last_error: "blocked_address",
      last_response_status: null,
      last_response_body: null,
      request_headers: null,
      response_headers: null,
      status: "failed",
    })
  })

  test("sends what the endpoint's transform makes, or the envelope where that is no JSON", async () => {
    const made = await attempted({
      transform: '{"text": "{{data.subject}}", "n": {{data.number}} }',
    })
    expect(JSON.parse(first(made.received).body)).toEqual({
      text: "Grüße, \u2028 und „mehr“",
      n: 0,
    })
    expect(made.row.body).toBe(first(made.received).body)
    expect(made.row.last_error).toBeNull()
    const broken = await attempted({ transform: "not json {{data.number}}" })
    expect(JSON.parse(first(broken.received).body)).toMatchObject({ id: broken.row.event_id })
    expect(broken.row).toMatchObject({ status: "success", last_error: "transform_failed" })
  })
})
