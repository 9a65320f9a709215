import { describe, expect, test } from "bun:test"
import { recentLines } from "../../src/core/log"
import { STATUSES } from "../../src/emails/schemas"
import { accept } from "../../src/messages/pipeline"
import {
  eventTypeOf,
  knowsFact,
  knowsStatus,
  mayFollow,
  settledCounters,
  statusesOf,
  watch,
} from "../../src/messages/status-changes"
import type { ChannelName, Status } from "../../src/messages/tables"
import fc from "../harness/properties"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { letter } from "./letters"

quietLog()

test("watchers hear of messages until they stop, and one that fails is logged and disturbs nobody", async () => {
  await using it = await testStore()
  const { store } = it
  const heard: string[] = []
  watch(store.read, () => {
    throw new Error("the first watcher broke")
  })
  const stop = watch(store.read, ({ event_type }) => heard.push(`${event_type}`))
  await store.tx((tx) => accept(tx, [letter()]))
  await Bun.sleep(0)
  expect(heard).toEqual(["email.queued"])
  expect(recentLines().join("\n")).toContain("the first watcher broke")
  stop()
  stop()
  await store.tx((tx) => accept(tx, [letter()]))
  await Bun.sleep(0)
  expect(heard).toHaveLength(1)
})

const CHANNELS: ChannelName[] = ["email", "push", "sms", "in_app"]
const ALL = [...new Set(CHANNELS.flatMap(statusesOf))]

const from = (channel: ChannelName, status: Status) =>
  ALL.filter((next) => mayFollow(channel, next, status)).sort()

test("an email knows the statuses that its record shows", () => {
  expect(statusesOf("email").sort()).toEqual([...STATUSES].sort())
})

test("an email that bounced can only be complained about", () => {
  expect(from("email", "bounced")).toEqual(["complained"])
  expect(from("email", "complained")).toEqual([])
  expect(from("email", "delivered")).toEqual(["bounced", "complained", "failed"])
})

test("a push message that was sent is acknowledged or expires, and then nothing moves it", () => {
  expect(from("push", "sent")).toEqual(["delivered", "expired"])
  for (const end of ["delivered", "expired", "failed", "cancelled"] as const) {
    expect(from("push", end)).toEqual([])
  }
})

test("a cancelled message was queued before", () => {
  for (const channel of ["push", "sms"] as const) {
    expect(ALL.filter((before) => mayFollow(channel, "cancelled", before))).toEqual(["queued"])
  }
})

test("an SMS that was sent is delivered, undelivered or failed", () => {
  expect(from("sms", "sent")).toEqual(["delivered", "failed", "undelivered"])
})

describe("events", () => {
  test("are told of registered types alone", () => {
    expect(eventTypeOf("email", "queued")).toBe("email.queued")
    expect(eventTypeOf("sms", "queued")).toBe("sms.queued")
    expect(eventTypeOf("in_app", "expired")).toBe("inbox.expired")
    expect(eventTypeOf("push", "queued")).toBeUndefined()
    expect(eventTypeOf("push", "cancelled")).toBeUndefined()
    expect(eventTypeOf("sms", "soft_bounced")).toBeUndefined()
  })

  test("a channel knows no fact of another one", () => {
    expect(knowsFact("push", "queued")).toBe(true)
    expect(knowsFact("push", "soft_bounced")).toBe(false)
    expect(knowsFact("email", "expired")).toBe(false)
    expect(knowsFact("email", "soft_bounced")).toBe(true)
  })
})

test("what is settled has a counter, and what is open has none", () => {
  expect(settledCounters("push").sort()).toEqual([
    "push.cancelled",
    "push.delivered",
    "push.expired",
    "push.failed",
    "push.sent",
  ])
})

test("no path of any channel comes back to a status that it left", () => {
  const path = fc.array(fc.constantFrom(...ALL), { maxLength: 20 })
  fc.assert(
    fc.property(fc.constantFrom(...CHANNELS), path, (channel, steps) => {
      const seen: Status[] = ["queued"]
      for (const next of steps) {
        const current = seen.at(-1) ?? "queued"
        if (mayFollow(channel, next, current)) seen.push(next)
      }
      expect(new Set(seen).size).toBe(seen.length)
      expect(seen.every((status) => knowsStatus(channel, status))).toBe(true)
    }),
  )
})
