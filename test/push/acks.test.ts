import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { OVER } from "../../src/jobs/work-item"
import { load } from "../../src/messages/change"
import { accept } from "../../src/messages/pipeline"
import { cancel } from "../../src/messages/settle"
import { messages } from "../../src/messages/tables"
import { ackToken } from "../../src/push/ack-token"
import { pushAcks, pushDays } from "../../src/push/tables"
import { refusal } from "../harness/client"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, bearer, tokenOf } from "../inbox/subscriber-app"
import { told } from "../messages/letters"
import { sent } from "../sms/told"
import { addDevice, pushLetter } from "./pushes"

const service = await sharedService()
const { store, parts } = service

/** A person with a device, to which messages are pushed. */
async function owner(project?: TestProject) {
  const home = project ?? (await service.project())
  const external_id = newId()
  const subscriber_id = await addSubscriber(service, home, external_id)
  const device = await addDevice(store, home.project_id, { user_id: external_id })
  return {
    ...{ home, device, project_id: home.project_id },
    headers: bearer(await tokenOf(home, subscriber_id)),
    /** As it is accepted, or sent by now. */
    async push(is_sent = true): Promise<string> {
      const [message] = await store.tx((tx) => accept(tx, [pushLetter(device)]))
      const id = message?.id ?? ""
      const { device_id } = device
      if (is_sent)
        await sent(store, id, { ...told(device_id, { status: "sent" }), provider: "apns" })
      return id
    },
  }
}

const tokenFor = (id: string) => ackToken(parts.secrets, id)

const row = async (id: string) =>
  (await store.read.select().from(messages).where(eq(messages.id, id)))[0]

const acked = (id: string, event: string, headers: Record<string, string> = {}, more = {}) =>
  service.anybody.post(`/v1/push/${id}/ack`, { event, ...more }, headers)

/** As a device does, which has no other credential than the token in the message. */
const byDevice = async (id: string, event: string) => {
  const { status, body } = await acked(id, event, {}, { ack_token: tokenFor(id) })
  return status === 200 ? body.data.recorded : status
}

const countsOf = async (project_id: string) => {
  const rows = await store.read.select().from(pushDays).where(eq(pushDays.project_id, project_id))
  const counts = { delivered: 0, opened: 0, dismissed: 0 }
  for (const { fact, messages } of rows) counts[fact] += messages
  return counts
}

const typesOf = async (home: TestProject, id: string) => {
  const { body } = await home.get("/v1/events?limit=100")
  const told: { type: string; data: { data: object } }[] = body.data
  return told.filter((one) => JSON.stringify(one).includes(id)).map(({ type }) => type)
}

test("each event is recorded once, and the first one delivers the message", async () => {
  const ann = await owner()
  const id = await ann.push()
  expect(await byDevice(id, "opened")).toBeTrue()
  expect(await row(id)).toMatchObject({ status: "delivered", provider: "apns" })
  for (const [event, is_new] of [
    ...[["opened", false] as const, ["delivered", true] as const],
    ...[["delivered", false] as const, ["dismissed", true] as const],
  ])
    expect([event, await byDevice(id, event)]).toEqual([event, is_new])
  expect(await typesOf(ann.home, id)).toEqual(["push.sent", "push.delivered"])
  expect(await countsOf(ann.project_id)).toEqual({ delivered: 1, opened: 1, dismissed: 1 })
})

test("a dismissal alone says nothing of the delivery", async () => {
  const id = await (await owner()).push()
  expect(await byDevice(id, "dismissed")).toBeTrue()
  expect(await row(id)).toMatchObject({ status: "sent" })
})

test("many at once record one, and count one", async () => {
  const ann = await owner()
  const id = await ann.push()
  const answers = await Promise.all(Array.from({ length: 20 }, () => byDevice(id, "opened")))
  expect(answers.filter((recorded) => recorded === true)).toHaveLength(1)
  expect(await countsOf(ann.project_id)).toEqual({ delivered: 0, opened: 1, dismissed: 0 })
  expect(await typesOf(ann.home, id)).toEqual(["push.sent", "push.delivered"])
})

