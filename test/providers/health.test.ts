import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { jobs } from "../../src/jobs/tables"
import { isDue, openInstance, pause, resume } from "../../src/providers/health"
import { routing } from "../../src/providers/routing"
import { INSTANCE, providerConfigs } from "../../src/providers/tables"
import { quietLog } from "../harness/quiet"
import { type TestService, testService } from "../harness/service"

quietLog()

async function instanceRow({ store }: TestService) {
  const [row] = await routing(store.read, "email_provider", INSTANCE)
  if (!row) throw new Error("the instance has no provider of its own")
  return row
}

test("a provider that several messages find refusing at once gets one probe", async () => {
  await using service = await testService()
  const { store } = service
  const row = await instanceRow(service)
  const pauses = Array.from({ length: 8 }, () =>
    store.tx((tx) => pause(tx, row, "535 5.7.8 wrong")),
  )
  const began = await Promise.all(pauses)
  expect(began.filter(Boolean)).toHaveLength(1)
  const probes = await store.read.select().from(jobs).where(eq(jobs.name, "provider.probe"))
  expect(probes).toHaveLength(1)
  const due = (await instanceRow(service)).paused_until ?? ""
  expect(probes[0]).toMatchObject({ run_at: due, payload: { due } })
  expect(await store.tx((tx) => isDue(tx, row, due))).toBe(true)
  expect(await store.tx((tx) => isDue(tx, row, "2026-01-01T00:00:00.000Z"))).toBe(false)
})

test("a start asks a refused provider of the instance at once, and forgets who called it back", async () => {
  await using service = await testService()
  const { store, parts } = service
  const own = parts.providers.own.email
  if (!own) throw new Error("the instance has no provider of its own")
  const before = await instanceRow(service)
  await store.tx((tx) => pause(tx, before, "535 5.7.8 wrong"))
  const pinned = { settings: { callback_account: "123456789012" } }
  await store.tx((tx) =>
    tx.update(providerConfigs).set(pinned).where(eq(providerConfigs.id, before.id)),
  )

  await openInstance(store, parts.secrets, "email_provider", own)
  const again = await instanceRow(service)
  expect(again).toMatchObject({ status: "error", last_error: "535 5.7.8 wrong", ...pinned })
  const probes = await store.read.select().from(jobs).where(eq(jobs.name, "provider.probe"))
  expect(probes.map(({ run_at }) => run_at).sort()[0]).toBe(again.paused_until as string)

  const credentials = { region: "eu-west-1" }
  await openInstance(store, parts.secrets, "email_provider", { ...own, credentials })
  expect((await instanceRow(service)).settings).toEqual({})
  // What was tried with the credentials before says nothing of these.
  await store.tx((tx) => resume(tx, again))
  expect((await instanceRow(service)).status).toBe("error")
})
