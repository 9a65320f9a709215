import { expect, test } from "bun:test"
import { onEmitted } from "../../src/events/emit"
import { wakeUpOf } from "../../src/jobs/work-rows"
import { accept } from "../../src/messages/pipeline"
import { watch } from "../../src/messages/status-changes"
import { testStore } from "../harness/store"
import { letter } from "../messages/letters"

test("what one store commits wakes and tells nobody of another one in the same process", async () => {
  await using one = await testStore()
  await using other = await testStore()
  const heard: string[] = []
  const ends = Object.entries({ one, other }).flatMap(([name, { store }]) => [
    watch(store.read, () => heard.push(`${name}: a message`)),
    onEmitted(store.read, () => heard.push(`${name}: events`)),
    wakeUpOf(store.read, "messages").onWakeUp(() => heard.push(`${name}: work`)),
  ])
  await one.store.tx((tx) => accept(tx, [letter()]))
  await Bun.sleep(0)
  expect(heard.toSorted()).toEqual(["one: a message", "one: events", "one: work"])
  for (const end of ends) end()
  await one.store.tx((tx) => accept(tx, [letter()]))
  expect(heard).toHaveLength(3)
})
