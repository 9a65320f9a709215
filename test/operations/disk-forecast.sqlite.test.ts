import { afterAll, expect, test } from "bun:test"
import { noteDatabaseSize } from "../../src/operations/disk-forecast"
import { examine } from "../../src/operations/doctor-routes"
import * as instanceValues from "../../src/store/instance-values"
import { movableClock } from "../harness/clock"
import { testService } from "../harness/service"

const clock = movableClock()
const service = await testService({ engine: "sqlite" })
afterAll(() => service[Symbol.asyncDispose]())
const { store, parts } = service

const GB = 1024 ** 3
const HOUR = 3600

const look = async (free_gb: number) => {
  const disk = { free_bytes: () => free_gb * GB }
  const checks = await examine(store.read, { health: parts.health, disk, min_free_mb: 512 })
  const [found] = checks.filter(({ name }) => name === "disk")
  if (!found) throw new Error("there is no check of the disk")
  return found
}

test("the forecast follows the growth of the last days", async () => {
  await store.tx((tx) => instanceValues.remove(tx, "database_sizes"))
  await noteDatabaseSize(store)
  await noteDatabaseSize(store)
  const kept = async () =>
    JSON.parse((await instanceValues.find(store.read, "database_sizes")) ?? "")
  expect(await kept()).toHaveLength(1)
  expect((await look(60)).detail).not.toContain("a day")

  const [first] = await kept()
  const smaller = { ...first, bytes: first.bytes - GB / 4 }
  await store.tx((tx) => instanceValues.set(tx, "database_sizes", JSON.stringify([smaller])))
  clock.advance({ seconds: 24 * HOUR })
  const found = await look(5)
  expect(found.detail).toMatch(/growing by 25\d MB a day, enough for 1[78] days/)
  expect(found.outcome).toBe("pass")
  expect(await look(3)).toMatchObject({ outcome: "warn" })

  clock.advance({ seconds: 7 * 24 * HOUR })
  await noteDatabaseSize(store)
  expect(await kept()).toHaveLength(1) // older ones say nothing any more
})

test("a size that was noted while the clock was ahead says nothing", async () => {
  await store.tx((tx) => instanceValues.remove(tx, "database_sizes"))
  const kept = async () =>
    JSON.parse((await instanceValues.find(store.read, "database_sizes")) ?? "")
  clock.advance({ seconds: 400 * 24 * HOUR })
  await noteDatabaseSize(store)
  const [ahead] = await kept()
  clock.advance({ seconds: -400 * 24 * HOUR })
  await noteDatabaseSize(store)
  const samples = await kept()
  expect(samples).toHaveLength(1)
  expect(samples[0].at < ahead.at).toBe(true)
})
