import { expect, test } from "bun:test"
import { OwnerTurns, Semaphore } from "../../src/lib/semaphore"

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

test("waiting owners follow one another, and what else one asked for waits behind its own turn", async () => {
  const turns = new OwnerTurns(1)
  const order: string[] = []
  const turnOf = async (owner: string) => {
    const end = await turns.acquire(owner)
    order.push(owner)
    await Bun.sleep(0)
    end?.()
  }
  await Promise.all(["a", "a", "a", "b", "c", "b"].map(turnOf))
  expect(order).toEqual(["a", "b", "c", "a", "b", "a"])
})

test("a turn ends at the first call, and a second one ends nothing more", async () => {
  const turns = new OwnerTurns(2, { of_one: 0 })
  const end = await turns.acquire("a")
  end?.()
  const again = await turns.acquire("a")
  end?.()
  expect(turns.acquire("a")).toBeUndefined()
  again?.()
  expect(turns.acquire("a")).toBeDefined()
})

test("so many of one owner wait, and so many of all", async () => {
  const turns = new OwnerTurns(1, { of_one: 1, of_all: 2 })
  expect(await turns.acquire("a")).toBeDefined()
  expect(turns.acquire("a")).toBeDefined()
  expect(turns.acquire("a")).toBeUndefined()
  expect(turns.acquire("b")).toBeDefined()
  expect(turns.acquire("c")).toBeUndefined()
})
