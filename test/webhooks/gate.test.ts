import { describe, expect, test } from "bun:test"
import { Gate } from "../../src/webhooks/gate"
import { until } from "../harness/hooks"

const AT_ONCE = 60

/** Begins as many as are given, and tells of those that may. */
function began(gate: Gate, count: number) {
  const leaves: (() => void)[] = []
  for (let number = 0; number < count; number++) {
    void gate.enter().then((leave) => leaves.push(leave))
  }
  return leaves
}

describe("the gate of the requests", () => {
  test("lets one begin for each that ends, in the order in which they came", async () => {
    const gate = new Gate(60_000)
    const first = began(gate, AT_ONCE)
    const order: string[] = []
    for (const name of ["one", "other"]) void gate.enter().then(() => order.push(name))
    await Promise.resolve()
    await Promise.resolve()
    expect([first.length, order]).toEqual([AT_ONCE, []])
    first[0]?.()
    await until(() => order.length === 1)
    first[1]?.()
    await until(() => order.length === 2)
    expect(order).toEqual(["one", "other"])
    for (const leave of first) leave()
  })

  test("keeps nobody waiting for those that take long, however many they are", async () => {
    const gate = new Gate()
    const leaves = began(gate, AT_ONCE * 5)
    await until(() => leaves.length === AT_ONCE * 5)
    for (const leave of leaves) leave()
    const again = began(gate, AT_ONCE)
    await Promise.resolve()
    await Promise.resolve()
    expect(again).toHaveLength(AT_ONCE)
  })
})
