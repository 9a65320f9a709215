import { afterAll, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { eq } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { accountMembers } from "../../src/identity/tables"
import { checkDatabase, type DatabaseFinding } from "../../src/operations/check-database"
import { bump } from "../../src/store/counters"
import { readDatabase } from "../../src/store/open"
import { topics } from "../../src/topics/tables"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { testService } from "../harness/service"

const service = await testService()
afterAll(() => service[Symbol.asyncDispose]())

async function findings(): Promise<DatabaseFinding[]> {
  const { blobs, inbound_blobs } = service.parts
  const { folder, database_url } = service
  const path = `${folder}/test.db`
  const where = { ...settings(), data_dir: folder, database_url, "storage.sqlite.path": path }
  const found: DatabaseFinding[] = []
  await readDatabase(where, async (db) => {
    const parts = { db, blobs, inbound_blobs, onProgress: () => {} }
    for await (const finding of checkDatabase(parts)) found.push(finding)
  })
  return found.filter(({ outcome }) => outcome !== "pass")
}

test("a database is checked beside the service that works with it, on either engine", async () => {
  const project = await service.project()
  const attachments = [{ filename: "a.bin", content: Buffer.alloc(70_000, 1).toString("base64") }]
  const sent = await project.post("/v1/emails", mail({ attachments }))
  expect(sent.status).toBe(201)
  await deliverAll(service)
  expect(await findings()).toEqual([])

  await service.store.tx((tx) => bump(tx, project.project_id, "templates", 3))
  for (let folder = 0; folder < 256; folder++) {
    for (const file of await service.parts.blobs.list(folder))
      rmSync(service.parts.blobs.path(file))
  }
  expect(await findings()).toMatchObject([
    { check: "I5", outcome: "fail", found: 1 },
    { check: "blobs_missing", outcome: "fail", found: 1 },
  ])
})

test("rows whose project or account is missing are found, because no key and no list reaches them", async () => {
  const before = (await findings()).length
  const project = await service.project()
  await project.post("/v1/topics", { key: "news", name: "News" })
  const lost = { account_id: newId(), project_id: newId() }
  const moved = eq(topics.project_id, project.project_id)
  const member = { account_id: lost.account_id, user_id: newId(), joined_at: now() }
  await service.store.tx(async (tx) => {
    await tx.update(topics).set({ project_id: lost.project_id }).where(moved)
    await tx.insert(accountMembers).values({ ...member, role: "owner" })
    await bump(tx, project.project_id, "topics", -1)
  })
  const found = await findings()
  expect(found).toHaveLength(before + 1)
  expect(found[0]).toMatchObject({
    ...{ check: "owners", outcome: "fail", found: 2 },
    examples: [
      `topics: 1 rows of the project ${lost.project_id}`,
      `account_members: 1 rows of the account ${lost.account_id}`,
    ],
  })
})
