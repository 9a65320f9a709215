import { expect, test } from "bun:test"
import { allowanceOf } from "../../src/emails/accept"
import { projectCaller } from "../../src/identity/project-caller"
import type { Store } from "../../src/store/store"
import { reserveEach, takeFromBucket } from "../../src/tenancy/quotas"
import { sharedService } from "../harness/shared-service"
import { audience, begun, messagesOf, publish } from "./audiences"

const service = await sharedService()
const { parts, store } = service

const PER_SECOND = 50

test("a chunk waits for a single send before it holds what the send needs, and neither runs again", async () => {
  const limits = { emails_per_month: 100, sends_per_second: PER_SECOND }
  const project = await service.project({ limits })
  const { project_id } = project
  const { topic } = await audience(store, project, [{}, {}])
  const { id } = await publish(service, project, topic)
  const caller = await projectCaller(store.read, project_id)
  if (!caller) throw new Error("the project does not send")

  let chunks = 0
  const tx: Store["tx"] = (closure) =>
    store.tx((open) => {
      chunks += 1
      return closure(open)
    })
  const counted = Object.assign(Object.create(store) as Store, { tx })
  const walk = await begun({ parts: { ...parts, store: counted } }, id)
  chunks = 0

  let sends = 0
  const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sending = store.tx(async (open) => {
    sends += 1
    await reserveEach(open, allowanceOf(caller), [1])
    locked.resolve()
    await go.promise // what no closure may do, but how else to meet
    const bucket = { project_id, channel: "email", limit: PER_SECOND }
    await takeFromBucket(open, bucket, [1])
  })
  await locked.promise
  const step = walk.step()
  await Promise.race([step, Bun.sleep(100)]) // by then it waits for a row
  go.resolve()
  await sending
  expect(await step).toBe("part_done")
  expect({ sends, chunks }).toEqual({ sends: 1, chunks: 1 })
  expect((await messagesOf(parts, project, id)).length).toBe(2)
})
