import { expect, test } from "bun:test"
import { sleep } from "../../src/core/time"
import { startLock } from "../../src/operations/start-held"
import { freshDatabase } from "../harness/postgres"

test("on one database one runs after the other, also after one that failed", async () => {
  await using database = await freshDatabase()
  let running = 0
  let most = 0
  const act = async (number: number) => {
    running += 1
    most = Math.max(most, running)
    await sleep(20)
    running -= 1
    if (number === 1) throw new Error("failed")
    return number
  }
  const turns = [0, 1, 2, 3].map((number) => startLock(database.url, () => act(number)))
  const ended = await Promise.allSettled(turns)
  expect(most).toBe(1)
  expect(ended.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
  ])
  expect(ended[1]).toMatchObject({ reason: { message: "failed" } })
})

test("of two databases neither waits for the other", async () => {
  await using one = await freshDatabase()
  await using other = await freshDatabase()
  expect(await startLock(one.url, () => startLock(other.url, async () => "both"))).toBe("both")
})
