import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { isoFrom, millis, secondsFromNow } from "../../src/core/time"
import { MOST_OF_USER } from "../../src/devices/find-device"
import { type DeviceRow, devices } from "../../src/devices/tables"
import { accept } from "../../src/messages/pipeline"
import { messages } from "../../src/messages/tables"
import { type BrokenInvariant, brokenIn } from "../../src/operations/invariants"
import { bump } from "../../src/store/counters"
import { addSubscriber } from "../harness/audience"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { addDevice, pushLetter } from "../push/pushes"

const service = await sharedService()
const { store } = service

const path = (id: string, verb = "") => `/v1/subscribers/${encodeURIComponent(id)}${verb}`

const devicesIn = ({ project_id }: TestProject) =>
  store.read.select().from(devices).where(eq(devices.project_id, project_id)).orderBy(devices.id)

const owners = async (project: TestProject) =>
  (await devicesIn(project)).map(({ user_id }) => user_id)

/** What a look at all totals of the project finds wrong. */
async function broken({ project_id }: TestProject) {
  const found: BrokenInvariant[] = []
  const look = { db: store.read, pause: async () => {}, since: null, overdue_before: null }
  for await (const one of brokenIn(
    { ...look, is_thorough: true },
    { kind: "project", id: project_id },
  ))
    found.push(one)
  return found
}

const addPush = async (device: DeviceRow, more: Parameters<typeof pushLetter>[1]) => {
  // What is due would be waited for by other tests.
  const letter = pushLetter(device, { scheduled_at: secondsFromNow(30 * 86_400), ...more })
  await store.tx((tx) => accept(tx, [letter]))
  return letter.id
}

test("a subscriber shows how many devices they have, and takes them along when they are removed", async () => {
  const project = await service.project()
  const { project_id } = project
  const ann = await addSubscriber(project)
  const ben = await addSubscriber(project)
  await addDevice(store, project_id, { user_id: ann.external_id })
  await addDevice(store, project_id, { user_id: ann.external_id, status: "disabled" })
  await addDevice(store, project_id, { user_id: ben.external_id, provider: "fcm" })
  const other = await service.project()
  await addDevice(store, other.project_id, { user_id: ann.external_id })
  const shown = async (id: string) => (await project.get(path(id))).body.data.devices
  expect([await shown(ann.id), await shown(ben.id)]).toEqual([2, 1])
  const { data } = (await project.get("/v1/subscribers")).body
  expect(data.map((row: { devices: number }) => row.devices)).toEqual([1, 2])

  expect((await project.call("DELETE", path(ann.id))).status).toBe(200)
  expect(await owners(project)).toEqual([ben.external_id])
  expect(await owners(other)).toEqual([ann.external_id])
  expect(await broken(project)).toEqual([])
})

test("devices follow the external id of their subscriber", async () => {
  const project = await service.project()
  const ann = await addSubscriber(project)
  await addDevice(store, project.project_id, { user_id: ann.external_id })
  const changed = await project.call("PATCH", path(ann.id), { body: { external_id: "ann-2" } })
  expect(changed.body.data).toMatchObject({ external_id: "ann-2", devices: 1 })
  expect(await owners(project)).toEqual(["ann-2"])
})

describe("a merge", () => {
  test("gives devices and push messages to the subscriber that stays", async () => {
    const project = await service.project()
    const { project_id, account_id } = project
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const device = await addDevice(store, project_id, { user_id: from.external_id })
    const id = await addPush(device, { account_id, subscriber_id: from.id })
    const { body } = await project.post(path(into.id, "/merge"), { from_id: from.id })
    expect(body.data.devices).toBe(1)
    expect(await owners(project)).toEqual([into.external_id])
    const [row] = await store.read.select().from(messages).where(eq(messages.id, id))
    expect(row).toMatchObject({ subscriber_id: into.id, user_id: into.external_id })
  })

  test("keeps the devices that were used last, where two have too many together", async () => {
    const project = await service.project()
    const { project_id } = project
    const [into, from] = [await addSubscriber(project), await addSubscriber(project)]
    const at = (days: number) => isoFrom(millis() - days * 86_400_000)
    for (let number = 1; number < MOST_OF_USER; number++)
      await addDevice(store, project_id, { user_id: into.external_id, last_active_at: at(number) })
    const expired = { user_id: into.external_id, status: "expired" } as const
    const gone = await addDevice(store, project_id, { ...expired, last_active_at: at(0) })
    for (const days of [0, 200])
      await addDevice(store, project_id, { user_id: from.external_id, last_active_at: at(days) })
    await project.post(path(into.id, "/merge"), { from_id: from.id })
    const left = await devicesIn(project)
    expect(left).toHaveLength(MOST_OF_USER)
    expect(left.map(({ id }) => id)).not.toContain(gone.id)
    expect(left.map(({ last_active_at }) => last_active_at).sort()[0]).toStartWith(
      at(99).slice(0, 10),
    )
    expect(await broken(project)).toEqual([])
  })
})

test("an export and an erasure find the push messages of a person also by the name of their device", async () => {
  const project = await service.project()
  const { project_id, account_id } = project
  const ann = await addSubscriber(project)
  const device = await addDevice(store, project_id, { user_id: ann.external_id })
  for (const subscriber_id of [ann.id, null]) await addPush(device, { account_id, subscriber_id })
  const ben = await addDevice(store, project_id, { user_id: "ben" })
  const kept = await addPush(ben, { account_id })
  const held = (await project.get(path(ann.id, "/export"))).body.data
  expect(held.devices).toMatchObject([{ id: device.id, token: device.token }])
  const shown = { channel: "push", device_id: device.device_id, title: "Ding", status: "queued" }
  expect(held.messages).toMatchObject([shown, shown])
  const { body } = await project.post(path(ann.id, "/erase"), { confirm: ann.external_id })
  expect(body.data.counts).toMatchObject({ devices: 1, messages: 2 })
  const ours = and(eq(messages.project_id, project_id), eq(messages.channel, "push"))
  expect((await store.read.select().from(messages).where(ours)).map(({ id }) => id)).toEqual([kept])
  expect(await owners(project)).toEqual(["ben"])
  expect(await broken(project)).toEqual([])
})

test("a subscriber is reached by push where one of their devices is active and not of a test", async () => {
  const project = await service.project()
  const ann = await addSubscriber(project)
  const user_id = ann.external_id
  const push = async () => (await project.get(path(ann.id, "/reachability"))).body.data.push
  for (const given of [{ status: "expired" }, { status: "disabled" }] as const)
    await addDevice(store, project.project_id, { user_id, ...given })
  await addDevice(store, project.project_id, { user_id, scope: "environment:app:test" })
  expect(await push()).toMatchObject({ allowed: false, reason: "no_address" })
  await addDevice(store, project.project_id, { user_id, scope: "environment:app:live" })
  expect(await push()).toMatchObject({ allowed: true, reason: null })
})

test("a total of devices that is wrong is found", async () => {
  const project = await service.project()
  await addDevice(store, project.project_id)
  await store.tx((tx) => bump(tx, project.project_id, "devices.status.active", 1))
  expect(await broken(project)).toMatchObject([
    { name: "I5", what: "The counter devices.status.active is 2, but there are 1 rows." },
  ])
})
