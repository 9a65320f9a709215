import { describe, expect, test } from "bun:test"
import { Slots } from "../../src/webhooks/slots"

const nobody = () => {}

describe("an attempt that failed", () => {
  test("is outdone by a success that began later, and by no other", () => {
    const slots = new Slots()
    const [first, second, third] = [1, 2, 3].map(() => slots.take("one", nobody))
    const elsewhere = slots.take("other", nobody)
    second?.succeeded()
    elsewhere.succeeded()
    expect(first?.isOutdone()).toBe(true)
    expect(second?.isOutdone()).toBe(false)
    expect(third?.isOutdone()).toBe(false)
  })

  test("is not outdone by a success from before it began", () => {
    const slots = new Slots()
    const before = slots.take("one", nobody)
    before.succeeded()
    before.end()
    expect(slots.take("one", nobody).isOutdone()).toBe(false)
  })
})

test("a slot is freed once, by its success or at its end", () => {
  const slots = new Slots()
  let heard = 0
  const turn = slots.take("one", () => {
    heard += 1
  })
  expect([slots.taken, slots.busy.get("one")]).toEqual([1, 1])
  turn.free()
  turn.end()
  expect([slots.taken, slots.busy.get("one"), heard]).toEqual([0, undefined, 1])
})
