import { expect, test } from "bun:test"
import { heldWalk, sparseFirst } from "../../src/subscribers/posting-walk"

const DENSE = 400_000
const STEP = 333

const dense = Float64Array.from({ length: DENSE }, (_, at) => at)
const rare = Float64Array.from({ length: DENSE / STEP }, (_, at) => at * STEP)
const walksOf = () => [heldWalk(dense), heldWalk(rare)]

test("a deep page asks few subscribers at once, and lets others work in between", async () => {
  const asked: number[] = []
  let [turns, is_over] = [0, false]
  const count = () => {
    turns += 1
    if (!is_over) setImmediate(count)
  }
  setImmediate(count)
  const walk = sparseFirst(walksOf, 0, async (places) => {
    asked.push(places.length)
    return places
  })
  expect(await walk(1100)).toEqual([...rare.subarray(0, 1100)])
  is_over = true
  expect(asked).toEqual([500, 500, 100])
  expect(turns).toBeGreaterThanOrEqual(asked.length - 1)
  expect(await walk(1100)).toEqual([...rare.subarray(1100)])
})

test("where few of the asked ones fit, the other lists are walked from there", async () => {
  let asked = 0
  const walk = sparseFirst(walksOf, 0, async (places) => {
    asked += 1
    return places.filter((place) => place % 7 === 0)
  })
  const found = await walk(1100)
  const first = [...rare.subarray(0, 500)].filter((place) => place % 7 === 0)
  expect(asked).toBe(1)
  expect(found).toEqual([...first, ...rare.subarray(500)])
})
