import { expect, test } from "bun:test"
import { nextTurn } from "../../src/core/time"
import { FairQueue, workTurn } from "../../src/core/work-turns"

test("each turn of the event loop is for one piece of work, and owners take turns", async () => {
  const begun: string[] = []
  const work = async (owner: string) => {
    await workTurn(owner)
    begun.push(owner)
  }
  const all = ["a", "a", "a", "b"].map(work)
  expect(begun).toEqual([])
  const seen: number[] = []
  while (begun.length < 4) {
    await nextTurn()
    seen.push(begun.length)
  }
  await Promise.all(all)
  expect(begun).toEqual(["a", "b", "a", "a"])
  expect(seen.every((count, at) => count - (seen[at - 1] ?? 0) <= 1)).toBe(true)
})

function drained(queue: FairQueue<string>): string[] {
  const items: string[] = []
  for (let next = queue.next(); next !== undefined; next = queue.next()) items.push(next)
  return items
}

test("owners take turns, and so do the kinds of one owner", () => {
  const queue = new FairQueue<string>()
  for (const item of ["a1", "a2", "a3"]) queue.add("one", "a", item)
  queue.add("one", "b", "b1")
  queue.add("two", "a", "other")
  expect(drained(queue)).toEqual(["a1", "other", "b1", "a2", "a3"])
})

test("what comes later has its turn after what waits already", () => {
  const queue = new FairQueue<string>()
  expect(queue.next()).toBeUndefined()
  for (const item of ["a1", "a2"]) queue.add("one", "a", item)
  expect(queue.next()).toBe("a1")
  queue.add("two", "a", "other")
  queue.add("one", "b", "b1")
  expect(drained(queue)).toEqual(["a2", "other", "b1"])
})
