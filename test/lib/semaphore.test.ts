import { expect, test } from "bun:test"
import { Semaphore } from "../../src/lib/semaphore"

test("no more than the limit run at once, each begins in its turn, and all end", async () => {
  const turns = new Semaphore(3)
  const begun: number[] = []
  let running = 0
  let most = 0
  const work = async (number: number) => {
    const end = await turns.acquire()
    begun.push(number)
    most = Math.max(most, ++running)
    for (let steps = 0; steps < 5; steps++) await Promise.resolve()
    running -= 1
    end()
    return number
  }
  const numbers = Array.from({ length: 20 }, (_, number) => number)
  expect(await Promise.all(numbers.map(work))).toEqual(numbers)
  expect(begun).toEqual(numbers)
  expect(most).toBe(3)
})

test("a turn that is ended twice makes room for one only", async () => {
  const turns = new Semaphore(1)
  const end = await turns.acquire()
  const next = turns.acquire()
  let third = false
  const last = turns.acquire().then((ending) => {
    third = true
    return ending
  })
  end()
  end()
  const ending = await next
  await Promise.resolve()
  expect(third).toBe(false)
  ending()
  await last
  expect(third).toBe(true)
})
