import { expect, test } from "bun:test"
import { Turns } from "../../src/lib/turns"

test("no more than the limit run at once, each begins in its turn, and all end", async () => {
  const turns = new Turns(3)
  const begun: number[] = []
  let running = 0
  let most = 0
  const work = (number: number) => async () => {
    begun.push(number)
    most = Math.max(most, ++running)
    for (let steps = 0; steps < 5; steps++) await Promise.resolve()
    running -= 1
    return number
  }
  const numbers = Array.from({ length: 20 }, (_, number) => number)
  expect(await Promise.all(numbers.map((number) => turns.run(work(number))))).toEqual(numbers)
  expect(begun).toEqual(numbers)
  expect(most).toBe(3)
})

test("work that throws gives its turn on", async () => {
  const turns = new Turns(1)
  const failing = turns.run(() => Promise.reject(new Error("broken")))
  const next = turns.run(async () => "next")
  expect(await failing.catch((error: Error) => error.message)).toBe("broken")
  expect(await next).toBe("next")
})
