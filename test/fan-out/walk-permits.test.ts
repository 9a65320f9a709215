import { expect, test } from "bun:test"
import { acquireWalk, LOOK_AGAIN_SECONDS, type WalkPermit } from "../../src/fan-out/walk"
import { DeferredError } from "../../src/jobs/work-item"
import { sharedService } from "../harness/shared-service"

const { store } = await sharedService()

const AT_ONCE = store.isAlone ? 1 : 2
const WAITING = 4

test("parts walk in the order of their questions, some wait, and the others look again later", async () => {
  const began: number[] = []
  const permits: WalkPermit[] = []
  const ask = async (name: number) => {
    permits.push(await acquireWalk(store.read))
    began.push(name)
  }
  const all = Array.from({ length: AT_ONCE + WAITING }, (_, name) => ask(name))
  await Promise.all(all.slice(0, AT_ONCE))
  expect(began.length).toBe(AT_ONCE)
  expect(permits[0]?.isAwaited()).toBe(true)
  const refused = await acquireWalk(store.read).catch((error) => error)
  expect(refused).toBeInstanceOf(DeferredError)
  expect(refused).toMatchObject({ seconds: LOOK_AGAIN_SECONDS })
  for (let nth = 0; nth < all.length; nth++) {
    await all[nth]
    permits[nth]?.release()
  }
  expect(began).toEqual(all.map((_, name) => name))
  const last = await acquireWalk(store.read)
  expect(last.isAwaited()).toBe(false)
  last.release()
})
