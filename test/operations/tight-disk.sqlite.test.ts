import { afterAll, expect, test } from "bun:test"
import { count, inArray } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { messageContents, messages } from "../../src/messages/tables"
import { tightDiskSweeper } from "../../src/operations/tight-disk"
import { movableClock } from "../harness/clock"
import { deliverAll, delivered } from "../harness/delivery"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { type TestProject, testService } from "../harness/service"

const logged = quietLog()
const clock = movableClock()
const service = await testService({ engine: "sqlite" })
afterAll(() => service[Symbol.asyncDispose]())
const { store } = service

const MB = 1024 * 1024
const HOUR = 3600

async function sendMany(project: TestProject, many: number): Promise<string[]> {
  const list = Array.from({ length: many }, () => mail())
  const reply = await project.post("/v1/emails/batch", { messages: list })
  expect(reply.status).toBe(200)
  return reply.body.data.results.map((one: { id: string }) => one.id)
}

const deliver = () => deliverAll(service, (email) => delivered(email))

async function contentsOf(ids: string[]): Promise<number> {
  const { message_id } = messageContents
  const rows = store.read.select({ n: count() }).from(messageContents)
  const [row] = await rows.where(inArray(message_id, ids))
  return Number(row?.n)
}

/** A disk whose free space is what `free` says, with a floor of 512 MB. */
const sweeper = (free: () => number, files: string[] = []) =>
  tightDiskSweeper(store, {
    disk: { free_bytes: () => free() * MB },
    min_free_mb: 512,
    sweepFiles: async () => void files.push("all"),
  })

test("below twice the floor contents of settled messages go, the oldest first, and no message goes", async () => {
  const project = await service.project()
  const old = await sendMany(project, 20)
  await deliver()
  clock.advance({ seconds: 30 * HOUR })
  const young = await sendMany(project, 20)
  await deliver()
  const waiting = await sendMany(project, 5)
  const later = await project.post("/v1/emails", mail({ scheduled_at: secondsFromNow(HOUR) }))

  await sweeper(() => 1024)()
  expect(await contentsOf([...old, ...young])).toBe(40)

  const old_ones_suffice = sweeper(() => (freed ? 2000 : 1000))
  let freed = false
  const watch = setInterval(async () => {
    freed ||= (await contentsOf(old)) === 0
  }, 1)
  await old_ones_suffice()
  clearInterval(watch)
  expect([await contentsOf(old), await contentsOf(young)]).toEqual([0, 20])

  const files: string[] = []
  await sweeper(() => 1000, files)()
  expect([await contentsOf(young), await contentsOf(waiting)]).toEqual([0, 5])
  expect(await contentsOf([later.body.id])).toBe(1)
  expect(files.length).toBeGreaterThan(0)
  const all = [...old, ...young, ...waiting]
  const rows = await store.read.select().from(messages).where(inArray(messages.id, all))
  expect(rows).toHaveLength(45)
  expect((await project.get(`/v1/emails/${old[0]}`)).body.data.status).toBe("delivered")
  expect((await project.get(`/v1/emails/${old[0]}/content`)).status).toBe(404)
  await project.post(`/v1/emails/${later.body.id}/cancel`)
  await deliver() // nothing is left for the next test
})

test("what is settled later goes with the next call, and the log says so once", async () => {
  const project = await service.project()
  const ids = await sendMany(project, 10)
  let free = 1000
  const sweep = sweeper(() => free)
  await sweep()
  expect(await contentsOf(ids)).toBe(10)
  await deliver()
  const told = () => logged().filter((line) => line.includes("almost full")).length
  const before = told()
  await sweep()
  await sweep()
  expect(await contentsOf(ids)).toBe(0)
  expect(told()).toBe(before)
  free = 4000
  await sweep()
  free = 1000
  await sweep()
  expect(told()).toBe(before + 1)
})

test("the files are looked through again when contents went, and not each minute", async () => {
  const project = await service.project()
  await sendMany(project, 3)
  await deliver()
  const files: string[] = []
  const sweep = sweeper(() => 1000, files)
  await sweep()
  const first = files.length
  expect(first).toBeGreaterThan(0)
  await sweep()
  expect(files.length).toBe(first)
  await sendMany(project, 3)
  await deliver()
  await sweep()
  expect(files.length).toBe(first + 1)
})

test("without a floor nothing goes", async () => {
  const project = await service.project()
  const ids = await sendMany(project, 3)
  await deliver()
  const disk = { free_bytes: () => 0 }
  await tightDiskSweeper(store, { disk, min_free_mb: 0, sweepFiles: async () => {} })()
  expect(await contentsOf(ids)).toBe(3)
})
