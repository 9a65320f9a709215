import { expect, test } from "bun:test"
import { countDeliveries } from "../../src/webhooks/delivery-rows"
import { engine, testStore } from "../harness/store"
import { outside } from "../store/outside"
import { planOf, statementsOf } from "../store/plans"

test.skipIf(engine !== "sqlite")(
  "deliveries are counted without what their rows hold",
  async () => {
    await using it = await testStore()
    await using other = outside(it)
    // Within a transaction nothing is read in a thread, whose statements are not heard of.
    const all = await statementsOf(() => it.store.tx((tx) => countDeliveries(tx)))
    const [counting, aging] = [/^select count\(\*\) from/, /^select min\(/].map((form) =>
      all.filter((text) => form.test(text)),
    )
    expect(counting).toHaveLength(5)
    for (const text of counting ?? []) {
      expect(await planOf(other, text)).toEqual([expect.stringMatching(/USING (COVERING )?INDEX/)])
    }
    expect(aging).toHaveLength(4)
    for (const text of aging ?? []) expect(text).toContain(" limit ")
  },
)
