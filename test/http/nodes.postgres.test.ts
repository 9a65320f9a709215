import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { Elysia } from "elysia"
import { createApp } from "../../src/app"
import { settings } from "../../src/core/config"
import { clock } from "../../src/core/time"
import { SendBatcher } from "../../src/messages/accept"
import { messages } from "../../src/messages/tables"
import { openStore } from "../../src/store/open"
import { setPlan, setStatus } from "../../src/tenancy/operator"
import { Meter } from "../../src/tenancy/usage"
import { client, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const first = await sharedService()

/** Another node on the same database, which knows nothing of the first one. */
const store = await openStore({ ...settings(), database_url: first.database_url })
const parts = { ...first.parts, store, intake: new SendBatcher(store), meter: new Meter(store) }
const second = createApp(parts) as unknown as Elysia

const { read } = clock
clock.read = () => Date.UTC(2026, 10, 21, 10, 0, 1) // all of a test in one minute
afterAll(async () => {
  clock.read = read
  await store.close()
})

/** The same project, asked at either node. */
const atBoth = (project: TestProject) => [project, client(second, project.key)] as const

const among = (answers: { status: number }[], wanted: number) =>
  answers.filter(({ status }) => status === wanted).length

test("a thousand sends at two nodes against five hundred: exactly five hundred", async () => {
  const project = await first.project({ limits: { emails_per_month: 500 } })
  const nodes = atBoth(project)
  const answers = await Promise.all(
    Array.from({ length: 1000 }, (_, at) => nodes[at % 2 ? 1 : 0].post("/v1/emails", mail())),
  )
  expect([among(answers, 201), among(answers, 402)]).toEqual([500, 500])
  const mine = eq(messages.project_id, project.project_id)
  expect(await store.read.select().from(messages).where(mine)).toHaveLength(500)
  const { email } = (await nodes[1].get("/v1/usage")).body.data
  expect(email).toEqual({ used: 500, limit: 500, remaining: 0 })
})

test("a request window holds at two nodes, but for a tenth", async () => {
  const project = await first.project({ plan: "starter" })
  const nodes = atBoth(project)
  const answers = await Promise.all(
    Array.from({ length: 800 }, (_, at) => nodes[at % 2 ? 1 : 0].get("/v1/settings")),
  )
  const admitted = among(answers, 200)
  expect(admitted + among(answers, 429)).toBe(800)
  expect(admitted).toBeGreaterThanOrEqual(240)
  expect(admitted).toBeLessThanOrEqual(330)
  const refused = await nodes[1].get("/v1/settings")
  expect(refusal(refused)).toEqual([429, "rate_limit_exceeded"])
  expect(refused.headers.get("retry-after")).toBe("59")
})

test("what one node is told, the other one knows at the next request", async () => {
  const project = await first.project({ plan: "pro" })
  const [here, there] = atBoth(project)
  const { account_id } = project
  expect((await there.post("/v1/emails", mail())).status).toBe(201)
  const limits = { emails_per_month: 1 }
  await first.store.tx((tx) => setPlan(tx, account_id, { plan: "starter", limits }))
  expect(refusal(await there.post("/v1/emails", mail()))).toEqual([402, "payment_required"])
  const status = (to: "locked" | "active") =>
    first.store.tx((tx) => setStatus(tx, account_id, { status: to, reason: null }))
  await status("locked")
  expect(refusal(await there.get("/v1/settings"))).toEqual([403, "account_locked"])
  await status("active")
  expect((await there.get("/v1/settings")).status).toBe(200)
  await here.call("DELETE", `/v1/api-keys/${project.key_id}`)
  expect(refusal(await there.get("/v1/settings"))).toEqual([401, "unauthorized"])
})
