import { describe, expect, test } from "bun:test"
import { createBus } from "../../src/core/bus"
import { recentLines } from "../../src/core/log"

describe("bus", () => {
  test("listeners hear their topic until they stop listening", () => {
    const bus = createBus()
    const heard: string[] = []
    const stop = bus.on<string>("one", (value) => heard.push(value))
    bus.on<string>("two", (value) => heard.push(`two ${value}`))
    bus.publish("one", "a")
    bus.publish("two", "b")
    stop()
    stop()
    bus.publish("one", "c")
    expect(heard).toEqual(["a", "two b"])
  })

  test("a listener that fails is logged and disturbs nobody", async () => {
    const bus = createBus()
    const heard: unknown[] = []
    bus.on("broken", () => {
      throw new Error("first listener broke")
    })
    bus.on("broken", () => Promise.reject(new Error("second listener broke")))
    bus.on("broken", (value) => heard.push(value))
    bus.publish("broken", 1)
    await Bun.sleep(0)
    expect(heard).toEqual([1])
    const lines = recentLines().join("\n")
    expect(lines).toContain("first listener broke")
    expect(lines).toContain("second listener broke")
  })
})