test("after its end a message keeps its status, and the acknowledgement is noted", async () => {
  const ann = await owner()
  const id = await ann.push(false)
  await store.tx(async (tx) => {
    const message = await load(tx, id)
    if (message) await cancel(tx, message, "no more")
  })
  expect(await byDevice(id, "delivered")).toBeTrue()
  expect(await row(id)).toMatchObject({ status: "cancelled" })
  const noted = await store.read.select().from(pushAcks).where(eq(pushAcks.message_id, id))
  expect(noted).toMatchObject([{ event: "delivered", project_id: ann.project_id }])
})

test("a device that is faster than the outcome of the attempt has delivered the message", async () => {
  const ann = await owner()
  const id = await ann.push(false)
  expect(await byDevice(id, "delivered")).toBeTrue()
  expect(await row(id)).toMatchObject({ status: "delivered", state: OVER, provider: "apns" })
  expect(await typesOf(ann.home, id)).toEqual(["push.sent", "push.delivered"])
})

test("without a credential only the token in the message proves anything, for unknown messages alike", async () => {
  const [ann, bob] = [await owner(), await owner()]
  const [id, other] = [await ann.push(), await bob.push()]
  const forged = [undefined, "", "AAAA", tokenFor(other), `${tokenFor(id)}AA`, "~".repeat(22)]
  for (const push_id of [id, newId(), "no-id", id.toUpperCase()]) {
    for (const ack_token of push_id === id ? forged : [undefined, tokenFor(id)]) {
      const answer = await acked(push_id, "opened", {}, { ack_token })
      expect([push_id, ack_token, ...refusal(answer)]).toEqual([
        ...[push_id, ack_token, 401, "unauthorized"],
      ])
    }
  }
  expect(await row(id)).toMatchObject({ status: "sent" })
  const gone = newId()
  expect(await byDevice(gone, "opened")).toBe(404)
  const { status } = await acked(id, "read", {}, { ack_token: tokenFor(id) })
  expect(status).toBe(422)
})

test("a subscriber acknowledges what was sent to a device of theirs, and nothing else", async () => {
  const ann = await owner()
  const bob = await owner(ann.home)
  const far = await owner()
  const id = await ann.push()
  for (const { headers } of [bob, far])
    expect(refusal(await acked(id, "opened", headers))).toEqual([404, "not_found"])
  expect(refusal(await acked(newId(), "opened", ann.headers))).toEqual([404, "not_found"])
  expect((await acked(id, "opened", ann.headers)).body.data).toEqual({ recorded: true })
  expect(await row(id)).toMatchObject({ status: "delivered" })
  const unsent = await ann.push(false)
  expect((await acked(unsent, "opened", ann.headers)).body.data).toEqual({ recorded: true })
  expect(await row(unsent)).toMatchObject({ status: "queued" })
  const wrong = await acked(unsent, "delivered", ann.headers, { ack_token: tokenFor(id) })
  expect(refusal(wrong)).toEqual([401, "unauthorized"])
})

test("with the token pages of every origin may acknowledge, and without it those that the project lists", async () => {
  const ann = await owner()
  await ann.home.call("PATCH", "/v1/settings", { body: { allowed_origins: ["https://shop.test"] } })
  const id = await ann.push()
  const elsewhere = { origin: "https://elsewhere.test" }
  const open = await acked(id, "delivered", elsewhere, { ack_token: tokenFor(id) })
  expect([open.status, open.headers.get("access-control-allow-origin")]).toEqual([200, "*"])
  const listed = { ...ann.headers, origin: "https://shop.test" }
  expect((await acked(id, "opened", listed)).status).toBe(200)
  const strange = await acked(id, "opened", { ...ann.headers, ...elsewhere })
  expect(refusal(strange)).toEqual([403, "forbidden"])
})
