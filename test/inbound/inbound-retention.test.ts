import { expect, test } from "bun:test"
import { existsSync, utimesSync } from "node:fs"
import { openBlobs } from "../../src/core/blobs"
import { firstIdAt, newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import { purgeInbound, remove } from "../../src/inbound/inbound-retention"
import { inboundContents, inboundEmails, inboundFiles, inboundRaws } from "../../src/inbound/tables"
import { fileSweeper } from "../../src/operations/file-sweep"
import { addInbound } from "../harness/inbound-rows"
import { addProject } from "../harness/project-rows"
import { testStore } from "../harness/store"

const DAY = 86_400_000

test("mail of a project that is too old goes with its contents, and newer mail stays", async () => {
  await using test = await testStore()
  const { store } = test
  const owner = await addProject(store)
  const idAt = (days: number, at: number) =>
    firstIdAt(millis() - days * DAY).replace(/.{12}$/, String(at).padStart(12, "0"))
  for (let at = 0; at < 3; at++) await addInbound(store, owner, { id: idAt(31, at) })
  const fresh = await addInbound(store, owner, { id: idAt(29, 0) })
  for (const { id } of await store.read.select().from(inboundEmails)) {
    const raw = { inbound_id: id, raw: Buffer.from("bytes") }
    await store.tx((tx) => tx.insert(inboundRaws).values(raw))
  }

  const before = isoFrom(millis() - 30 * DAY)
  const { project_id } = owner
  expect(await purgeInbound(store, newId(), before)).toBe(0)
  expect(await purgeInbound(store, project_id, before)).toBe(3)
  expect(await purgeInbound(store, project_id, before)).toBe(0)
  const left = await store.read.select().from(inboundEmails)
  expect(left.map(({ id }) => id)).toEqual([fresh.id])
  expect(await store.read.select().from(inboundContents)).toHaveLength(1)
  expect(await store.read.select().from(inboundFiles)).toHaveLength(1)
  const raws = await store.read.select().from(inboundRaws)
  expect(raws).toEqual([{ inbound_id: fresh.id, raw: Buffer.from("bytes") }])
})

test("mail that is not processed yet stays, however old it is", async () => {
  await using test = await testStore()
  const { store } = test
  const owner = await addProject(store)
  const old = firstIdAt(millis() - 40 * DAY)
  await addInbound(store, owner, { id: old, status: "received" })
  const purge = () => purgeInbound(store, owner.project_id, isoFrom(millis() - 30 * DAY))
  expect(await purge()).toBe(0)
  await store.tx((tx) => tx.update(inboundEmails).set({ status: "failed" }))
  expect(await purge()).toBe(1)
})

test("a file goes with the last mail that names it, and a young file stays", async () => {
  await using test = await testStore()
  const { store, folder } = test
  const blobs = openBlobs(`${folder}/inbound`)
  const owner = await addProject(store)
  const put = async (text: string, hours: number) => {
    const { sha256 } = await blobs.put(Buffer.from(text))
    const then = (millis() - hours * 3_600_000) / 1000
    utimesSync(blobs.path(sha256), then, then)
    return sha256
  }
  const [shared, young, lost] = [
    await put("shared", 2),
    await put("young", 0),
    await put("lost", 2),
  ]
  const first = await addInbound(store, owner, { raw_sha256: shared })
  const second = await addInbound(store, owner, { raw_sha256: shared })
  const sweep = fileSweeper(store, blobs, inboundFiles)
  const all = async () => {
    await sweep.all()
    return [shared, young, lost].map((sha256) => existsSync(blobs.path(sha256)))
  }

  expect(await all()).toEqual([true, true, false])
  await store.tx((tx) => remove(tx, [first.id]))
  expect(await all()).toEqual([true, true, false])
  await store.tx((tx) => remove(tx, [second.id]))
  expect(await all()).toEqual([false, true, false])
})
