import { expect, test } from "bun:test"
import { nextTurn } from "../../src/core/time"
import { workTurn } from "../../src/core/work-turns"

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
