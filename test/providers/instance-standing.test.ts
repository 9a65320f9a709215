import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { jobs } from "../../src/jobs/tables"
import { isInstanceDue, pauseInstance } from "../../src/providers/instance-standing"
import { instanceRefusals } from "../../src/providers/tables"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"

quietLog()

test("a provider that several messages find refusing at once gets one probe", async () => {
  await using service = await testService()
  const { store } = service
  const pauses = Array.from({ length: 8 }, () =>
    store.tx((tx) => pauseInstance(tx, "smtp", "535 5.7.8 wrong")),
  )
  const began = await Promise.all(pauses)
  expect(began.filter(Boolean)).toHaveLength(1)
  const probes = await store.read.select().from(jobs).where(eq(jobs.name, "provider.probe"))
  expect(probes).toHaveLength(1)
  const [refusal] = await store.read.select().from(instanceRefusals)
  const due = refusal?.paused_until ?? ""
  expect(probes[0]).toMatchObject({ run_at: due, payload: { due } })
  expect(await store.tx((tx) => isInstanceDue(tx, due))).toBe(true)
  expect(await store.tx((tx) => isInstanceDue(tx, "2026-01-01T00:00:00.000Z"))).toBe(false)
})
