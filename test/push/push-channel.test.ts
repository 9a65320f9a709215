import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { millis, sleep } from "../../src/core/time"
import { DeviceFates } from "../../src/devices/device-fates"
import { devices } from "../../src/devices/tables"
import { blank, QueueLines } from "../../src/jobs/counts"
import { holdOpenWork } from "../../src/jobs/holds"
import { DeferredError, HELD, OVER, READY, RESTORE_HOLD } from "../../src/jobs/work-item"
import { dayCounts } from "../../src/messages/day-counts"
import { countMessages } from "../../src/messages/pipeline"
import { acknowledge } from "../../src/messages/settle"
import { messages } from "../../src/messages/tables"
import { heldTables } from "../../src/operations/start-held"
import { isAckToken } from "../../src/push/ack-token"
import { pushChannel } from "../../src/push/channel"
import {
  type OutgoingPush,
  type PushAnswer,
  type PushSender,
  pushOutcome,
  pushSchedule,
} from "../../src/push/providers/provider"
import { openWork } from "../../src/queue/queue"
import { movableClock } from "../harness/clock"
import { addProject } from "../harness/project-rows"
import { WorkLoops } from "../harness/work-loops"
import { postOffice } from "../messages/post-office"
import { addDevice, pushLetter } from "./pushes"

const clock = movableClock()
const secrets = {
  mac: (_: string, text: string) => Buffer.from(Bun.SHA256.hash(text, "hex"), "hex"),
}

/** A project with a device, and a provider that gives these answers in turn. */
async function pushOffice(...answers: PushAnswer[]) {
  const office = await postOffice()
  const { store, work, channels } = office
  const { project_id } = await addProject(store)
  const device = await addDevice(store, project_id, { user_id: "ann" })
  const handed: OutgoingPush[] = []
  /** What happens while the provider is asked. */
  const meanwhile = { act: async (_id: string): Promise<unknown> => undefined, admit: () => {} }
  const provider: PushSender = {
    name: "apns",
    schedule: pushSchedule,
    async send(push) {
      handed.push(push)
      await meanwhile.act(push.message_id)
      return pushOutcome("apns", push, answers.shift() ?? { meaning: "sent", said: null })
    },
    admit: async () => meanwhile.admit(),
    close: async () => {},
  }
  const fates = new DeviceFates(store)
  channels.push = pushChannel({ store, secrets, provider, fates, concurrency: 2 })
  const row = async (id: string) => {
    const [found] = await store.read.select().from(messages).where(eq(messages.id, id))
    if (!found) throw new Error("the message is gone")
    return found
  }
  return {
    ...office,
    ...{ device, handed, meanwhile, row },
    async deviceNow() {
      const rows = await store.read.select().from(devices).where(eq(devices.id, device.id))
      return rows[0]
    },
    /** Works until the message is what is wanted of it. */
    async runUntil(id: string, isOver: (message: typeof messages.$inferSelect) => boolean) {
      const loop = new WorkLoops({ store, work, concurrency: 5, lease_ms: 30_000, alone: false })
      await loop.start()
      while (!isOver(await row(id))) await sleep(1)
      await loop.stop(20_000)
      return row(id)
    },
  }
}

test("a provider gets what the device acknowledges with, and what is left of the time to live", async () => {
  clock.freeze()
  await using office = await pushOffice()
  const { device, handed } = office
  const id = await office.accept(pushLetter(device, {}, { ttl_seconds: 100, badge: 3 }))
  clock.advance({ seconds: 10 })
  const sent = await office.runUntil(id, ({ status }) => status === "sent")
  expect(sent).toMatchObject({ status_reason: null, provider: "apns", user_id: "ann" })
  expect(handed).toMatchObject([{ push_id: id, ttl_seconds: 90, badge: 3, to: [device.device_id] }])
  expect(isAckToken(secrets, id, handed[0]?.ack_token ?? "")).toBeTrue()
  expect(isAckToken(secrets, id, "AAAA")).toBeFalse()
})

