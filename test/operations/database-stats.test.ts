import { afterAll, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { eq, getTableName } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { projects } from "../../src/identity/tables"
import { OVER } from "../../src/jobs/work-item"
import { messageContents, messages } from "../../src/messages/tables"
import { databaseStats } from "../../src/operations/database-stats"
import { requestLog } from "../../src/request-log/tables"
import { addProject } from "../harness/project-rows"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { sampleRow, schemaTables } from "../harness/table-rows"

quietLog()

const base = await testStore()
afterAll(() => base[Symbol.asyncDispose]())
const { store } = base

const DAY = 86_400_000

/** An id as it was made so many days ago. */
const idOf = (days: number) => Bun.randomUUIDv7("hex", Date.now() - days * DAY)

type Owner = { account_id: string; project_id: string }

async function addMessages(owner: Owner, days: number, many: number, length: number) {
  for (let at = 0; at < many; at += 200) {
    await store.tx(async (tx) => {
      for (let n = at; n < Math.min(many, at + 200); n++) {
        const id = idOf(days)
        const given = { ...owner, id, state: OVER, channel: "email", tags: [], recipients: [] }
        await tx.insert(messages).values(sampleRow(messages, given) as never)
        const content = { text: randomBytes(length / 2).toString("hex") } // nothing to compress
        await tx.insert(messageContents).values({ message_id: id, content })
      }
    })
  }
}

const look = () => databaseStats(store.read, settings())

test("every table has its bytes and its end, and the bytes of projects add up to those of the tables", async () => {
  const [small, large] = [await addProject(store), await addProject(store)]
  await addMessages(small, 1, 200, 2000)
  await addMessages(large, 1, 200, 8000)
  await store.tx((tx) =>
    tx
      .insert(requestLog)
      .values(sampleRow(requestLog, { id: newId(), created_at: now() }) as never),
  )
  const stats = await look()
  const names = (await schemaTables()).map(getTableName)
  expect(stats.tables.map(({ table }) => table).sort()).toEqual(names.sort())
  expect(stats.tables[0]?.table).toBe("message_contents")
  expect(stats.tables.find(({ table }) => table === "messages")).toMatchObject({
    rows: 400,
    kept: "90 days (messages_days)",
  })
  expect(stats.bytes).toBeGreaterThanOrEqual(
    stats.tables.reduce((sum, one) => sum + one.bytes, 0) * 0.9,
  )

  const bytesOf = ({ project_id }: Owner) =>
    stats.projects.find((one) => one.project_id === project_id)?.bytes ?? 0
  const ratio = bytesOf(large) / bytesOf(small)
  expect(ratio).toBeGreaterThan(2)
  expect(ratio).toBeLessThan(4.2)
  const held = stats.tables.filter(({ rows }) => rows > 0).reduce((sum, one) => sum + one.bytes, 0)
  const shared = stats.projects.reduce((sum, one) => sum + one.bytes, 0)
  expect(Math.abs(shared - held)).toBeLessThan(1000)
})

test("what retention frees follows the days of each project", async () => {
  const before = await look()
  const [usual, short] = [await addProject(store), await addProject(store)]
  const others = { inbound_days: 30, webhook_deliveries_days: 30, events_days: 30 }
  const retention = { messages_days: 20, bodies_days: 10, ...others }
  await store.tx((tx) =>
    tx.update(projects).set({ settings: { retention } }).where(eq(projects.id, short.project_id)),
  )
  await addMessages(usual, 26, 400, 4000) // contents end in four days
  await addMessages(short, 9.5, 400, 4000) // contents end in half a day, messages in ten
  await addMessages(usual, 2, 400, 4000) // contents end in 28 days
  const after = await look()
  const contents = after.tables.find(({ table }) => table === "message_contents")?.bytes ?? 0
  const grown = (at: number) => (after.frees[at]?.bytes ?? 0) - (before.frees[at]?.bytes ?? 0)
  expect(after.frees.map(({ within_days }) => within_days)).toEqual([1, 7, 30])
  expect(grown(0)).toBeGreaterThan(contents * 0.2)
  expect(grown(1)).toBeGreaterThan(grown(0) * 1.8)
  expect(grown(2)).toBeGreaterThan(grown(1) * 1.3)
  expect(after.grows_by_a_day).toBeGreaterThan(before.grows_by_a_day)
})

test("a database without rows has no forecast", async () => {
  await using empty = await testStore()
  const stats = await databaseStats(empty.store.read, settings())
  expect(stats.frees.map(({ bytes }) => bytes)).toEqual([0, 0, 0])
  expect(stats.projects).toEqual([])
})
