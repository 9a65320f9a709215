import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import * as longJobs from "../../src/jobs/long-jobs"
import { longJobs as rows } from "../../src/jobs/tables"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const { store } = service
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

async function begun(scopes = ["*"]) {
  const project = await service.project({ scopes })
  const { project_id } = project
  const made = await store.tx((tx) =>
    longJobs.begin(tx, project_id, { type: "webhook.replay", total: 10 }),
  )
  const { id } = made
  return {
    ...project,
    made,
    id,
    step: (step: longJobs.LongJobStep) =>
      store.tx((tx) => longJobs.progress(tx, project_id, id, step)),
    finish: (end?: longJobs.Ending) => store.tx((tx) => longJobs.finish(tx, project_id, id, end)),
    shown: async () => (await project.get(`/v1/jobs/${id}`)).body.data,
    cancel: () => project.post(`/v1/jobs/${id}/cancel`),
  }
}

test("a job is queued, then running, then completed with a result", async () => {
  const job = await begun(["email:read"]) // any scope will do
  expect(job.made).toEqual({
    id: expect.any(String),
    type: "webhook.replay",
    status: "queued",
    progress: { done: 0, total: 10, failed: 0 },
    result: null,
    error: null,
    created_at: expect.stringMatching(TIME),
    completed_at: null,
  })
  expect(await job.shown()).toEqual(job.made)
  expect(await job.step({ done: 4, failed: 1 })).toBe(true)
  expect(await job.step({ done: 4 })).toBe(true)
  const progress = { done: 8, total: 10, failed: 1 }
  expect(await job.shown()).toEqual({ ...job.made, status: "running", progress })
  await job.finish({ result: { id: "b" } })
  expect(await job.shown()).toEqual({
    ...job.made,
    status: "completed",
    progress,
    result: { id: "b" },
    completed_at: expect.stringMatching(TIME),
  })
})

test("a job that fails tells why, in at most a thousand characters", async () => {
  const job = await begun()
  await job.finish({ error: { code: "internal_error", message: "x".repeat(5000) } })
  const { status, error } = await job.shown()
  expect([status, error.code, error.message.length]).toEqual(["failed", "internal_error", 1000])
})

test("how much there is to do may be known later, and is then told", async () => {
  const { id, project_id, shown } = await begun()
  await store.tx((tx) => longJobs.progress(tx, project_id, id, { total: 77 }))
  expect(await shown()).toMatchObject({ status: "running", progress: { total: 77 } })
})

test("steps side by side are all counted, and one that is undone is not", async () => {
  const job = await begun()
  await Promise.all(Array.from({ length: 20 }, () => job.step({ done: 1 })))
  const undone = store.tx(async (tx) => {
    await longJobs.progress(tx, job.project_id, job.id, { done: 100 })
    throw new Error("undone")
  })
  await expect(undone).rejects.toThrow("undone")
  expect((await job.shown()).progress.done).toBe(20)
})

describe("cancelling", () => {
  test("ends it at once, and tells its worker to stop", async () => {
    const job = await begun()
    await job.step({ done: 2 })
    const cancelled = await job.cancel()
    expect([cancelled.status, cancelled.body.data.status]).toEqual([200, "cancelled"])
    expect(cancelled.body.data.completed_at).toMatch(TIME)
    expect(await job.step({ done: 1 })).toBe(false)
    await job.finish({ result: {} })
    expect(await job.shown()).toEqual(cancelled.body.data)
  })

  test("is 409 for what is over", async () => {
    for (const end of [{}, { error: { code: "timeout", message: "late" } }]) {
      const job = await begun()
      await job.finish(end)
      const refused = await job.cancel()
      expect(refusal(refused)).toEqual([409, "conflict"])
      expect(refused.body.error.details).toEqual({ reason: "finished", id: job.id })
    }
    const job = await begun()
    await job.cancel()
    expect(refusal(await job.cancel())).toEqual([409, "conflict"])
  })

  test("and finishing at once leave one of both", async () => {
    const job = await begun()
    const [cancelled] = await Promise.all([job.cancel(), job.finish({ result: 1 })])
    const { status } = await job.shown()
    expect(status).toBe(cancelled.status === 200 ? "cancelled" : "completed")
  })
})

test("a job of another project is as absent as one that never was", async () => {
  const [mine, theirs] = [await begun(), await begun()]
  for (const id of [theirs.id, NOBODY, "no-id"]) {
    expect(refusal(await mine.get(`/v1/jobs/${id}`))).toEqual([404, "not_found"])
    expect(refusal(await mine.post(`/v1/jobs/${id}/cancel`))).toEqual([404, "not_found"])
  }
  const step = (id: string) => store.tx((tx) => longJobs.progress(tx, mine.project_id, id, {}))
  expect([await step(theirs.id), await step(NOBODY)]).toEqual([false, false])
  expect((await theirs.shown()).status).toBe("queued")
})

test("people see the jobs of a project in which they have a role", async () => {
  const { owner, project_id, join } = await team(service)
  const { id } = await store.tx((tx) => longJobs.begin(tx, project_id, { type: "test.job" }))
  expect((await owner.get(`/v1/jobs/${id}`)).body.data.id).toBe(id)
  const member = await join("member")
  expect(refusal(await member.get(`/v1/jobs/${id}`))).toEqual([403, "forbidden"])
})

test("what ended a month ago is forgotten, what is open never", async () => {
  const [over, open] = [await begun(), await begun()]
  await over.finish()
  clock.advance({ seconds: 30 * 86_400 - 60 })
  while ((await longJobs.purgeEnded(store)) > 0);
  expect((await over.shown()).status).toBe("completed")
  clock.advance({ seconds: 120 })
  while ((await longJobs.purgeEnded(store)) > 0);
  const left = async (id: string) =>
    (await store.read.select().from(rows).where(eq(rows.id, id))).length
  expect([await left(over.id), await left(open.id)]).toEqual([0, 1])
})
