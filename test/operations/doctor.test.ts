import { afterAll, expect, test } from "bun:test"
import { type DoctorParts, examine } from "../../src/operations/doctor"
import { refusal } from "../harness/client"
import { person, team } from "../harness/people"
import { testService } from "../harness/service"

const service = await testService()
afterAll(() => service[Symbol.asyncDispose]())
const { store, parts } = service

const GB = 1024 ** 3
const look = async (free_gb: number, min_free_mb = 512) => {
  const disk = { free_bytes: () => free_gb * GB }
  const asked: DoctorParts = { health: parts.health, disk, min_free_mb }
  const checks = await examine(store.read, asked)
  const [found] = checks.filter(({ name }) => name === "disk")
  if (!found) throw new Error("there is no check of the disk")
  return found
}

test("only operators may ask, and they see every check with its outcome", async () => {
  const { owner } = await team(service)
  expect(refusal(await owner.get("/v1/admin/doctor"))).toEqual([403, "forbidden"])
  const operator = await person(service, undefined, true)
  const { status, body } = await operator.get("/v1/admin/doctor")
  expect(status).toBe(200)
  const names = body.data.checks.map(({ name }: { name: string }) => name)
  expect(names.slice(0, 4)).toEqual(["database", "jobs", "smtp", "disk"])
  const failed = body.data.checks.filter(({ outcome }: { outcome: string }) => outcome === "fail")
  expect(body.data.ok).toBe(failed.length === 0)
})

test("the disk passes, warns below twice the floor, and fails below it", async () => {
  expect(await look(60)).toMatchObject({ outcome: "pass", fix: null })
  expect((await look(60)).detail).toMatch(/^60\.0 GB free, the database has \d+(\.\d)? MB/)
  const short = await look(0.9)
  expect(short.outcome).toBe("warn")
  expect(short.fix).toContain("belfry db stats")
  expect((await look(0.4)).outcome).toBe("fail")
})
