import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { holdOpenWork } from "../../src/jobs/holds"
import { OVER, RESTORE_REASON } from "../../src/jobs/work-item"
import { accept } from "../../src/messages/pipeline"
import { feedback, stopAll } from "../../src/messages/settle"
import { type ChannelName, messages } from "../../src/messages/tables"
import { changeHeld } from "../../src/operations/held-work"
import { heldTables } from "../../src/operations/start-held"
import { ALLOWED_WHILE_HELD } from "../../src/work"
import { client, refusal } from "../harness/client"
import { type TestProject, testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { letter, read } from "./letters"

const service = await sharedService()

const ADDRESSES = { email: "ann@example.test", push: "phone-of-ann", sms: "+14155550100" }

type Scheduled = keyof typeof ADDRESSES

/** A message of the channel that waits an hour, past the API of the channel. */
async function scheduledIn(
  project: TestProject,
  channel: Scheduled & ChannelName,
  store = service.store,
) {
  const { account_id, project_id } = project
  const recipient = ADDRESSES[channel]
  const to = { email: recipient, name: null, kind: "to", status: "queued" } as const
  const message = letter({
    ...{ account_id, project_id, channel, address: recipient },
    recipients: [{ ...to, status_reason: null }],
    scheduled_at: secondsFromNow(3600),
  })
  await store.tx((tx) => accept(tx, [message]))
  return message.id
}

/** Lists and cancels with a key of these scopes. */
const withScopes = async (project: TestProject, scopes: string[]) =>
  client(service.app, (await project.addKey({ scopes })).key)

test("the list has the messages of every channel that the key may read", async () => {
  const project = await service.project()
  const channels = ["email", "push", "sms"] as const
  for (const channel of channels) await scheduledIn(project, channel)
  const listed = async (of: Pick<TestProject, "get">, query = "") => {
    const { body } = await of.get(`/v1/scheduled${query}`)
    return body.data.map(({ channel, to }: { channel: string; to: string }) => [channel, to])
  }
  const all = channels.map((channel) => [channel, ADDRESSES[channel]]).reverse()
  expect(await listed(project)).toEqual(all)
  expect(await listed(project, "?channel=sms")).toEqual([["sms", ADDRESSES.sms]])
  const reader = await withScopes(project, ["push:read"])
  expect(await listed(reader)).toEqual([["push", ADDRESSES.push]])
  expect(refusal(await reader.get("/v1/scheduled?channel=sms"))).toEqual([403, "forbidden"])
})

test.each([
  ["push", "cancelled", []],
  ["sms", "cancelled", ["sms.queued"]],
  ["email", "failed", ["email.failed"]],
] as const)("a %s message that is cancelled becomes %s", async (channel, status, told) => {
  const project = await service.project()
  const id = await scheduledIn(project, channel)
  const other = await withScopes(project, [channel === "push" ? "sms:send" : "push:send"])
  expect(refusal(await other.call("DELETE", `/v1/scheduled/${id}`))).toEqual([404, "not_found"])
  const { body } = await project.call("DELETE", `/v1/scheduled/${id}`)
  expect(body.data).toMatchObject({ id, channel, status: "cancelled", deleted: true })
  expect((await project.get(`/v1/scheduled/${id}`)).body.data).toMatchObject({
    status: "cancelled",
    seconds_until_send: 0,
  })
  const rows = service.store.read.select().from(events).where(eq(events.subject_id, id))
  expect((await rows).map(({ type }) => type)).toEqual([...told])
  const again = await project.call("DELETE", `/v1/scheduled/${id}`)
  expect(refusal(again)).toEqual([409, "conflict"])
  const kept = service.store.read.select().from(messages).where(eq(messages.id, id))
  expect((await kept).map((message) => message.status)).toEqual([status])
})

test("a push that was sent and expired later has left the list, and one that expired before stands in it", async () => {
  const project = await service.project()
  const [sent, unsent] = [await scheduledIn(project, "push"), await scheduledIn(project, "push")]
  const handed = { status: "sent", sent_at: now(), state: OVER } as const
  await service.store.tx(async (tx) => {
    await tx.update(messages).set(handed).where(eq(messages.id, sent))
    await feedback(tx, sent, { type: "expired", address: ADDRESSES.push })
    await stopAll(tx, [await read(tx, unsent)], { status: "expired", text: "Its time is over." })
  })
  expect(await read(service.store.read, sent)).toMatchObject({ status: "expired" })
  for (const query of ["", "?status=failed"]) {
    const { data, meta } = (await project.get(`/v1/scheduled${query}`)).body
    expect(data).toMatchObject([{ id: unsent, status: "failed" }])
    expect(meta.total).toBe(1)
  }
  expect(refusal(await project.get(`/v1/scheduled/${sent}`))).toEqual([404, "not_found"])
})

test("a message that waits since a restore says so until it is resumed, and can be cancelled", async () => {
  await using office = await testService()
  const { store } = office
  const project = await office.project()
  const ids = [await scheduledIn(project, "email", store), await scheduledIn(project, "sms", store)]
  await holdOpenWork(store, heldTables(ALLOWED_WHILE_HELD))
  const reasons = async () =>
    (await project.get("/v1/scheduled")).body.data.map(
      (one: { status: string; status_reason?: string }) => [one.status, one.status_reason],
    )
  expect(await reasons()).toEqual(ids.map(() => ["scheduled", RESTORE_REASON]))
  const one = `/v1/scheduled/${ids[0]}`
  expect((await project.get(one)).body.data).toMatchObject({ status_reason: RESTORE_REASON })
  const { body } = await project.call("DELETE", one)
  expect(body.data).toMatchObject({ status: "cancelled", deleted: true })
  await changeHeld(store, { action: "resume", filter: {} })
  expect(await reasons()).toEqual([
    ["scheduled", undefined],
    ["cancelled", undefined],
  ])
})
