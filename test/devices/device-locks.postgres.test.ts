import { expect, test } from "bun:test"
import { registerAll } from "../../src/devices/device-batch"
import { DeviceFates } from "../../src/devices/device-fates"
import type { NewDevice } from "../../src/devices/device-input"
import { devices } from "../../src/devices/tables"
import type { Closure } from "../../src/store/store"
import { addProject } from "../harness/project-rows"
import { testStore } from "../harness/store"

const phone = (name: string, user_id: string): NewDevice => ({
  ...{ device_id: name, user_id, platform: "android", provider: "fcm", token: `t-${name}` },
  ...{ keys: null, fields: {} },
})

test("batches of devices, and what providers say of them meanwhile, never wait for each other in a circle", async () => {
  await using test = await testStore()
  const { project_id } = await addProject(test.store)
  const actor = { project_id, scope: "project", reach: "project" as const, user_id: null }
  let repeats = 0
  const tx = <Result>(closure: Closure<Result>) => {
    let runs = 0
    return test.store.tx((open) => {
      if (++runs > 1) repeats += 1
      return closure(open)
    })
  }
  const store: typeof test.store = Object.assign(Object.create(test.store), { tx })
  const register = (batch: number) =>
    registerAll(
      store,
      actor,
      {
        given: Array.from({ length: 100 }, (_, index) => ({
          ...{ index, item: phone(`p-${batch}-${index}`, `u-${batch}-${index >> 1}`) },
        })),
        failed: [],
      },
      [],
    )
  const batches = [1, 2, 3, 4]
  await Promise.all(batches.map(register))
  const fates = new DeviceFates(store)
  const known = await store.read.select().from(devices)
  expect(known).toHaveLength(400)
  const dead = known.filter((_, at) => at % 20 === 0)
  await Promise.all([...batches.map(register), ...dead.map((row) => fates.gone(row, "410"))])
  expect(repeats).toBe(0)
})
