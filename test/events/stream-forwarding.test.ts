import { expect, test } from "bun:test"
import { Webhook } from "standardwebhooks"
import { record } from "../../src/events/emit"
import { newSecret } from "../../src/lib/signature"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { dial, type Frame, refusedUpgrade, type TestSocket } from "../harness/socket"
import { notifyEvents } from "./stream-facts"

quietLog()

const service = await sharedService()
const { url } = service.listen()
const happened = (project: TestProject, ...names: string[]) =>
  notifyEvents(service.store, project, names)

const ready = async (socket: TestSocket) => {
  const { secret, after } = await socket.next(({ type }) => type === "ready")
  return { secret: String(secret), after }
}

interface Delivery {
  delivery_id: string
  headers: Record<string, string>
  body: string
}

const deliveries = ({ frames }: TestSocket) =>
  frames.filter(({ type }) => type === "delivery") as unknown as (Delivery & Frame)[]

async function deliveryOf(socket: TestSocket, event_id: string | undefined) {
  await socket.next(({ headers }) => (headers as Delivery["headers"])?.["webhook-id"] === event_id)
  return deliveries(socket).find(({ headers }) => headers["webhook-id"] === event_id)
}

const answer = (socket: TestSocket, delivery_id: string, response_status: number | null = 200) =>
  socket.send({ type: "result", delivery_id, response_status, response_body: "ok" })

test("the first frame tells the secret, then come deliveries that it verifies", async () => {
  const project = await service.project()
  const [before] = await happened(project, "email.queued")
  using socket = await dial(url, "?forward=true", project)
  const { secret, after } = await ready(socket)
  expect(after).toBe(before?.id)
  const [event] = await happened(project, "email.sent")
  const delivery = await deliveryOf(socket, event?.id)
  expect(delivery?.headers["content-type"]).toBe("application/json")
  expect(new Webhook(secret).verify(delivery?.body ?? "", delivery?.headers ?? {})).toEqual({
    id: event?.id,
    type: "email.sent",
    api_version: "2026-02-01",
    created_at: event?.created_at,
    data: { n: 0 },
  })
  expect(() => new Webhook(secret).verify(`${delivery?.body} `, delivery?.headers ?? {})).toThrow()
})

test("the client's own secret signs, whoever connects with it", async () => {
  const project = await service.project()
  const own = newSecret()
  const headers = { "x-svc-listen-secret": own }
  for (const who of [project, await project.addKey()]) {
    using socket = await dial(url, "?forward=true", { ...who, headers })
    expect((await ready(socket)).secret).toBe(own)
    const [event] = await happened(project, "email.sent")
    const delivery = await deliveryOf(socket, event?.id)
    new Webhook(own).verify(delivery?.body ?? "", delivery?.headers ?? {})
  }
})

test("without a secret of the client each connection gets a new one", async () => {
  const project = await service.project()
  const secrets: string[] = []
  for (let n = 0; n < 2; n++) {
    using socket = await dial(url, "?forward=true", project)
    secrets.push((await ready(socket)).secret)
  }
  expect(new Set(secrets).size).toBe(2)
})

test.each(["secret", "whsec_c2hvcnQ=", `whsec_${"A".repeat(100)}`])(
  "the secret %s is refused with 422 before anything opens",
  async (secret) => {
    const { key } = await service.project()
    const headers = { "x-api-key": key, "x-svc-listen-secret": secret }
    const refused = await refusedUpgrade(url, "?forward=true", headers)
    expect(refused).toMatchObject({ status: 422, code: "validation_error" })
  },
)

test("types choose the deliveries", async () => {
  const project = await service.project()
  using socket = await dial(url, "?forward=true&types=sms.*", project)
  await ready(socket)
  const [, wanted] = await happened(project, "email.sent", "sms.sent")
  await deliveryOf(socket, wanted?.id)
  expect(deliveries(socket)).toHaveLength(1)
})

test("the test call of an endpoint is not carried elsewhere, what is triggered is", async () => {
  const project = await service.project()
  using socket = await dial(url, "?forward=true", project)
  await ready(socket)
  const { account_id, project_id } = project
  const place = { account_id, project_id, subject_id: idFor("an endpoint") }
  await service.store.tx((tx) =>
    record(tx, [
      { ...place, type: "webhook.test", data: {} },
      { ...place, type: "email.sent", data: { simulated: true } },
      { ...place, type: "webhook.disabled", data: {} },
    ]),
  )
  const { body } = await project.post("/v1/events/trigger", { type: "email.bounced" })
  await deliveryOf(socket, body.data.id)
  const types = deliveries(socket).map(({ body }) => JSON.parse(body).type)
  expect(types).toEqual(["webhook.disabled", "email.bounced"])
})

test("sixteen may wait for their answers; each answer brings the next", async () => {
  const project = await service.project()
  using socket = await dial(url, "?forward=true", project)
  await ready(socket)
  const names = Array.from({ length: 60 }, () => "email.sent")
  const events = await happened(project, ...names)
  await deliveryOf(socket, events[15]?.id)
  await Bun.sleep(100) // no seventeenth comes
  expect(deliveries(socket)).toHaveLength(16)
  // Many more answers than a second may have of other frames: they were asked for.
  for (let at = 0; at < 60; at++) {
    const delivery = await deliveryOf(socket, events[at]?.id)
    answer(socket, delivery?.delivery_id ?? "", at % 2 ? 200 : null)
  }
  const order = deliveries(socket).map(({ headers }) => headers["webhook-id"])
  expect(order).toEqual(events.map(({ id }) => id))
  answer(socket, "0199a1c2-0000-7000-8000-000000000001") // nobody asked: counted, not fatal
  const [last] = await happened(project, "email.sent")
  await deliveryOf(socket, last?.id)
})

test.each([
  ["a status that is none", { response_status: "200" }],
  ["a body that is none", { response_body: 7 }],
  ["no id", { delivery_id: 7 }],
])("%s: 4400", async (_, wrong) => {
  using socket = await dial(url, "?forward=true", await service.project())
  const result = { type: "result", delivery_id: "x", response_status: 200, response_body: null }
  socket.send({ ...result, ...wrong })
  expect((await socket.closed).code).toBe(4400)
})
