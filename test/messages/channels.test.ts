import { describe, expect, test } from "bun:test"
import { asc, eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import * as scheduled from "../../src/messages/scheduled"
import { cancel, feedback, stopAll } from "../../src/messages/settle"
import type { ChannelName, NewMessage } from "../../src/messages/tables"
import type { RecipientOutcome } from "../../src/providers/provider"
import { totals } from "../../src/store/counters"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import { letter, outcome, PROJECT, told } from "./letters"
import { type PostOffice, postOffice } from "./post-office"

quietLog()
const clock = movableClock()

const DEVICE = "iphone-of-ann"
const NUMBER = "+14155550100"

/** A message of a channel that has no mailboxes: no envelope, no sender domain, one address of its own. */
function note(channel: ChannelName, address: string, more: Partial<NewMessage> = {}) {
  const recipient = { email: address, name: null, kind: "to", status: "queued" } as const
  return letter({
    channel,
    address,
    recipients: [{ ...recipient, status_reason: null }],
    envelope: null,
    sender: channel === "sms" ? "+14155550199" : null,
    sender_domain: null,
    subject: null,
    rfc_message_id: null,
    metadata: { order: 7 },
    content: { body: "Ding" },
    ...more,
  })
}

const ended = (address: string, status: RecipientOutcome["status"], more = {}) =>
  outcome([told(address, { status, ...more })])

async function toldOf(office: PostOffice, id: string) {
  const rows = office.store.read.select().from(events).where(eq(events.subject_id, id))
  const all = await rows.orderBy(asc(events.position), asc(events.id))
  return all.map(({ type, data }) => ({ type, data }))
}

const typesOf = async (office: PostOffice, id: string) =>
  (await toldOf(office, id)).map(({ type }) => type)

describe("a push message", () => {
  test("is accepted without an event, and tells its device when it was sent", async () => {
    await using office = await postOffice(ended(DEVICE, "sent"))
    const id = await office.accept(note("push", DEVICE))
    expect(await toldOf(office, id)).toEqual([])
    await office.runDue()
    const [sent, ...more] = await toldOf(office, id)
    expect(sent).toMatchObject({
      type: "push.sent",
      data: { push_message_id: id, device_id: DEVICE, provider: "smtp", error_code: null },
    })
    expect(more).toEqual([])
    expect(await office.read(id)).toMatchObject({ status: "sent", address: DEVICE })
  })

  test("that is tried again tells nothing of it, and keeps the provider's words", async () => {
    await using office = await postOffice(ended(DEVICE, "retry"), ended(DEVICE, "sent"))
    const id = await office.accept(note("push", DEVICE))
    await office.runDue()
    expect(await office.read(id)).toMatchObject({
      status: "queued",
      status_reason: "451 4.2.0 later",
      last_event_type: "push.queued",
    })
    expect(await typesOf(office, id)).toEqual([])
  })

  test("expires where its channel says so, and an acknowledgement after that changes nothing", async () => {
    await using office = await postOffice(ended(DEVICE, "expired", { reason: "too late" }))
    const id = await office.accept(note("push", DEVICE))
    await office.runDue()
    expect(await office.read(id)).toMatchObject({ status: "expired", status_reason: "too late" })
    const fact = { type: "delivered", address: DEVICE } as const
    await office.store.tx((tx) => feedback(tx, id, fact))
    expect(await office.read(id)).toMatchObject({ status: "expired" })
    expect(await countsOf(office, "push")).toEqual({ all: 1, "push.expired": 1 })
  })

  test("that was sent may still expire", async () => {
    await using office = await postOffice(ended(DEVICE, "sent"))
    const id = await office.accept(note("push", DEVICE))
    await office.runDue()
    const fact = { type: "expired", address: DEVICE } as const
    await office.store.tx((tx) => feedback(tx, id, fact))
    expect(await typesOf(office, id)).toEqual(["push.sent", "push.expired"])
    expect(await countsOf(office, "push")).toEqual({ all: 1, "push.expired": 1 })
  })

  test("becomes cancelled without an event, while an email fails", async () => {
    await using office = await postOffice()
    const [push, email] = [await office.accept(note("push", DEVICE)), await office.accept()]
    for (const id of [push, email]) {
      const message = await office.read(id)
      await office.store.tx((tx) => cancel(tx, message, "It was taken back."))
    }
    expect(await office.read(push)).toMatchObject({ status: "cancelled", status_reason: null })
    expect(await office.read(email)).toMatchObject({
      status: "failed",
      status_reason: "cancelled",
    })
    expect(await typesOf(office, push)).toEqual([])
    expect(await office.runDue()).toBe(0)
    expect(await countsOf(office, "push")).toEqual({ all: 1, "push.cancelled": 1 })
  })

  test("expires before its first attempt, while an email fails for it", async () => {
    await using office = await postOffice()
    const [push, email] = [await office.accept(note("push", DEVICE)), await office.accept()]
    for (const id of [push, email]) {
      const message = await office.read(id)
      await office.store.tx((tx) =>
        stopAll(tx, [message], { status: "expired", text: "Its time is over." }),
      )
    }
    expect(await office.read(push)).toMatchObject({ status: "expired" })
    expect(await office.read(email)).toMatchObject({ status: "failed", status_reason: "expired" })
    expect(await typesOf(office, push)).toEqual(["push.expired"])
  })
})

describe("an SMS", () => {
  test("tells its number at every step, and a report may say that it was not delivered", async () => {
    await using office = await postOffice(ended(NUMBER, "sent"))
    const id = await office.accept(note("sms", NUMBER))
    await office.runDue()
    const error = { code: "30005", message: "The number is not in use." }
    const fact = { type: "undelivered", address: NUMBER, error } as const
    await office.store.tx((tx) => feedback(tx, id, fact))
    const common = { sms_message_id: id, to: NUMBER, from: "+14155550199", metadata: { order: 7 } }
    expect(await toldOf(office, id)).toMatchObject([
      { type: "sms.queued", data: common },
      { type: "sms.sent", data: common },
      { type: "sms.undelivered", data: { ...common, error_code: "30005" } },
    ])
    expect(await office.read(id)).toMatchObject({ status: "undelivered" })
    expect(await countsOf(office, "sms")).toEqual({ all: 1, "sms.undelivered": 1 })
  })

  test("that is scheduled tells that it is queued once, when it is accepted", async () => {
    await using office = await postOffice(ended(NUMBER, "delivered"))
    const at = secondsFromNow(3600)
    const id = await office.accept(note("sms", NUMBER, { scheduled_at: at }))
    const scope = { project_id: PROJECT, channels: ["sms" as const] }
    expect(await typesOf(office, id)).toEqual(["sms.queued"])
    const waiting = await scheduled.find(office.store.read, scope, id)
    expect(scheduled.toResponse(waiting)).toMatchObject({ status: "scheduled", to: NUMBER })
    clock.advance({ seconds: 3601 })
    await office.runDue()
    expect(await typesOf(office, id)).toEqual(["sms.queued", "sms.sent", "sms.delivered"])
  })

  test("that is scheduled and cancelled is listed as cancelled", async () => {
    await using office = await postOffice()
    const message = note("sms", NUMBER, { scheduled_at: secondsFromNow(3600) })
    const id = await office.accept(message)
    const scope = { project_id: PROJECT, channels: ["sms" as const] }
    await scheduled.cancel(office.store, scope, id)
    const found = scheduled.list(office.store.read, scope, "cancelled")
    const { rows } = await found.list({ limit: 10, offset: 0 })
    expect(rows.map(scheduled.toResponse)).toMatchObject([{ id, status: "cancelled" }])
    expect(await office.read(id)).toMatchObject({ status: "cancelled" })
  })
})

test("a message of the inbox is delivered where it is accepted, and tells that it was created", async () => {
  await using office = await postOffice()
  const delivered = { external_id: "ann", kept: null }
  const id = await office.accept(note("in_app", "ann", { delivered }))
  expect(await office.read(id)).toMatchObject({ status: "delivered" })
  expect(await typesOf(office, id)).toEqual(["inbox.created"])
})

test("a bounce of another channel suppresses no address", async () => {
  await using office = await postOffice(ended(NUMBER, "failed", { code: "provider_rejected" }))
  const id = await office.accept(note("sms", NUMBER))
  await office.runDue()
  expect(await typesOf(office, id)).toEqual(["sms.queued", "sms.failed"])
})

async function countsOf({ store }: PostOffice, channel: ChannelName) {
  const names = ["sent", "delivered", "undelivered", "expired", "failed", "cancelled"]
  const wanted = [channel, ...names.map((name) => `${channel}.${name}`)]
  const sums = await totals(store.read, PROJECT, wanted)
  const counted = [...sums].filter(([, value]) => value !== 0)
  return Object.fromEntries(
    counted.map(([name, value]) => [name === channel ? "all" : name, value]),
  )
}
