import { describe, expect, test } from "bun:test"
import { verify } from "../../src/lib/signature"
import { receiver } from "../fakes/receiver"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint } from "./endpoints"

const service = await sharedService({ webhooks: { "webhooks.timeout": 1000 } })

const clock = movableClock()

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe("a test of an endpoint", () => {
  test("is delivered while one waits, signed like any other", async () => {
    using there = receiver(() => new Response("fine", { status: 202 }))
    const project = await service.project()
    const { id, secret } = await endpoint(project, { url: there.url })
    const { status, body } = await project.post(`/v1/webhooks/${id}/test`)
    expect(status).toBe(200)
    expect(body.data).toEqual({
      delivered: true,
      delivery_id: expect.any(String),
      response_status: 202,
      response_body: "fine",
      duration_ms: expect.any(Number),
      error: null,
    })
    const [received] = there.received
    const { headers = {}, body: text = "" } = received ?? {}
    expect(verify({ secret, headers, body: text, now_seconds: nowSeconds() })).toBe("ok")
    const { type, data } = JSON.parse(text)
    expect([type, data.webhook_id]).toEqual(["webhook.test", id])
    const [delivery] = await deliveriesOf(project, id)
    const told = { id: body.data.delivery_id, status: "success", trigger: "test", attempts: 1 }
    expect(delivery).toMatchObject({ ...told, event_type: "webhook.test", max_attempts: 1 })
  })

  test("is made once for an idempotency key", async () => {
    using there = receiver()
    const project = await service.project()
    const { id } = await endpoint(project, { url: there.url })
    const headers = { "idempotency-key": "test-1" }
    const ask = () => project.post(`/v1/webhooks/${id}/test`, {}, headers)
    const [first, again] = [await ask(), await ask()]
    expect(again.body.data).toEqual(first.body.data)
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    expect(there.received).toHaveLength(1)
  })

  test("goes to no other endpoint, and is of the type that was asked for", async () => {
    using there = receiver()
    using elsewhere = receiver()
    const project = await service.project()
    const { id } = await endpoint(project, { url: there.url, events: ["sms.*"] })
    const other = await endpoint(project, { url: elsewhere.url })
    const { body } = await project.post(`/v1/webhooks/${id}/test`, { event_type: "email.bounced" })
    expect(body.data.delivered).toBe(true)
    const { type, data } = JSON.parse(there.received[0]?.body ?? "")
    expect([type, data.bounce_type, data.simulated]).toEqual(["email.bounced", "Permanent", true])
    expect(await deliveriesOf(project, other.id)).toEqual([])
  })

  test.each(["pause", "disable"])("works after %s, which it does not undo", async (verb) => {
    using there = receiver()
    const project = await service.project()
    const { id } = await endpoint(project, { url: there.url })
    await project.post(`/v1/webhooks/${id}/${verb}`)
    const { body } = await project.post(`/v1/webhooks/${id}/test`)
    expect(body.data.delivered).toBe(true)
    expect((await project.get(`/v1/webhooks/${id}`)).body.data.status).toBe("disabled")
  })

  test("tells what went wrong, is not tried again, and does not count for the breaker", async () => {
    using there = receiver(() => new Response("no", { status: 500 }))
    const project = await service.project()
    const { id } = await endpoint(project, { url: there.url })
    const { status, body } = await project.post(`/v1/webhooks/${id}/test`)
    expect(status).toBe(200)
    const failed = { delivered: false, response_status: 500, response_body: "no" }
    expect(body.data).toMatchObject({ ...failed, error: "http_status" })
    const [delivery] = await deliveriesOf(project, id)
    expect(delivery).toMatchObject({ status: "exhausted", next_attempt_at: null })
    expect((await project.get(`/v1/webhooks/${id}`)).body.data.consecutive_failures).toBe(0)
  })

  test("says so where nobody answers", async () => {
    using there = receiver(() => new Promise(() => {}))
    const project = await service.project()
    const hanging = await endpoint(project, { url: there.url })
    const late = await project.post(`/v1/webhooks/${hanging.id}/test`)
    expect(late.body.data).toMatchObject({ delivered: false, error: "timeout" })
    const { id } = await endpoint(project)
    const absent = await project.post(`/v1/webhooks/${id}/test`)
    expect(absent.body.data).toMatchObject({ response_status: null, error: "connection" })
  })

  test("of a type that there is not is refused", async () => {
    const project = await service.project()
    const { id } = await endpoint(project)
    const refused = await project.post(`/v1/webhooks/${id}/test`, { event_type: "email.snet" })
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["event_type"])
    expect(refused.body.error.message).toContain("email.sent")
  })

  test("may be asked for ten times a minute, and each endpoint counts by itself", async () => {
    using there = receiver()
    const project = await service.project()
    const { id } = await endpoint(project, { url: there.url })
    const other = await endpoint(project, { url: there.url })
    clock.advance({ seconds: 61 - (nowSeconds() % 60) }) // no minute ends while we count
    for (let number = 0; number < 10; number++) {
      expect((await project.post(`/v1/webhooks/${id}/test`)).status).toBe(200)
    }
    const refused = await project.post(`/v1/webhooks/${id}/test`)
    expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
    expect(refused.body.error.details).toMatchObject({ limit: 10, scope: "webhook_test" })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(refused.headers.get("x-ratelimit-limit")).toBe("1000000")
    expect((await project.post(`/v1/webhooks/${other.id}/test`)).status).toBe(200)
  })
})
