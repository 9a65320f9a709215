import { expect, test } from "bun:test"
import { secondsFromNow } from "../../src/core/time"
import { storedTotal } from "../../src/plans/stored-bytes"
import { purgeDeliveries } from "../../src/webhooks/retention"
import { receiver } from "../fakes/receiver"
import { testHooks, until } from "../harness/hooks"
import { wrongTotals } from "../harness/wrong-totals"

test("a delivery counts 1 KB and its own body, and goes with its row", async () => {
  await using hooks = await testHooks()
  using fake = receiver()
  const { store, project_id } = hooks
  const stored = async () => {
    const { used } = await storedTotal(store.read, project_id)
    expect(await wrongTotals(store.read, project_id)).toEqual([])
    return used
  }
  const plain = await hooks.endpoint({ url: fake.url })
  await hooks.emit(3)
  expect(await stored()).toBe(3 * 1024)

  const transform = '{"said":"Grüße {{data.number}}"}'
  const own = await hooks.endpoint({ url: fake.url, transform })
  await hooks.emit(2)
  await hooks.deliver()
  const isOver = async () =>
    (await hooks.deliveries(own.id)).every(({ status }) => status === "success")
  await until(isOver)
  await fake.arrived(7)
  const body = Buffer.byteLength('{"said":"Grüße 0"}')
  expect(await stored()).toBe(7 * 1024 + 2 * body)

  await until(async () => (await purgeDeliveries(store, plain.id, secondsFromNow(60))) === 0)
  expect(await stored()).toBe(2 * (1024 + body))
  await until(async () => (await purgeDeliveries(store, own.id, secondsFromNow(60))) === 0)
  expect(await stored()).toBe(0)
})
