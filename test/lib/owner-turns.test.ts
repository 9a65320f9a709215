import { expect, test } from "bun:test"
import { OwnerTurns } from "../../src/lib/semaphore"

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
