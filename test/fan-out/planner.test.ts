import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import type { ChannelPlanner } from "../../src/messages/planner"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { letter } from "../messages/letters"
import { audience, messagesOf, publish, record, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()

/** A channel that nobody built: texts for each member with a number, and no sender. */
const pigeons = (texts: number, country?: string): ChannelPlanner => ({
  prepare: async () => ({ texts: new Map(), freeze: async () => ({ loft: "north" }) }),
  requireReady: async () => undefined,
  begin: async ({ fan_out }) => ({
    isReady: () => true,
    addressOf: ({ phone }) => phone,
    isReachable: () => true,
    plan: (caller, member) =>
      Array.from({ length: texts }, () =>
        letter({
          id: newId(),
          account_id: caller.account_id,
          project_id: caller.project_id,
          channel: "sms",
          address: member.phone ?? "",
          stream: "broadcast",
          source: "topic",
          fan_out_id: fan_out.id,
          subscriber_id: member.id,
          country,
        }),
      ),
  }),
})

test("a channel that gives a planner is published to, without a sender of email", async () => {
  const project = await service.project()
  const parts = { ...service.parts, planners: { sms: pigeons(2) } }
  const people = [{ phone: "+14155550100" }, { phone: null }, { phone: "+14155550101" }]
  const { topic } = await audience(parts.store, project, people)
  const wish = { channels: ["sms" as const], content: { sms: { body: "Hi" } } }
  const { id, intent } = await publish({ parts }, project, topic, wish)
  expect(intent.sms).toEqual({ loft: "north" })
  expect(intent.email).toBeUndefined()
  await walkAll({ parts })
  const made = await messagesOf(parts, project, id)
  expect(made.map(({ channel }) => channel)).toEqual(["sms", "sms", "sms", "sms"])
  expect(await record(parts, id)).toMatchObject({
    status: "completed",
    channels: { sms: { planned: 3, sent: 2, skipped: { no_address: 1, quota: 0 }, failed: 0 } },
  })
})

test("a publish waits for the next hour of a country, and skips nobody", async () => {
  clock.freeze()
  const project = await service.project()
  const parts = { ...service.parts, planners: { sms: pigeons(1, "+1") } }
  const people = Array.from({ length: 60 }, (_, at) => ({ phone: `+141555501${10 + at}` }))
  const { topic } = await audience(parts.store, project, people)
  const wish = { channels: ["sms" as const], content: { sms: { body: "Hi" } } }
  const { id } = await publish({ parts }, project, topic, wish)
  await walkAll({ parts })
  expect(await messagesOf(parts, project, id)).toHaveLength(50)
  const waits = { status: "paused", status_reason: "country_limit" }
  expect(await record(parts, id)).toMatchObject(waits)
  clock.advance({ seconds: 3600 })
  await walkAll({ parts })
  const numbers = (await messagesOf(parts, project, id)).map(({ address }) => address)
  expect(numbers).toEqual(people.map(({ phone }) => phone))
  expect(await record(parts, id)).toMatchObject({
    status: "completed",
    channels: { sms: { planned: 60, sent: 60, failed: 0 } },
  })
})
