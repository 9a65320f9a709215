import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { boundsOf, currentPeriod, millisFrom, now } from "../../src/core/time"
import { accounts } from "../../src/identity/tables"
import { jobs } from "../../src/jobs/tables"
import { messages } from "../../src/messages/tables"
import { usageAlert } from "../../src/tenancy/quotas"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()

const limited = (emails_per_month: number) => service.project({ limits: { emails_per_month } })

const used = async (project: TestProject) => (await project.get("/v1/usage")).body.data.email

async function kept({ project_id }: TestProject): Promise<number> {
  const mine = eq(messages.project_id, project_id)
  return (await service.store.read.select().from(messages).where(mine)).length
}

test("a used-up month is 402, with everything there is to know", async () => {
  const project = await limited(2)
  expect((await project.post("/v1/emails", mail())).status).toBe(201)
  expect((await project.post("/v1/emails", mail())).status).toBe(201)
  const refused = await project.post("/v1/emails", mail())
  expect(refusal(refused)).toEqual([402, "payment_required"])
  const reset_at = boundsOf(currentPeriod()).end
  const details = { metric: "email", used: 2, limit: 2, reset_at, plan: "enterprise" }
  expect(refused.body.error.details).toEqual(details)
  expect(await kept(project)).toBe(2)
  expect(await used(project)).toEqual({ used: 2, limit: 2, remaining: 0 })

  clock.advance({ seconds: (millisFrom(reset_at) - millisFrom(now())) / 1000 })
  expect((await project.post("/v1/emails", mail())).status).toBe(201)
})

test("every recipient counts, copies included, and none is admitted alone", async () => {
  const project = await limited(4)
  const crowd = mail({ cc: ["c1@x.test", "c2@x.test"], bcc: "b@x.test" })
  const five = mail({ cc: ["c1@x.test", "c2@x.test", "c3@x.test"], bcc: "b@x.test" })
  expect(refusal(await project.post("/v1/emails", five))).toEqual([402, "payment_required"])
  expect(await used(project)).toMatchObject({ used: 0, remaining: 4 })
  expect((await project.post("/v1/emails", crowd)).status).toBe(201)
  expect(await used(project)).toMatchObject({ used: 4, remaining: 0 })
})

test("a thousand requests at once against five hundred: exactly five hundred", async () => {
  const project = await limited(500)
  const answers = await Promise.all(
    Array.from({ length: 1000 }, () => project.post("/v1/emails", mail())),
  )
  const count = (status: number) => answers.filter((one) => one.status === status).length
  expect([count(201), count(402)]).toEqual([500, 500])
  expect(await kept(project)).toBe(500)
  expect(await used(project)).toEqual({ used: 500, limit: 500, remaining: 0 })
})

test("a refused request may be repeated under the same key once there is room", async () => {
  const project = await limited(0)
  const send = () => project.post("/v1/emails", mail(), { "idempotency-key": "later" })
  expect((await send()).status).toBe(402)
  expect((await send()).status).toBe(402)
  await setLimit(project, 5)
  const [sent, again] = [await send(), await send()]
  expect([sent.status, again.status]).toEqual([201, 201])
  expect(again.body.id).toBe(sent.body.id)
  expect(await used(project)).toMatchObject({ used: 1 })
})

async function setLimit({ account_id }: TestProject, emails_per_month: number) {
  await service.store.tx((tx) =>
    tx.update(accounts).set({ limits: { emails_per_month } }).where(eq(accounts.id, account_id)),
  )
}

describe("a batch", () => {
  const batch = (count: number) => ({
    messages: Array.from({ length: count }, (_, at) => mail({ subject: `Number ${at}` })),
  })
  const strict = { "x-batch-validation": "strict" }

  test("that is permissive sends what fits, and names the rest", async () => {
    const project = await limited(3)
    const { status, body } = await project.post("/v1/emails/batch", batch(5))
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ total: 5, succeeded: 3, failed: 2 })
    const refused = body.data.results.filter((one: { error?: object }) => one.error)
    expect(refused.map((one: { index: number }) => one.index)).toEqual([3, 4])
    expect(refused[0].error).toMatchObject({
      code: "payment_required",
      details: { metric: "email", used: 3, limit: 3 },
    })
    expect(await used(project)).toMatchObject({ used: 3, remaining: 0 })
    expect(await kept(project)).toBe(3)
  })

  test("that is strict sends all or nothing", async () => {
    const project = await limited(3)
    const refused = await project.post("/v1/emails/batch", batch(4), strict)
    expect(refusal(refused)).toEqual([402, "payment_required"])
    expect(refused.body.error.details).toMatchObject({ used: 0, limit: 3 })
    expect([await kept(project), (await used(project)).used]).toEqual([0, 0])
    expect((await project.post("/v1/emails/batch", batch(3), strict)).status).toBe(200)
    expect(await used(project)).toMatchObject({ used: 3 })
  })

  test("and single sends together never pass the limit", async () => {
    const project = await limited(50)
    const work = Array.from({ length: 30 }, (_, at) =>
      at % 3 ? project.post("/v1/emails", mail()) : project.post("/v1/emails/batch", batch(5)),
    )
    await Promise.all(work)
    expect(await kept(project)).toBe(50)
    expect(await used(project)).toMatchObject({ used: 50, remaining: 0 })
  })
})

test("owners are told of 80 and of 100 percent, once each", async () => {
  const project = await limited(10)
  for (let count = 0; count < 12; count++) await project.post("/v1/emails", mail())
  const rows = await service.store.read.select().from(jobs).where(eq(jobs.name, usageAlert.name))
  const mine = rows
    .map(({ payload }) => payload as { account_id: string; share: number; used: number })
    .filter(({ account_id }) => account_id === project.account_id)
  expect(mine.map(({ share, used }) => [share, used]).sort()).toEqual([
    [100, 10],
    [80, 8],
  ])
})
