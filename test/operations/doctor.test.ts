import { afterAll, expect, test } from "bun:test"
import { type DoctorParts, examine } from "../../src/operations/doctor-routes"
import * as instanceValues from "../../src/store/instance-values"
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
  expect(names.slice(0, 5)).toEqual(["database", "jobs", "smtp", "disk", "invariants"])
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

test("the invariants are a check of their own, with what the last sweep found", async () => {
  const invariants = async () => {
    const disk = { free_bytes: () => GB }
    const checks = await examine(store.read, { health: parts.health, disk, min_free_mb: 1 })
    return checks.filter(
      ({ name, detail }) => name === "invariants" || detail.includes("Invariant"),
    )
  }
  const note = (found: object) =>
    store.tx((tx) => instanceValues.set(tx, "invariants_swept", JSON.stringify(found)))
  const pass = { name: "invariants", outcome: "pass" as const, fix: null }
  expect(await invariants()).toEqual([{ ...pass, detail: "not checked yet: once a day" }])
  const at = "2026-11-23T10:00:00.000Z"
  await note({ at, found: { I1: 0, I4: 0, I5: 0 } })
  expect(await invariants()).toEqual([{ ...pass, detail: `hold, checked at ${at}` }])
  await note({ at, found: { I1: 0, I4: 2, I5: 0 } })
  expect(await invariants()).toEqual([
    {
      ...pass,
      outcome: "warn" as const,
      detail: expect.stringContaining("I4 is broken in 2 places"),
    },
  ])
})
