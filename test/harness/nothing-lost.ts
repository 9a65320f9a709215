import { expect } from "bun:test"
import { LOST, TWICE } from "./once-more"

/** Fails for good, without a second run: nothing makes up for what was acknowledged and is not there. */
export function expectNoneLost(missing: string[]) {
  expect(missing, LOST).toEqual([])
}

/** Fails for good where one of them came more often than once. */
export function expectNoneTwice(counts: Map<unknown, number>) {
  const repeated = [...counts].filter(([, count]) => count > 1)
  expect(repeated, TWICE).toEqual([])
}
