import { expect, test } from "bun:test"
import { rmSync, statSync, writeFileSync } from "node:fs"
import { eq } from "drizzle-orm"
import { newId } from "../../../src/core/ids"
import { metricsText } from "../../../src/core/metrics"
import * as longJobs from "../../../src/jobs/long-jobs"
import { jobs } from "../../../src/jobs/tables"
import { messageFiles } from "../../../src/messages/tables"
import { takeFolder } from "../../../src/operations/backup/backup-folder"
import {
  backupCreate,
  backupFailed,
  backupLacksFiles,
  failureLetter,
  lackingLetter,
  mailOperators,
  requestBackup,
  requestDueBackup,
  runBackup,
} from "../../../src/operations/backup/backup-job"
import { backupWarnings } from "../../../src/operations/backup/backup-state"
import { seat } from "../../../src/tenancy/accounts"
import { refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { type Person, person, team } from "../../harness/people"
import { quietLog } from "../../harness/quiet"
import { testService } from "../../harness/service"
import { claim, completeAll } from "../../jobs/by-hand"

const clock = movableClock()
const lines = quietLog()
const HOUR = 3600
const BACKUPS = "/v1/admin/backups"

/** A server with an operator, whose work is done by hand. */
async function backedUp(schedule = "daily") {
  const service = await testService({
    webhooks: { "backup.schedule": schedule, "storage.min_free_mb": 0, "backup.keep": 2 },
  })
  const { store, parts } = service
  const operator = await person(service, "op@people.test", true)
  const handlers = {
    [backupCreate.name]: runBackup(store, parts.backups),
    [backupFailed.name]: mailOperators(store, parts.mail, failureLetter),
    [backupLacksFiles.name]: mailOperators(store, parts.mail, lackingLetter),
  }
  return {
    ...service,
    operator,
    /** What a server does each minute. */
    look: () => requestDueBackup(store, { "backup.schedule": schedule }),
    /** Runs what is due. Returns the kinds of it. */
    async work() {
      const due = await claim(store, 10, { owner: newId(), lease_ms: 60_000 })
      for (const job of due) await handlers[job.name]?.run(job.payload as never, job)
      await store.tx((tx) => completeAll(tx, due))
      return due.map(({ name }) => name)
    },
    warnings: () => backupWarnings(store.read, { "backup.schedule": schedule }),
  }
}

const listed = async ({ get }: Person) => (await get(BACKUPS)).body.data

test("an operator makes a backup, follows its job, and finds it in the list", async () => {
  await using it = await backedUp()
  const asked = await it.operator.post(BACKUPS)
  expect(asked.status).toBe(201)
  expect(asked.body.data).toMatchObject({ type: "backup.create", status: "queued" })
  expect(await it.work()).toEqual(["backup.create"])
  const [backup] = await listed(it.operator)
  expect(backup).toEqual({
    id: expect.any(String),
    size: expect.any(Number),
    verified: true,
    created_at: expect.any(String),
  })
  const [{ path = "" } = {}] = await it.parts.backups.list()
  expect(statSync(path).size).toBe(backup.size)

  const { account_id, project_id } = await team(it)
  await it.store.tx((tx) => seat(tx, account_id, it.operator.id, "admin"))
  const headers = { "x-account-id": account_id, "x-project-id": project_id }
  const job = await it.operator.get(`/v1/jobs/${asked.body.data.id}`, headers)
  const { id, size, verified } = backup
  expect(job.body.data).toMatchObject({ status: "completed", result: { id, size, verified } })
  const { done, total } = job.body.data.progress
  expect(done).toBe(total)
  expect(total).toBeGreaterThan(size)
  expect(metricsText()).toMatch(/^belfry_backup_last_success_timestamp \d+$/m)
})

test("nobody else sees the backups, makes one, or reads the job", async () => {
  await using it = await backedUp()
  const { owner, project_id } = await team(it)
  const project = await it.project()
  const { id } = (await it.operator.post(BACKUPS)).body.data
  for (const other of [owner, project, it.anybody]) {
    const answers = [await other.get(BACKUPS), await other.post(BACKUPS)]
    expect(answers.map(({ status }) => status)).toEqual(
      other === it.anybody ? [401, 401] : [403, 403],
    )
  }
  const headers = { "x-project-id": project_id }
  expect((await owner.get(`/v1/jobs/${id}`, headers)).status).toBe(404)
  expect((await owner.post(`/v1/jobs/${id}/cancel`, {}, headers)).status).toBe(404)
  expect((await project.get(`/v1/jobs/${id}`)).status).toBe(404)
})

test("while one runs, another one is refused", async () => {
  await using it = await backedUp()
  const first = await it.operator.post(BACKUPS)
  const refused = await it.operator.post(BACKUPS)
  expect(refusal(refused)).toEqual([409, "conflict"])
  const details = { reason: "running", job_id: first.body.data.id }
  expect(refused.body.error.details).toEqual(details)
  await it.work()
  expect((await it.operator.post(BACKUPS)).status).toBe(201)
})

test("a cancelled backup leaves nothing, and the next one can be made", async () => {
  await using it = await backedUp()
  const { account_id, project_id } = await team(it)
  await it.store.tx((tx) => seat(tx, account_id, it.operator.id, "admin"))
  const { id } = (await it.operator.post(BACKUPS)).body.data
  const headers = { "x-account-id": account_id, "x-project-id": project_id }
  const cancelled = await it.operator.post(`/v1/jobs/${id}/cancel`, {}, headers)
  expect(cancelled.body.data.status).toBe("cancelled")
  await it.work()
  expect(await listed(it.operator)).toEqual([])
  expect((await it.operator.post(BACKUPS)).status).toBe(201)
})

test("a backup waits for another one into the same folder, and tells nobody of a failure", async () => {
  await using it = await backedUp()
  const { id } = (await it.operator.post(BACKUPS)).body.data
  const job = runBackup(it.store, it.parts.backups)
  const run = () => job.run({ job_id: id }, {} as never)
  const release = await takeFolder(`${it.folder}/backups`)
  const waits = { retry: expect.stringContaining("is running already") }
  expect(await run()).toMatchObject(waits)
  expect(await it.warnings()).toEqual([])
  release()
  expect(await run()).toEqual({})
  expect(await listed(it.operator)).toHaveLength(1)
})

test("the list is read page by page, the newest first", async () => {
  await using it = await backedUp()
  for (let number = 0; number < 3; number++) {
    await it.operator.post(BACKUPS)
    await it.work()
  }
  const all = await listed(it.operator)
  expect(all).toHaveLength(2) // backup.keep
  const first = await it.operator.get(`${BACKUPS}?per_page=1`)
  expect(first.body).toMatchObject({ data: [all[0]], has_more: true, meta: { total: 2 } })
  const rest = await it.operator.get(`${BACKUPS}?cursor=${first.body.meta.next_cursor}`)
  expect(rest.body).toMatchObject({ data: [all[1]], has_more: false })
})

test("a daily schedule makes the first one after an hour, then one each day", async () => {
  await using it = await backedUp()
  await it.look()
  clock.advance({ seconds: HOUR - 60 })
  await it.look()
  expect(await it.work()).toEqual([])
  clock.advance({ seconds: 120 })
  await it.look()
  await it.look() // another node
  expect(await it.work()).toEqual(["backup.create"])
  clock.advance({ seconds: 23 * HOUR })
  await it.look()
  expect(await it.work()).toEqual([])
  clock.advance({ seconds: HOUR })
  await it.look()
  expect(await it.work()).toEqual(["backup.create"])
})

test("a failed backup is told once a day, seen by /readyz, and tried again each hour", async () => {
  await using it = await backedUp()
  const dir = `${it.folder}/backups`
  writeFileSync(dir, "not a folder")
  await it.operator.post(BACKUPS)
  expect(await it.work()).toEqual(["backup.create"])
  expect(await it.work()).toEqual(["backup.failed"])
  expect(it.mails).toEqual([
    expect.objectContaining({ to: "op@people.test", kind: "backup_failed" }),
  ])
  expect(it.mails[0]?.text).toContain("EEXIST")
  expect(await it.warnings()).toEqual([expect.stringContaining("Backups fail since 20")])
  expect(await it.warnings()).toEqual([expect.stringContaining("There is none yet.")])
  expect(lines().join()).toContain("the backup failed")

  clock.advance({ seconds: HOUR + 1 })
  await it.look()
  expect(await it.work()).toEqual(["backup.create"])
  expect(await it.work()).toEqual([]) // told already
  clock.advance({ seconds: 24 * HOUR })
  await it.look()
  await it.work()
  expect(await it.work()).toEqual(["backup.failed"])
  expect(it.mails).toHaveLength(2)

  rmSync(dir)
  clock.advance({ seconds: HOUR + 1 })
  await it.look()
  await it.work()
  expect(await it.warnings()).toEqual([])
  expect(await it.parts.backups.list()).toHaveLength(1)
})

/** A file of a message, which is gone from its folder. */
async function lostFile({ store, parts }: Awaited<ReturnType<typeof backedUp>>) {
  const content = Buffer.from("attached")
  const { sha256 } = await parts.blobs.put(content)
  await store.tx((tx) => tx.insert(messageFiles).values({ message_id: newId(), sha256 }))
  rmSync(parts.blobs.path(sha256))
  return { sha256, putBack: () => parts.blobs.put(content) }
}

test("a backup without a file that a row names is told once, and /readyz warns until one has it", async () => {
  await using it = await backedUp()
  const make = async () => {
    await it.operator.post(BACKUPS)
    return [await it.work(), await it.work()]
  }
  const { putBack } = await lostFile(it)
  expect(await make()).toEqual([["backup.create"], ["backup.lacks_files"]])
  expect(await listed(it.operator)).toMatchObject([{ verified: true, missing: 1 }])
  expect(it.mails).toEqual([
    expect.objectContaining({ to: "op@people.test", kind: "backup_lacks_files" }),
  ])
  expect(it.mails[0]?.text).toContain("lacks 1 file that rows of the database name")
  const warned = [expect.stringMatching(/^The backup of 20\S+ lacks 1 file that rows/)]
  expect(await it.warnings()).toEqual(warned)
  expect(await make()).toEqual([["backup.create"], []])
  expect(await it.warnings()).toEqual(warned)
  await putBack()
  await make()
  expect(await it.warnings()).toEqual([])
  expect(it.mails).toHaveLength(1)
})

test("a file that went with its row while the backup was made is told to nobody", async () => {
  await using it = await backedUp()
  const { id } = (await it.operator.post(BACKUPS)).body.data
  const { sha256 } = await lostFile(it)
  const { backups } = it.parts
  const job = runBackup(it.store, {
    ...backups,
    create: async (options) => {
      const made = await backups.create(options)
      await it.store.tx((tx) => tx.delete(messageFiles).where(eq(messageFiles.sha256, sha256)))
      return made
    },
  })
  await job.run({ job_id: id }, {} as never)
  expect(await backups.list()).toMatchObject([{ missing: 1 }])
  expect([await it.warnings(), it.mails]).toEqual([[], []])
})

test("a backup that does not come is warned of", async () => {
  await using it = await backedUp()
  await it.look()
  clock.advance({ seconds: 8 * HOUR })
  expect(await it.warnings()).toEqual([expect.stringContaining("No backup was made since")])
})

test("where the clock was ahead and is put right, the next backup comes at once, then by the schedule", async () => {
  for (const schedule of ["daily", "03:30"]) {
    await using it = await backedUp(schedule)
    clock.advance({ seconds: 400 * 24 * HOUR })
    await it.store.tx(requestBackup)
    expect(await it.work()).toEqual(["backup.create"])
    clock.advance({ seconds: -400 * 24 * HOUR })
    await it.look()
    expect(await it.work()).toEqual(["backup.create"])
    await it.look()
    expect(await it.work()).toEqual([])
    clock.advance({ seconds: 24 * HOUR })
    await it.look()
    expect(await it.work()).toEqual(["backup.create"])
    clock.advance({ seconds: -24 * HOUR })
  }
})

test("a backup that was queued while the clock was ahead gives way to the next one", async () => {
  await using it = await backedUp()
  clock.advance({ seconds: 400 * 24 * HOUR })
  const queued = await it.store.tx(requestBackup)
  clock.advance({ seconds: -400 * 24 * HOUR })
  expect(await it.work()).toEqual([])
  expect((await it.operator.post(BACKUPS)).status).toBe(201)
  const ended = await longJobs.lookup(it.store.read, longJobs.INSTANCE_JOB, queued.id)
  expect(ended).toMatchObject({ status: "failed", error: { code: "conflict" } })
  expect(refusal(await it.operator.post(BACKUPS))).toEqual([409, "conflict"])
  expect(await it.work()).toEqual(["backup.create"])
  expect(await listed(it.operator)).toHaveLength(1)
})

test("a backup whose work was lost with a damaged database gives way to the next one", async () => {
  await using it = await backedUp()
  const { id } = (await it.operator.post(BACKUPS)).body.data
  await it.store.tx((tx) => tx.delete(jobs).where(eq(jobs.name, backupCreate.name)))
  expect((await it.operator.post(BACKUPS)).status).toBe(201)
  const ended = await longJobs.lookup(it.store.read, longJobs.INSTANCE_JOB, id)
  expect(ended).toMatchObject({ status: "failed" })
  expect(await it.work()).toEqual(["backup.create"])
})

test("clocks of two nodes that differ a little make no backup twice", async () => {
  await using it = await backedUp("hourly")
  clock.advance({ seconds: 60 })
  await it.operator.post(BACKUPS)
  expect(await it.work()).toEqual(["backup.create"])
  clock.advance({ seconds: -60 })
  await it.look()
  expect(await it.work()).toEqual([])
})
