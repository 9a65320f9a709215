import { expect, test } from "bun:test"
import { projectCaller } from "../../src/identity/caller"
import { mergeSubscribers } from "../../src/operations/merge-subscribers"
import type { Closure, Store } from "../../src/store/store"
import { find } from "../../src/subscribers/find-subscriber"
import { untilLocked } from "../harness/lock-waits"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "../topics/made-subscribers"
import { audience, begun, messagesOf, publish } from "./audiences"

const service = await sharedService()
const { parts, store } = service

/** A merge into somebody who is no member, whose transaction stays open until it may go. */
async function openMerge(members: number) {
  const project = await service.project()
  const everybody = Array.from({ length: members }, () => ({}))
  const { topic, ids } = await audience(store, project, everybody)
  const [heir = ""] = await makeSubscribers(service, project, [
    { external_id: "heir", email: "heir@example.test" },
  ])
  const { id } = await publish(service, project, topic)
  const caller = await projectCaller(store.read, project.project_id)
  if (!caller) throw new Error("the project does not send")
  const [changed, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const tx = <Result>(closure: Closure<Result>) =>
    store.tx(async (open) => {
      const result = await closure(open)
      changed.resolve()
      await go.promise // what no closure may do, but how else to meet
      return result
    })
  const slow = Object.assign(Object.create(store) as Store, { tx })
  const merge = (from: string) => mergeSubscribers(slow, caller, heir, from)
  const reached = async () =>
    (await messagesOf(parts, project, id)).map(({ subscriber_id }) => subscriber_id)
  return { project, ids, id, heir, merge, reached, changed: changed.promise, go: go.resolve }
}

test("a chunk that meets a merge waits for it, and writes to the subscriber that is left", async () => {
  const { project, ids, id, heir, merge, reached, changed, go } = await openMerge(3)
  const walk = await begun(service, id)
  const merged = merge(ids[1] ?? "")
  await changed
  const step = walk.step()
  await untilLocked(store.read, 1, step) // it waits for the subscriber
  expect(await reached()).toEqual([])
  go()
  await merged
  expect(await step).toBe("more") // as far as the member that was replaced
  expect(await walk.step()).toBe("part_done")
  expect(await reached()).toEqual([ids[0] ?? "", heir, ids[2] ?? ""])
  expect((await find(store.read, project.project_id, heir)).email).toBe("heir@example.test")
})
