import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { currentPeriod, today } from "../../src/core/time"
import { accounts } from "../../src/identity/tables"
import { admit, countUsage } from "../../src/messages/admission"
import { accept } from "../../src/messages/pipeline"
import { notifyOwners } from "../../src/tenancy/quotas"
import { usageDays } from "../../src/tenancy/tables"
import { add } from "../../src/tenancy/usage"
import { complaints, refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import { type Person, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { letter } from "../messages/letters"

const service = await sharedService()
const { store } = service

type Asking = Pick<Person, "get">
const usage = async (who: Asking, query = "") => (await who.get(`/v1/usage${query}`)).body.data

/** A team with a second project, and a key in each. */
async function twoProjects(plan?: string) {
  const home = await team(service, plan)
  const { owner } = home
  const second = (await owner.post("/v1/projects", { name: "Second" })).body.data.id
  const keyIn = async (project_id: string) => {
    const wanted = { name: "k", scopes: ["email:send", "usage:read"] }
    const { body } = await owner.post("/v1/api-keys", wanted, { "x-project-id": project_id })
    return { "x-api-key": body.data.key as string }
  }
  return { ...home, second, keys: [await keyIn(home.project_id), await keyIn(second)] as const }
}

describe("GET /v1/usage", () => {
  test("counts when something is accepted, by day and by project", async () => {
    const { owner, project_id, second, keys } = await twoProjects()
    const [one, two] = keys
    await service.anybody.post("/v1/emails", mail({ cc: "c@x.test" }), one)
    await service.anybody.post("/v1/emails", mail(), two)
    await service.anybody.post("/v1/emails", mail({ to: "nobody" }), two)

    const whole = await usage(owner)
    expect(whole.email).toEqual({ used: 3, limit: null, remaining: null })
    expect(whole.period.start).toBe(`${currentPeriod()}-01T00:00:00.000Z`)
    const day = whole.by_day.find(({ date }: { date: string }) => date === today())
    expect(day).toEqual({ date: today(), email: 3, push: 0, sms: 0, in_app: 0 })
    expect(whole.by_day).toHaveLength(Number(today().slice(-2)))
    expect((await usage(owner, `?project_id=${project_id}`)).email.used).toBe(2)
    expect((await usage(owner, `?project_id=${second}`)).email.used).toBe(1)

    const told = await service.anybody.get("/v1/usage", one)
    expect(told.body.data.email.used).toBe(2)
    expect((await usage(owner, "?period=2020-02")).by_day).toHaveLength(29)
    expect((await usage(owner, "?period=2020-02")).email.used).toBe(0)
  })

  test("what remains is the account's, whichever project asks", async () => {
    const { owner, account_id, keys } = await twoProjects()
    const limits = { emails_per_month: 5 }
    await store.tx((tx) => tx.update(accounts).set({ limits }).where(eq(accounts.id, account_id)))
    for (const key of keys) await service.anybody.post("/v1/emails", mail(), key)
    const { body } = await service.anybody.get("/v1/usage", keys[0])
    expect(body.data.email).toEqual({ used: 1, limit: 5, remaining: 3 })
    expect((await usage(owner)).email).toEqual({ used: 2, limit: 5, remaining: 3 })
  })

  test("counts requests, a moment later", async () => {
    const { owner, project_id, keys } = await twoProjects()
    for (let count = 0; count < 3; count++) await service.anybody.get("/v1/usage", keys[0])
    await service.parts.meter.flush()
    // One more made the key.
    expect((await usage(owner, `?project_id=${project_id}`)).api_requests).toBe(1 + 3)
  })

  test("is closed to foreign projects and to nonsense", async () => {
    const { owner, keys, second } = await twoProjects()
    const other = await twoProjects()
    for (const id of [other.project_id, NOBODY, "x"]) {
      expect((await owner.get(`/v1/usage?project_id=${id}`)).status).toBe(404)
      expect((await service.anybody.get(`/v1/usage?project_id=${id}`, keys[0])).status).toBe(404)
    }
    expect((await service.anybody.get(`/v1/usage?project_id=${second}`, keys[0])).status).toBe(404)
    for (const period of ["2026", "2026-13", "2026-1"]) {
      expect(complaints(await owner.get(`/v1/usage?period=${period}`))).toEqual(["period"])
    }
  })

  test("a Billing Admin reads it, a member only of a project he has a role in", async () => {
    const { owner, account_id, project_id, second, join } = await twoProjects()
    const billing = await join("billing_admin")
    expect((await billing.get("/v1/usage")).status).toBe(200)
    expect((await billing.get("/v1/accounts/me")).status).toBe(200)
    expect(refusal(await billing.get("/v1/emails"))).toEqual([403, "forbidden"])
    expect(refusal(await billing.get("/v1/projects"))).toEqual([403, "forbidden"])

    const member = await join("member")
    expect(refusal(await member.get("/v1/usage"))).toEqual([403, "forbidden"])
    const role = { user_id: member.id, role: "viewer" }
    await owner.post(`/v1/projects/${second}/members`, role, { "x-account-id": account_id })
    expect((await member.get("/v1/usage")).status).toBe(200)
    expect((await member.get(`/v1/usage?project_id=${project_id}`)).status).toBe(404)
  })
})

describe("free accounts of one person", () => {
  test("share one quota", async () => {
    const first = await twoProjectsFree()
    const own = await store.read
      .select()
      .from(accounts)
      .where(eq(accounts.owner_user_id, first.owner.id))
    expect(own).toHaveLength(2)
    const [a = "", b = ""] = own.map(({ id }) => id)
    await store.tx((tx) => add(tx, [unitsOf(a, 2000), unitsOf(b, 999)]))
    const send = () => first.owner.post("/v1/emails", mail(), { "x-account-id": a })
    expect((await send()).status).toBe(201)
    const refused = await send()
    expect(refusal(refused)).toEqual([402, "payment_required"])
    expect(refused.body.error.details).toMatchObject({ used: 3000, limit: 3000, plan: "free" })

    const aggregate = await first.owner.get("/v1/usage/user-aggregate")
    expect(aggregate.body.data).toMatchObject({
      user_id: first.owner.id,
      totals: { email: 3000 },
      free_tier_limits: { email: 3000 },
      over: ["email"],
    })
    const shares = aggregate.body.data.accounts.map(
      ({ usage }: { usage: { email: number } }) => usage.email,
    )
    expect(shares.sort()).toEqual([2001, 999].sort())
  })

  async function twoProjectsFree() {
    const home = await team(service, "free")
    const made = await home.owner.post("/v1/accounts", { name: "Another" })
    const { id } = made.body.data
    const free = { plan: "free" }
    await store.tx((tx) => tx.update(accounts).set(free).where(eq(accounts.id, id)))
    return home
  }
})

const unitsOf = (account_id: string, value: number, project_id = account_id) => ({
  account_id,
  project_id,
  day: today(),
  metric: "email" as const,
  value,
})

describe("reconcile", () => {
  test("counts afresh from the messages, and tells the drift", async () => {
    const { owner, account_id, project_id, keys } = await twoProjects()
    const limits = { emails_per_month: 10 }
    await store.tx((tx) => tx.update(accounts).set({ limits }).where(eq(accounts.id, account_id)))
    await service.anybody.post("/v1/emails", mail({ bcc: "b@x.test" }), keys[0])
    await service.anybody.post("/v1/emails", mail(), keys[1])
    await store.tx((tx) => add(tx, [unitsOf(account_id, 5, project_id)]))
    const done = await owner.post("/v1/usage/reconcile", {})
    expect(done.body.data).toMatchObject({
      period: currentPeriod(),
      before: { email: 8 },
      after: { email: 3 },
      drift: { email: -5 },
      projects_touched: 1,
    })
    const again = await owner.post("/v1/usage/reconcile", { period: currentPeriod() })
    expect(again.body.data).toMatchObject({ drift: { email: 0 }, projects_touched: 0 })
    expect((await usage(owner)).email).toEqual({ used: 3, limit: 10, remaining: 7 })
  })

  test("by several at once corrects once", async () => {
    const { owner, account_id, project_id, keys } = await twoProjects()
    await service.anybody.post("/v1/emails", mail(), keys[0])
    await store.tx((tx) => add(tx, [unitsOf(account_id, 5, project_id)]))
    await Promise.all(Array.from({ length: 5 }, () => owner.post("/v1/usage/reconcile", {})))
    expect((await usage(owner)).email.used).toBe(1)
  })

  test("puts back what was lost, and ignores the sandbox", async () => {
    const { owner, account_id, keys } = await twoProjects()
    await service.anybody.post("/v1/emails", mail(), keys[0])
    await owner.patch("/v1/settings", { sandbox: true }, { "x-project-id": await second(owner) })
    await service.anybody.post("/v1/emails", mail(), keys[1])
    await store.tx((tx) => tx.delete(usageDays).where(and(eq(usageDays.account_id, account_id))))
    const { body } = await owner.post("/v1/usage/reconcile", {})
    expect(body.data).toMatchObject({ before: { email: 0 }, after: { email: 1 } })
  })

  test("counts every channel by itself, and a text by its segments", async () => {
    const { owner, account_id, project_id, keys } = await twoProjects()
    await service.anybody.post("/v1/emails", mail(), keys[0])
    const allowance = { account_id, subject: account_id, plan: "free", sends_per_second: null }
    const push = () => ({
      message: letter({ account_id, project_id, channel: "push" }),
      allowance: { ...allowance, metric: "push" as const, limit: 1 },
    })
    const text = (units: number) => ({
      message: letter({ account_id, project_id, channel: "sms", units }),
      allowance: { ...allowance, metric: "sms" as const, limit: 4 },
    })
    const entries = [push(), text(3), text(1), push(), text(1)]
    const refused = await store.tx(async (tx) => {
      const answers = await admit(tx, entries)
      const admitted = entries.filter((entry) => !answers.has(entry))
      await accept(
        tx,
        admitted.map(({ message }) => message),
      )
      await countUsage(tx, admitted)
      return answers
    })
    expect([...refused.keys()]).toEqual(entries.slice(3))
    expect(refused.get(entries[3] as never)?.details).toMatchObject({ metric: "push", used: 1 })
    expect(refused.get(entries[4] as never)?.details).toMatchObject({ metric: "sms", used: 4 })
    const used = { email: 1, push: 1, sms: 4, in_app: 0 }
    expect((await owner.post("/v1/usage/reconcile", {})).body.data).toMatchObject({
      before: used,
      after: used,
      projects_touched: 0,
    })
    await store.tx((tx) => tx.delete(usageDays).where(eq(usageDays.metric, "sms")))
    await store.tx((tx) => add(tx, [{ ...unitsOf(account_id, 4, project_id), metric: "in_app" }]))
    expect((await owner.post("/v1/usage/reconcile", {})).body.data).toMatchObject({
      after: used,
      drift: { email: 0, push: 0, sms: 4, in_app: -4 },
    })
  })

  const second = async (owner: Person) => (await owner.get("/v1/projects")).body.data[0].id

  test("is for admins of the account", async () => {
    const { join } = await team(service)
    const billing = await join("billing_admin")
    expect(refusal(await billing.post("/v1/usage/reconcile", {}))).toEqual([403, "forbidden"])
  })
})

test("an alert goes to every owner, by the instance's own mail", async () => {
  const { owner, account_id, join } = await team(service)
  const [other] = [await join("owner"), await join("admin")]
  const alert = { account_id, metric: "email", period: "2026-11", share: 80, used: 8, limit: 10 }
  const before = service.mails.length
  await notifyOwners(store, service.parts.mail).run(alert as never, {} as never)
  const sent = service.mails.slice(before)
  expect(sent.map(({ to }) => to).sort()).toEqual([owner.email, other?.email ?? ""].sort())
  expect(sent[0]).toMatchObject({ kind: "usage_alert", subject: expect.stringContaining("80 %") })
})
