import { expect, test } from "bun:test"
import { attempts } from "../../src/messages/tables"
import { movableClock } from "../harness/clock"
import { deliverBy } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { audience, INLINE, messagesOf, publish, record, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service

/** Renders for minutes where there is a list of a hundred. */
const HANGS = `${"{{#each @root.list}}".repeat(4)}x${"{{/each}}".repeat(4)}`

test("a mail that takes too long to render is tried again, and fails at the fifth attempt", async () => {
  const project = await service.project()
  const { topic } = await audience(store, project, [{}])
  const { id } = await publish(service, project, topic, {
    content: { email: { ...INLINE, html: HANGS } },
    variables: { list: Array.from({ length: 100 }, (_, at) => at) },
  })
  await walkAll(service)
  const mail = async () => (await messagesOf(parts, project, id))[0]
  const provider = {
    name: "mailbox" as const,
    schedule: () => undefined, // of a server that was asked
    send: () => Promise.reject(new Error("nothing should be sent")),
    close: async () => {},
  }
  const tried = () => store.read.select({ outcome: attempts.outcome }).from(attempts)
  for (let times = 1; times <= 5; times++) {
    await deliverBy(parts, provider, async () => (await tried()).length >= times)
    clock.advance({ seconds: 60 })
  }
  expect(await mail()).toMatchObject({
    attempt: 5,
    status: "failed",
    error: { code: "template_render_failed" },
    status_reason: expect.stringContaining("Rendering took longer than 500 ms."),
  })
  expect((await tried()).map(({ outcome }) => outcome).sort()).toEqual([
    "failed",
    ...Array.from({ length: 4 }, () => "retry"),
  ])
  expect((await record(parts, id)).channels.email).toMatchObject({ sent: 1, failed: 1 })
})
