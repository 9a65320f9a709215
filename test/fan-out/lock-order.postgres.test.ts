import { expect, spyOn, test } from "bun:test"
import { eq } from "drizzle-orm"
import { now, today } from "../../src/core/time"
import { newEmail } from "../../src/emails/prepare"
import { projectCaller } from "../../src/identity/caller"
import { accept, allowanceOf, entryOf } from "../../src/messages/accept"
import { forUpdate } from "../../src/store/columns"
import type { Closure, Store } from "../../src/store/store"
import { reserveEach, takeFromBucket } from "../../src/tenancy/quotas"
import { usageDays } from "../../src/tenancy/tables"
import { add } from "../../src/tenancy/usage"
import { untilLocked } from "../harness/lock-waits"
import { sharedService } from "../harness/shared-service"
import { audience, begun, messagesOf, publish } from "./audiences"

const service = await sharedService()
const { parts, store } = service

const PER_SECOND = 50

/** Transactions that say how often a closure ran. */
function countedRuns() {
  const counted = {
    runs: 0,
    tx: <Result>(closure: Closure<Result>) =>
      store.tx((open) => {
        counted.runs += 1
        return closure(open)
      }),
  }
  return counted
}

test("a chunk waits for a single send before it holds what the send needs, and neither runs again", async () => {
  const limits = { emails_per_month: 100, sends_per_second: PER_SECOND }
  const project = await service.project({ limits })
  const { project_id } = project
  const { topic } = await audience(store, project, [{}, {}])
  const { id } = await publish(service, project, topic)
  const caller = await projectCaller(store.read, project_id)
  if (!caller) throw new Error("the project does not send")

  const chunks = countedRuns()
  const counted = Object.assign(Object.create(store) as Store, { tx: chunks.tx })
  const walk = await begun({ parts: { ...parts, store: counted } }, id)
  chunks.runs = 0

  let sends = 0
  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sending = store.tx(async (open) => {
    sends += 1
    await reserveEach(
      open,
      { ...allowanceOf(caller, "email"), limit: limits.emails_per_month },
      [1],
    )
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
    const bucket = { project_id, channel: "email", limit: PER_SECOND }
    await takeFromBucket(open, bucket, [1])
  })
  await locked.promise
  const step = walk.step()
  await untilLocked(store.read, 1, step)
  go.resolve()
  await sending
  expect(await step).toBe("part_done")
  expect({ sends, chunks: chunks.runs }).toEqual({ sends: 1, chunks: 1 })
  expect((await messagesOf(parts, project, id)).length).toBe(2)
})

test("a chunk and a single send to one subscriber with a frequency cap lock in one order", async () => {
  using _ = spyOn(Math, "random").mockReturnValue(0) // all count in the same shard
  const project = await service.project()
  const { project_id, account_id } = project
  const cap = { frequency_cap: { count: 5, per_seconds: 3600 } }
  expect((await project.call("PATCH", "/v1/settings", { body: cap })).status).toBe(200)
  const { topic, ids } = await audience(store, project, [{}])
  const { id } = await publish(service, project, topic)
  const caller = await projectCaller(store.read, project_id)
  if (!caller) throw new Error("the project does not send")
  const used = { account_id, project_id, day: today(), metric: "email" as const, value: 1 }
  await store.tx((tx) => add(tx, [used]))

  const [chunks, sends] = [countedRuns(), countedRuns()]
  const counted = Object.assign(Object.create(store) as Store, { tx: chunks.tx })
  const walk = await begun({ parts: { ...parts, store: counted } }, id)
  chunks.runs = 0
  const message = newEmail({
    ...{ account_id, project_id, api_key_id: null, sandbox: false, scheduled_at: null },
    ...{ subscriber_id: ids[0] ?? "", category: null, cc: [], bcc: [], tags: [], metadata: {} },
    ...{ to: { email: "reader0@example.test", name: null }, attachments: [] },
    ...{ from: { email: "me@example.test", name: null }, reply_to: [], subject: "Hello" },
    ...{ batch_id: null, idempotency_key: null, source: "api", stream: "transactional" },
    ...{ replyAddress: undefined, track: undefined, kind: {} },
    content: { html: null, text: "Hello", headers: {} },
  })
  const entry = entryOf({ ...message, created_at: now() }, caller)

  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = store.tx(async (open) => {
    await forUpdate(open.select().from(usageDays).where(eq(usageDays.project_id, project_id)))
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
  })
  await locked.promise
  const sent = sends.tx((open) => accept(open, [entry]))
  await untilLocked(store.read, 1, sent) // it waits for the count of the day
  const step = walk.step()
  await untilLocked(store.read, 2, step)
  go.resolve()
  await holding
  expect(await sent).toMatchObject([{ status: "queued" }])
  expect(await step).toBe("part_done")
  expect({ sends: sends.runs, chunks: chunks.runs }).toEqual({ sends: 1, chunks: 1 })
})
