import { expect, test } from "bun:test"
import { WriteBehind } from "../../src/store/write-behind"
import { quietLog } from "../harness/quiet"

const lines = quietLog()

/** A buffer of texts that are written two at a time. While `is_away`, no write succeeds. */
function buffer({ most = 100 } = {}) {
  const it = { is_away: false, written: [] as string[][], tried: 0 }
  const behind = new WriteBehind<string>({
    write: async (group) => {
      it.tried += 1
      if (it.is_away) throw new Error("the disk is broken")
      it.written.push(group)
    },
    ...{ limit: 2, most, lost: `texts were lost of ${most}` },
  })
  const add = (...texts: string[]) => {
    for (const text of texts) if (behind.admit()) behind.put(text, text)
  }
  return Object.assign(it, { behind, add })
}

const linesOf = (most: number) =>
  lines().filter((line) => line.includes(`texts were lost of ${most}`))

test("groups are written in the order in which their entries came", async () => {
  const it = buffer()
  it.add("a", "b", "c", "d", "e")
  await it.behind.flush()
  expect(it.written).toEqual([["a", "b"], ["c", "d"], ["e"]])
})

test("a write that fails is the last one of its round, and what comes later is written again", async () => {
  const it = buffer({ most: 101 })
  it.add("a", "b", "c", "d", "e")
  it.is_away = true
  await it.behind.flush()
  expect(it.tried).toBe(1)
  const [line = ""] = linesOf(101)
  expect(line).toContain("5")
  expect(line).toContain("the disk is broken")

  it.is_away = false
  it.add("f")
  await it.behind.flush()
  expect(it.written).toEqual([["f"]])
})

test("what waits has a limit, and room again once it was written or lost", async () => {
  const it = buffer({ most: 3 })
  it.add("a", "b", "c", "d")
  await it.behind.flush()
  it.add("e")
  it.is_away = true
  await it.behind.flush()
  it.is_away = false
  it.add("f", "g", "h")
  await it.behind.flush()
  expect(it.written.flat()).toEqual(["a", "b", "c", "f", "g", "h"])
  expect(linesOf(3)).toHaveLength(1)
})
