import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { DEAD, LEASED } from "../../src/jobs/work-item"
import { retry } from "../../src/webhooks/deliveries"
import { releaseHeld } from "../../src/webhooks/held"
import { activate, disable } from "../../src/webhooks/status"
import { deliveries } from "../../src/webhooks/tables"
import { movableClock } from "../harness/clock"
import { type TestHooks, testHooks } from "../harness/hooks"
import { claimDeliveries } from "./claiming"

const clock = movableClock()

async function backlog(hooks: TestHooks, count: number) {
  const endpoint = await hooks.endpoint({ url: "http://127.0.0.1:1/" })
  await hooks.emit(count)
  const claim = async (limit: number) =>
    (await claimDeliveries(hooks.store, endpoint.id, limit)).map((claimed) => claimed.id)
  const known = async () => (await hooks.deliveries(endpoint.id)).map(({ id }) => id)
  return { endpoint, claim, known }
}

describe("claims of a backlog", () => {
  test("give each delivery once, and what came later last", async () => {
    await using hooks = await testHooks()
    const { claim, known } = await backlog(hooks, 100)
    const early = await known()
    const claimed = [await claim(3), await claim(5), await claim(7)].flat()
    clock.advance({ seconds: 1 })
    await hooks.emit(50)
    for (let some = await claim(5); some.length > 0; some = await claim(5)) claimed.push(...some)
    expect(claimed.slice(0, 100).sort()).toEqual(early.sort())
    expect(claimed.toSorted()).toEqual((await known()).sort())
  })

  test("give nothing that was held, and all of it again once it is released", async () => {
    await using hooks = await testHooks()
    const { endpoint, claim, known } = await backlog(hooks, 100)
    const claimed = [await claim(3), await claim(3), await claim(3)].flat()
    await hooks.store.tx((tx) => disable(tx, endpoint, "paused"))
    expect(await claim(10)).toEqual([])
    await hooks.store.tx((tx) => activate(tx, endpoint))
    expect(await hooks.store.tx((tx) => releaseHeld(tx, endpoint, undefined, 1000))).toBe(91)
    claimed.push(...(await claim(200)))
    expect(claimed.sort()).toEqual((await known()).sort())
  })

  test("give nothing that was removed, that another has, or that is over", async () => {
    await using hooks = await testHooks()
    const { endpoint, claim, known } = await backlog(hooks, 30)
    const claimed = [await claim(2), await claim(2), await claim(2)].flat()
    const [removed = "", another = "", over = ""] = (await known()).filter(
      (id) => !claimed.includes(id),
    )
    await hooks.store.tx(async (tx) => {
      await tx.delete(deliveries).where(eq(deliveries.id, removed))
      await tx
        .update(deliveries)
        .set({ state: LEASED, owner: "another" })
        .where(eq(deliveries.id, another))
      await tx
        .update(deliveries)
        .set({ status: "exhausted", state: DEAD })
        .where(eq(deliveries.id, over))
    })
    const rest = await claim(100)
    const wanted = (await known()).filter((id) => ![another, over, ...claimed].includes(id))
    expect(rest.sort()).toEqual(wanted.sort())
    const place = { project_id: hooks.project_id, webhook_id: endpoint.id }
    await hooks.store.tx((tx) => retry(tx, place, over))
    expect(await claim(100)).toEqual([over])
  })
})
