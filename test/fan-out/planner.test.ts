import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import type { ChannelPlanner } from "../../src/messages/planner"
import { sharedService } from "../harness/shared-service"
import { letter } from "../messages/letters"
import { audience, messagesOf, publish, record, walkAll } from "./audiences"

const service = await sharedService()

/** A channel that nobody built: two texts for each member with a number, and no sender. */
const pigeons: ChannelPlanner = {
  prepare: async () => ({ texts: new Map(), freeze: async () => ({ loft: "north" }) }),
  requireReady: async () => undefined,
  begin: async ({ fan_out }) => ({
    isReady: () => true,
    addressOf: ({ phone }) => phone,
    isReachable: () => true,
    plan: (caller, member) =>
      [1, 2].map(() => ({
        ...letter({
          id: newId(),
          account_id: caller.account_id,
          project_id: caller.project_id,
          channel: "sms",
          address: member.phone ?? "",
          stream: "broadcast",
          source: "topic",
          fan_out_id: fan_out.id,
          subscriber_id: member.id,
        }),
      })),
  }),
}

test("a channel that gives a planner is published to, without a sender of email", async () => {
  const project = await service.project()
  const parts = { ...service.parts, planners: { sms: pigeons } }
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
