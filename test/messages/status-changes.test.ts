import { expect, test } from "bun:test"
import { recentLines } from "../../src/core/log"
import { accept } from "../../src/messages/pipeline"
import { watch } from "../../src/messages/status-changes"
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
