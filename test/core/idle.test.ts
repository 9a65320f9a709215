import { expect, test } from "bun:test"
import { onceIdle } from "../../src/core/idle"

/** What each look finds: so many ms of the processor were used since the one before. */
function processor(shares: number[]) {
  let used = 0
  const looks: number[] = []
  const usedMs = () => {
    used += looks.length === 0 ? 0 : (shares[looks.length - 1] ?? 0)
    looks.push(used)
    return used
  }
  return { usedMs, looks }
}

async function until(condition: () => boolean) {
  while (!condition()) await Bun.sleep(1)
}

test("the effect comes once, at the first look behind a quiet time", async () => {
  const { usedMs, looks } = processor([5, 5, 0, 0, 0])
  const seen: number[] = []
  onceIdle(() => seen.push(looks.length), { usedMs, look_ms: 5 })
  await until(() => seen.length > 0)
  await Bun.sleep(30)
  expect(seen).toEqual([4])
})

test("a process that is busy goes on as it is", async () => {
  const { usedMs, looks } = processor(Array(1000).fill(5))
  let count = 0
  const stop = onceIdle(() => void count++, { usedMs, look_ms: 2 })
  await until(() => looks.length > 20)
  stop()
  expect(count).toBe(0)
})

test("a wait that was ended has no effect", async () => {
  const { usedMs } = processor([])
  let count = 0
  onceIdle(() => void count++, { usedMs, look_ms: 5 })()
  await Bun.sleep(30)
  expect(count).toBe(0)
})