test("what nobody acknowledged in its time to live expires, and at least a minute after it was sent", async () => {
  await using office = await pushOffice()
  const { device, store } = office
  const [unheard, heard, unlimited] = await Promise.all(
    [{ ttl_seconds: 5 }, { ttl_seconds: 5 }, {}].map((one) =>
      office.accept(pushLetter(device, {}, one)),
    ),
  )
  if (!unheard || !heard || !unlimited) throw new Error("three messages were accepted")
  for (const id of [unheard, heard, unlimited])
    await office.runUntil(id, ({ status, owner }) => status === "sent" && owner === null)
  expect(await store.tx((tx) => acknowledge(tx, heard, "apns"))).toBeTrue()
  expect(await store.tx((tx) => acknowledge(tx, heard, "apns"))).toBeFalse()
  expect(await office.row(heard)).toMatchObject({ status: "delivered", state: OVER })
  clock.advance({ seconds: 59 })
  expect(Date.parse((await office.row(unheard)).run_at)).toBeGreaterThan(millis())
  clock.advance({ seconds: 2 })
  const ended = await office.runUntil(unheard, ({ status }) => status !== "sent")
  expect(ended).toMatchObject({ status: "expired", state: OVER, error: { code: "expired" } })
  const told = await office.story(unheard)
  expect(told.map((line) => line.split(" ")[0])).toEqual(["push.sent", "push.expired"])
  expect(await office.row(unlimited)).toMatchObject({ status: "sent", state: OVER })
  expect(await store.tx((tx) => acknowledge(tx, unheard, "apns"))).toBeFalse()
})

test("what only waits to expire is no work that is counted, and a restore does not hold it", async () => {
  await using office = await pushOffice()
  const { device, store } = office
  const unheard = await office.accept(pushLetter(device, {}, { ttl_seconds: 5 }))
  await office.runUntil(unheard, ({ status, owner }) => status === "sent" && owner === null)
  const linesOf = () => new QueueLines(store.read, [countMessages()]).all()
  expect((await linesOf()).get("push") ?? blank()).toEqual(blank())
  expect((await openWork(store.read, device.project_id)).work.by_state).toEqual([])
  clock.advance({ seconds: 3600 })
  const waiting = await office.accept(pushLetter(device))
  const line = (await linesOf()).get("push")
  expect(line).toMatchObject({ depth: 1, running: 0 })
  expect(line?.oldest_seconds).toBeLessThan(3600)
  const { by_state } = (await openWork(store.read, device.project_id)).work
  expect(by_state).toMatchObject([{ queue: "push", state: "waiting", count: 1 }])

  expect(await holdOpenWork(store, heldTables([]))).toBe(1)
  expect(await office.row(unheard)).toMatchObject({ status: "sent", state: READY, owner: null })
  const held = { status: "queued", state: HELD, owner: RESTORE_HOLD } as const
  expect(await office.row(waiting)).toMatchObject(held)
  const ended = await office.runUntil(unheard, ({ status }) => status !== "sent")
  expect(ended).toMatchObject({ status: "expired", state: OVER })
  expect(await office.row(waiting)).toMatchObject(held)
  expect(office.handed).toHaveLength(1)
})

test("a device that is faster than its provider's answer ends the message, whatever the answer is", async () => {
  const lost: PushAnswer = { meaning: "unreachable", said: "The connection broke." }
  const sent: PushAnswer = { meaning: "sent", said: null, provider_message_id: "p-1" }
  for (const answer of [sent, lost]) {
    await using office = await pushOffice(answer)
    const { device, store, meanwhile, handed } = office
    meanwhile.act = (id) => store.tx((tx) => acknowledge(tx, id, "apns"))
    const id = await office.accept(pushLetter(device, {}, { ttl_seconds: 600 }))
    await office.runUntil(id, ({ status, state }) => status === "delivered" && state === OVER)
    clock.advance({ seconds: 700 })
    const ended = await office.runUntil(id, ({ state }) => state === OVER)
    expect(ended).toMatchObject({ status: "delivered", provider: "apns" })
    expect(handed).toHaveLength(1)
    const story = await office.story(id)
    expect(story.map((line) => line.split(" ")[0])).toEqual(["push.sent", "push.delivered"])
    const counts = await dayCounts(store.read, {
      ...{ project_id: device.project_id, channel: "push", from: "2000-01-01" },
    })
    const left = counts.filter((one) => one.messages !== 0)
    expect(left).toMatchObject([{ status: "delivered", provider: "apns ios ", messages: 1 }])
  }
})

