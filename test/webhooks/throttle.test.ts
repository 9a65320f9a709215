import { describe, expect, test } from "bun:test"
import { ConnectionThrottle } from "../../src/webhooks/throttle"
import { until } from "../harness/hooks"

const AT_ONCE = 60

/** Begins as many as are given, and tells of those that may. */
function began(throttle: ConnectionThrottle, count: number) {
  const releases: (() => void)[] = []
  for (let number = 0; number < count; number++) {
    void throttle.acquire().then((release) => releases.push(release))
  }
  return releases
}

describe("the throttle of the requests", () => {
  test("lets one begin for each that ends, in the order in which they came", async () => {
    const throttle = new ConnectionThrottle(60_000)
    const first = began(throttle, AT_ONCE)
    const order: string[] = []
    for (const name of ["one", "other"]) void throttle.acquire().then(() => order.push(name))
    await Promise.resolve()
    await Promise.resolve()
    expect([first.length, order]).toEqual([AT_ONCE, []])
    first[0]?.()
    await until(() => order.length === 1)
    first[1]?.()
    await until(() => order.length === 2)
    expect(order).toEqual(["one", "other"])
    for (const release of first) release()
  })

  test("keeps nobody waiting for those that take long, however many they are", async () => {
    const throttle = new ConnectionThrottle()
    const releases = began(throttle, AT_ONCE * 5)
    await until(() => releases.length === AT_ONCE * 5)
    for (const release of releases) release()
    const again = began(throttle, AT_ONCE)
    await Promise.resolve()
    await Promise.resolve()
    expect(again).toHaveLength(AT_ONCE)
  })
})
