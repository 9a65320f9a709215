import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { events } from "../../src/events/tables"
import { inboundRoutes } from "../../src/inbound/tables"
import { deliveries } from "../../src/webhooks/tables"
import { refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { deliveriesOf, endpoint, happens } from "../webhooks/endpoints"
import { received } from "./received"

const service = await sharedService()

async function mailWithEvent(project: TestProject, more: object = {}) {
  const { id: event_id } = await happens(project, "email.received")
  const { id } = await received(service, project, { event_id, ...more })
  return { id, event_id }
}

const redeliver = (project: TestProject, id: string) =>
  project.post(`/v1/inbound-emails/${id}/redeliver`)

test("the event of a mail goes to every endpoint again, under its own id", async () => {
  const project = await service.project()
  const first = await endpoint(project)
  const second = await endpoint(project, { events: ["email.received"] })
  await endpoint(project, { events: ["email.bounced"] })
  const { id, event_id } = await mailWithEvent(project)
  const { status, body } = await redeliver(project, id)
  expect(status).toBe(200)
  const planned = body.data.deliveries as { webhook_id: string; event_id: string; status: string }[]
  expect(planned.map((one) => [one.webhook_id, one.event_id, one.status]).toSorted()).toEqual(
    [
      [first.id, event_id, "pending"],
      [second.id, event_id, "pending"],
    ].toSorted(),
  )
  expect(await deliveriesOf(project, first.id)).toHaveLength(2)
  const rows = service.store.read.select().from(events).where(eq(events.id, event_id))
  expect(await rows).toHaveLength(1)
})

test("the addresses of its files are fresh, but for an endpoint that makes its own body", async () => {
  const project = await service.project()
  const plain = await endpoint(project)
  const shaped = await endpoint(project, { transform: '{"id": {{json id}} }' })
  const { id, event_id } = await mailWithEvent(project, { files: [{ content: "Ding" }] })
  await redeliver(project, id)
  const rows = await service.store.read
    .select()
    .from(deliveries)
    .where(eq(deliveries.event_id, event_id))
  const again = rows.filter(({ trigger }) => trigger === "replay")
  const bodyOf = (webhook_id: string) => again.find((row) => row.webhook_id === webhook_id)?.body
  expect(bodyOf(shaped.id)).toBeNull()
  const sent = JSON.parse(bodyOf(plain.id) ?? "null")
  expect(sent.id).toBe(event_id)
  const [file] = sent.data.inbound.attachments
  expect(file).toMatchObject({ id: "0", filename: "note.txt" })
  const fetched = await service.anybody.get(new URL(file.url).pathname)
  expect([fetched.status, fetched.text]).toEqual([200, "Ding"])
})

test("without an endpoint nothing is planned", async () => {
  const project = await service.project()
  const { id } = await mailWithEvent(project)
  expect((await redeliver(project, id)).body.data).toEqual({ deliveries: [] })
})

test("a route to one endpoint is followed again", async () => {
  const project = await service.project()
  const one = await endpoint(project, { events: ["email.bounced"] })
  const other = await endpoint(project)
  const match = { to: "support@in.example.test" }
  const made = await project.post("/v1/inbound-routes", {
    match,
    action: "webhook",
    target: one.id,
  })
  const route_id = made.body.data.id
  const { id } = await mailWithEvent(project, { route_id })
  const { deliveries: planned } = (await redeliver(project, id)).body.data
  expect(planned.map(({ webhook_id }: { webhook_id: string }) => webhook_id)).toEqual([one.id])
  await service.store.tx((tx) => tx.delete(inboundRoutes).where(eq(inboundRoutes.id, route_id)))
  const [rest] = (await redeliver(project, id)).body.data.deliveries
  expect(rest.webhook_id).toBe(other.id)
})

test("a mail without an event is a conflict, with the reason", async () => {
  const project = await service.project()
  const dropped = await received(service, project, { event_id: null })
  const pending = await received(service, project, { event_id: null, status: "received" })
  const { id, event_id } = await mailWithEvent(project)
  await service.store.tx((tx) => tx.delete(events).where(eq(events.id, event_id)))
  for (const [mail, reason] of [
    [dropped.id, "dropped"],
    [pending.id, "not_processed"],
    [id, "expired"],
  ] as const) {
    const refused = await redeliver(project, mail)
    expect(refusal(refused)).toEqual([409, "conflict"])
    expect(refused.body.error.details).toEqual({ reason, id: mail })
  }
})