test("attempts follow the table, and the last one fails with its code", async () => {
  const busy: PushAnswer = { meaning: "outage", said: "InternalServerError", provider_code: "500" }
  await using office = await pushOffice(...Array.from({ length: 6 }, () => busy))
  const id = await office.accept(pushLetter(office.device))
  for (const seconds of [1, 5, 30, 120, 600]) {
    const after = office.handed.length + 1
    const waiting = await office.runUntil(
      id,
      ({ attempt, owner }) => attempt === after && owner === null,
    )
    expect(Date.parse(waiting.run_at) - millis()).toBeWithin(
      seconds * 1000 - 5000,
      seconds * 1000 + 1,
    )
    clock.advance({ seconds })
  }
  const ended = await office.runUntil(id, ({ status }) => status !== "queued")
  expect(ended).toMatchObject({
    ...{ status: "failed", status_reason: "provider_unavailable", attempt: 6 },
    error: { code: "provider_unavailable", message: "InternalServerError", provider_code: "500" },
  })
})

test("a time to live that ends before a provider took the message expires it", async () => {
  const busy: PushAnswer = { meaning: "busy", said: "try later", retry_after: 900 }
  await using office = await pushOffice(busy)
  const id = await office.accept(pushLetter(office.device, {}, { ttl_seconds: 20 }))
  const waiting = await office.runUntil(id, ({ attempt, owner }) => attempt === 1 && owner === null)
  expect(Date.parse(waiting.run_at) - millis()).toBeLessThanOrEqual(21_000)
  clock.advance({ seconds: 22 })
  const ended = await office.runUntil(id, ({ status }) => status !== "queued")
  expect(ended).toMatchObject({ status: "expired", state: OVER })
  expect(office.handed).toHaveLength(1)
})

test("a time to live that ends while no provider may be asked expires the message, too", async () => {
  await using office = await pushOffice()
  office.meanwhile.admit = () => {
    throw new DeferredError("There is no provider.", 60)
  }
  const id = await office.accept(pushLetter(office.device, {}, { ttl_seconds: 20 }))
  await office.runUntil(id, ({ status_reason, owner }) => status_reason !== null && owner === null)
  clock.advance({ seconds: 61 })
  const ended = await office.runUntil(id, ({ status }) => status !== "queued")
  expect(ended).toMatchObject({ status: "expired", state: OVER })
  expect(office.handed).toHaveLength(0)
})

test("a device that is gone expires, unless its app presented a token later", async () => {
  const gone: PushAnswer = { meaning: "unregistered", said: null, provider_code: "Unregistered" }
  const since = new Date(millis() - 60_000).toISOString()
  await using office = await pushOffice({ ...gone, gone_since: since }, gone)
  const { device } = office
  const first = await office.accept(pushLetter(device))
  expect(await office.runUntil(first, ({ status }) => status !== "queued")).toMatchObject({
    ...{ status: "failed", status_reason: "unregistered" },
    error: { code: "unregistered", provider_code: "Unregistered" },
  })
  expect(await office.deviceNow()).toMatchObject({ status: "active" })
  const second = await office.accept(pushLetter(device))
  await office.runUntil(second, ({ status }) => status !== "queued")
  const expired = { status: "expired", status_reason: "unregistered" } as const
  expect(await office.deviceNow()).toMatchObject(expired)
  const third = await office.accept(pushLetter(device))
  const unasked = await office.runUntil(third, ({ status }) => status !== "queued")
  expect(unasked).toMatchObject({ status: "failed", status_reason: "unregistered", provider: null })
  expect(office.handed).toHaveLength(2)
})
