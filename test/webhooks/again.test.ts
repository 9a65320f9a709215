import { afterAll, beforeAll, expect, test } from "bun:test"
import { verify } from "../../src/lib/signature"
import { receiver } from "../fakes/receiver"
import { until } from "../harness/hooks"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens, replayAll } from "./endpoints"

/** Over the API, with deliveries that really leave. */
const service = await sharedService()
beforeAll(() => service.webhooks.loop.start())
afterAll(() => service.webhooks.loop.stop(1000))

const nowSeconds = () => Math.floor(Date.now() / 1000)

const failures = async (project: TestProject, id: string) =>
  (await project.get(`/v1/webhooks/${id}`)).body.data.consecutive_failures

const settled = (project: TestProject, id: string, status: string, count: number) =>
  until(async () => {
    const list = await project.get(`/v1/webhooks/${id}/deliveries?status=${status}`)
    return list.body.meta.total === count
  })

const once = { retry_policy: { max_attempts: 1 } }

test("a retry sends the same bytes under the same id, in any status, and counts for nothing", async () => {
  using there = receiver(() => new Response("no", { status: 500 }))
  const project = await service.project()
  const { id } = await endpoint(project, { url: there.url, ...once })
  const event = await happens(project, "email.sent", { subject: "Zwölf \u2028 🎉" })
  await settled(project, id, "exhausted", 1)
  expect(await failures(project, id)).toBe(1)
  await project.post(`/v1/webhooks/${id}/disable`)
  const [delivery] = await deliveriesOf(project, id)
  const path = `/v1/webhooks/${id}/deliveries/${delivery.id}`
  // One that came later is for later events: this one was told already.
  const transform = '{"text": "{{type}}"}'
  await project.call("PATCH", `/v1/webhooks/${id}`, { body: { transform } })
  await project.post(`${path}/retry`)
  await there.arrived(2)
  await until(async () => (await project.get(path)).body.data.attempts === 2)
  expect(await failures(project, id)).toBe(1)
  there.answer = () => new Response("yes")
  await project.post(`${path}/retry`)
  await settled(project, id, "success", 1)
  expect(new Set(there.received.map((one) => one.body)).size).toBe(1)
  expect(there.received.map((one) => one.id)).toEqual([event.id, event.id, event.id])
  const detail = (await project.get(path)).body.data
  expect(detail).toMatchObject({ attempts: 3, trigger: "manual", payload: event })
  expect(detail.attempt_log.map((line: { attempt: number }) => line.attempt)).toEqual([1, 2, 3])
  expect(JSON.stringify(detail.request_headers)).not.toContain("v1,")
})

test("a bulk retry counts for nothing, and a replay of what failed counts", async () => {
  using there = receiver(() => new Response("no", { status: 500 }))
  const project = await service.project()
  const { id } = await endpoint(project, { url: there.url, ...once })
  for (let number = 0; number < 2; number++) await happens(project)
  await settled(project, id, "exhausted", 2)
  await project.post(`/v1/webhooks/${id}/deliveries/bulk-retry`, {})
  await replayAll(service)
  await there.arrived(4)
  await settled(project, id, "exhausted", 2)
  expect(await failures(project, id)).toBe(2)
  const wish = { since: "2026-01-01T00:00:00Z", status: "failed" }
  await project.post(`/v1/webhooks/${id}/replay`, wish)
  await replayAll(service)
  await there.arrived(6)
  await settled(project, id, "exhausted", 2)
  expect(await failures(project, id)).toBe(4)
})

test("what was held arrives once each when the endpoint is enabled with a replay", async () => {
  using there = receiver()
  const project = await service.project()
  const { id } = await endpoint(project, { url: there.url })
  await project.post(`/v1/webhooks/${id}/pause`)
  const sent: string[] = []
  for (let number = 0; number < 210; number++) sent.push((await happens(project)).id)
  const asked = [{ replay: "held" }, { replay: "held" }]
  await Promise.all(asked.map((body) => project.post(`/v1/webhooks/${id}/enable`, body)))
  await replayAll(service)
  await settled(project, id, "success", 210)
  expect(there.received.map((one) => one.id).sort()).toEqual(sent.sort())
})

test("for a day after a rotation both secrets verify, and with an end at once only the new one", async () => {
  using there = receiver()
  const project = await service.project()
  const made = await endpoint(project, { url: there.url, header_format: "both" })
  const path = `/v1/webhooks/${made.id}`
  const verdicts = async (...secrets: string[]) => {
    await project.post(`${path}/test`)
    const { headers = {}, body = "" } = there.received.at(-1) ?? {}
    return secrets.map((secret) => verify({ secret, headers, body, now_seconds: nowSeconds() }))
  }
  const rotate = async (body: object) =>
    (await project.post(`${path}/rotate-secret`, body)).body.data.secret
  expect(await verdicts(made.secret)).toEqual(["ok"])
  const second = await rotate({})
  expect(await verdicts(made.secret, second)).toEqual(["ok", "ok"])
  expect(there.received.at(-1)?.headers["webhook-signature"]?.split(" ")).toHaveLength(2)
  const third = await rotate({ expire_previous_now: true })
  expect(await verdicts(made.secret, second, third)).toEqual([
    "bad_signature",
    "bad_signature",
    "ok",
  ])
})
