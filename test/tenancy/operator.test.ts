import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { LOCAL } from "../../src/audit-log/audit-log"
import { currentPeriod } from "../../src/core/time"
import { quotas } from "../../src/plans/tables"
import * as accounts from "../../src/tenancy/accounts"
import { type PlanChange, setPlan } from "../../src/tenancy/operator"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { type Team, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

const change = (account_id: string, plan: string, limits?: PlanChange["limits"]) =>
  store.tx((tx) => setPlan(tx, account_id, { plan, limits }))

const toAtMost = (emails_per_month: number | null) => ({
  emails_per_month,
  sends_per_second: null,
  requests_per_minute: null,
})

const sender = ({ owner, account_id }: Team) => {
  const headers = { "x-account-id": account_id }
  return () => owner.post("/v1/emails", mail(), headers)
}

async function send(times: number, once: ReturnType<typeof sender>) {
  for (let count = 0; count < times; count++) expect((await once()).status).toBe(201)
}

const counted = async (subject: string) => {
  const mine = and(eq(quotas.subject, subject), eq(quotas.period, currentPeriod()))
  return (await store.read.select().from(quotas).where(mine))[0]?.used
}

const remaining = async ({ owner, account_id }: Team) =>
  (await owner.get("/v1/usage", { "x-account-id": account_id })).body.data.email.remaining

const refused = [402, "payment_required"]

describe("a change of plan", () => {
  test("acts at the next request, in either direction", async () => {
    const home = await team(service, "pro")
    const once = sender(home)
    await change(home.account_id, "starter", toAtMost(2))
    await send(2, once)
    const full = await once()
    expect(refusal(full)).toEqual(refused)
    expect(full.body.error.details).toMatchObject({ used: 2, limit: 2, plan: "starter" })
    await change(home.account_id, "pro", toAtMost(3))
    await send(1, once)
    expect(refusal(await once())).toEqual(refused)
    await change(home.account_id, "enterprise", null)
    await send(1, once)
  })

  test("loses nothing that was sent without a limit", async () => {
    const home = await team(service, "pro")
    const once = sender(home)
    await change(home.account_id, "pro", toAtMost(10))
    await send(2, once)
    await change(home.account_id, "pro", toAtMost(null))
    await send(3, once)
    await change(home.account_id, "pro", toAtMost(6))
    expect(await remaining(home)).toBe(1)
    await send(1, once)
    expect(refusal(await once())).toEqual(refused)
    expect(await counted(home.account_id)).toBe(6)
  })

  test("to the free plan and back counts what was sent on either, once", async () => {
    const home = await team(service, "pro")
    const once = sender(home)
    const person_subject = `user:${home.owner.id}`
    await change(home.account_id, "pro", toAtMost(5))
    await send(2, once)
    await change(home.account_id, "free", toAtMost(5))
    await send(2, once)
    expect(await counted(person_subject)).toBe(4)
    await change(home.account_id, "pro", toAtMost(5))
    await send(1, once)
    expect(refusal(await once())).toEqual(refused)
    expect(await counted(home.account_id)).toBe(5)
  })

  test("that takes an account out of the free ones gives the others their share back", async () => {
    const home = await team(service, "free")
    const second = await another(home)
    await change(home.account_id, "free", toAtMost(4))
    await change(second.account_id, "free", toAtMost(4))
    await send(3, sender(home))
    await send(1, sender(second))
    expect(refusal(await sender(second)())).toEqual(refused)
    await change(home.account_id, "pro", toAtMost(100))
    await send(3, sender(second))
    expect(refusal(await sender(second)())).toEqual(refused)
    await change(home.account_id, "free", toAtMost(8))
    await send(1, sender(home))
    expect(refusal(await sender(home)())).toEqual(refused)
  })

  test("does not wait for what drains by the old rate of sends", async () => {
    const home = await team(service, "free")
    const headers = { "x-account-id": home.account_id }
    const batch = { messages: Array.from({ length: 60 }, () => mail()) }
    expect((await home.owner.post("/v1/emails/batch", batch, headers)).status).toBe(200)
    expect(refusal(await sender(home)())).toEqual([429, "rate_limited"])
    await change(home.account_id, "scale")
    await send(1, sender(home))
  })

  test("while a hundred send: none is lost, none is counted twice", async () => {
    const home = await team(service, "pro")
    const once = sender(home)
    await change(home.account_id, "pro", toAtMost(1000))
    const sends = Array.from({ length: 100 }, once)
    const changes = [toAtMost(900), toAtMost(800)].map((limits) =>
      change(home.account_id, "pro", limits),
    )
    const answers = await Promise.all(sends)
    await Promise.all(changes)
    await send(1, once)
    const accepted = answers.filter(({ status }) => status === 201).length + 1
    expect(accepted).toBe(101)
    expect(await counted(home.account_id)).toBe(accepted)
  })
})

/** A second free account of the same person, with a project. */
async function another({ owner, ...home }: Team): Promise<Team> {
  const made = await owner.post("/v1/accounts", { name: "Another" })
  const account_id = made.body.data.id
  const project = { name: "Default" }
  await owner.post("/v1/projects", project, { "x-account-id": account_id })
  return { ...home, owner, account_id }
}

describe("a free account that gets another owner", () => {
  test("is counted among his from then on, and no longer among those of the one before", async () => {
    const [from, to] = [await team(service, "free"), await team(service, "free")]
    for (const { account_id } of [from, to]) await change(account_id, "free", toAtMost(5))
    const second = await another(from)
    await change(second.account_id, "free", toAtMost(5))
    await send(2, sender(from))
    await send(2, sender(second))
    await send(1, sender(to))
    const heir = await store.tx(async (tx) => {
      await accounts.set(tx, from.account_id, { owner_user_id: to.owner.id })
      return to.owner.id
    })
    await send(3, sender(second))
    expect(refusal(await sender(second)())).toEqual(refused)
    await send(2, sender(to))
    expect(refusal(await sender(to)())).toEqual(refused)
    expect(await counted(`user:${heir}`)).toBe(5)
  })

  test("also when nobody owned it before", async () => {
    const home = await team(service, "free")
    await change(home.account_id, "free", toAtMost(4))
    await send(2, sender(home))
    const key = await service.project({ plan: "free", limits: toAtMost(4) })
    expect((await key.post("/v1/emails", mail())).status).toBe(201)
    await store.tx((tx) => accounts.adopt(tx, key.account_id, home.owner.id, LOCAL))
    await send(1, sender(home))
    expect(refusal(await sender(home)())).toEqual(refused)
    expect(refusal(await key.post("/v1/emails", mail()))).toEqual(refused)
  })
})

test("free accounts of one person with numbers of their own are each held to theirs", async () => {
  const home = await team(service, "free")
  const second = await another(home)
  await change(home.account_id, "free", toAtMost(2))
  await change(second.account_id, "free", toAtMost(50))
  const work = [sender(second), sender(home)].flatMap((once) => Array.from({ length: 10 }, once))
  const answers = await Promise.all(work)
  const accepted = (half: typeof answers) => half.filter(({ status }) => status === 201).length
  expect(accepted(answers.slice(0, 10))).toBe(10)
  expect(accepted(answers.slice(10))).toBeLessThanOrEqual(2)
})
