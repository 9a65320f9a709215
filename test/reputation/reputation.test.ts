import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { jobs } from "../../src/jobs/tables"
import { feedback } from "../../src/messages/settle"
import { messages } from "../../src/messages/tables"
import { assessAll } from "../../src/reputation/evaluate"
import { drawOf } from "../../src/reputation/gate"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { person, team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { type TestProject, testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { received } from "../inbound/received"
import { accountOf, sent, statusEvents } from "./mail-counts"

quietLog()
const clock = movableClock()
const service = await sharedService()
const { store } = service

const REPUTATION = "/v1/accounts/me/reputation"
const EMAIL = { from: "bell@example.test", to: "ann@example.test", subject: "Hi", text: "hello" }
const HOUR = 3600

const headersOf = ({ headers }: { headers: Headers }) => [
  headers.get("x-account-sending-status"),
  headers.get("x-account-sending-status-reason"),
]

const show = async (project: TestProject) => (await project.get(REPUTATION)).body.data

const sendMany = (project: TestProject, number: number) =>
  Promise.all(Array.from({ length: number }, () => project.post("/v1/emails", EMAIL)))

test("a fresh account is active, with nothing counted and every threshold shown", async () => {
  const project = await service.project()
  const reply = await project.get(REPUTATION)
  expect(reply.status).toBe(200)
  expect(reply.body.data).toMatchObject({
    ...{ status: "active", reason: null, window_days: 7, sent: 0, delivered: 0, bounced: 0 },
    ...{ complained: 0, bounce_rate: 0, complaint_rate: 0, rejected_share: 0, warning: null },
    ...{ held: [], by_domain: [], by_tag: [], by_template: [], enforced: true },
    thresholds: {
      throttled: {
        ...{ min_sent: 200, bounce_rate: 0.05, complaint_rate: 0.001 },
        ...{ hour_sent: 1000, hour_factor: 5, least_share: 0.25, most_share: 0.9 },
      },
      frozen: { min_sent: 500, bounce_rate: 0.1, complaint_rate: 0.005 },
      held: { min_sent: 50, complaint_rate: 0.005 },
      recovery: { below_share: 0.8, after_hours: 6 },
    },
    forecast: { status: null, expected_at: null, bounces_left: 200 },
  })
  expect(reply.body.data.history).toHaveLength(30)
  expect(headersOf(reply)).toEqual(["active", null])
})

test("names, rates and days are shown; a key sees those of its own project alone", async () => {
  const project = await service.project()
  await sent(store, project, { sent: 90, bounced: 1, tags: ["news", "daily"], domain: "a.test" })
  await sent(store, project, { sent: 60, domain: "b.test", template_id: newId() })
  const elsewhere = { ...project, project_id: newId() }
  await sent(store, elsewhere, { sent: 50, bounced: 4, tags: ["secret"], domain: "c.test" })
  const { by_domain, by_tag, by_template, ...all } = await show(project)
  expect(all).toMatchObject({ sent: 200, bounced: 5, bounce_rate: 0.025, complaint_rate: 0 })
  expect(by_domain).toMatchObject([
    { domain: "a.test", sent: 90, bounced: 1, bounce_rate: 0.011111 },
    { domain: "b.test", sent: 60, bounced: 0, bounce_rate: 0 },
  ])
  expect(by_tag.map(({ tag }: { tag: string }) => tag).sort()).toEqual(["daily", "news"])
  expect(by_template).toMatchObject([{ sent: 60 }])
  expect(all.history.at(-1)).toMatchObject({ sent: 200, bounce_rate: 0.025 })
  expect(all.forecast).toMatchObject({ bounces_left: 6, complaints_left: 1 })
})

describe("a throttled account", () => {
  test("loses the share that the hash of each new id draws, and the answer says why", async () => {
    const project = await service.project()
    await sent(store, project, { sent: 1000, bounced: 75 })
    const replies = await sendMany(project, 200)
    const refused = replies.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(80) // 57.5 % of 200 are 115
    expect(refused.length).toBeLessThan(150)
    const [first] = refused
    expect(first?.body.error).toMatchObject({
      code: "account_throttled",
      details: {
        reason: "bounce_rate=7.5%;threshold=5%;window=7d",
        ...{ bounce_rate: 0.075, complaint_rate: 0, retry_after: 60 },
      },
    })
    expect(first?.headers.get("retry-after")).toBe("60")
    expect(first && headersOf(first)).toEqual([
      "throttled",
      "bounce_rate=7.5%;threshold=5%;window=7d",
    ])
    const ids = replies.flatMap(({ status, body }) => (status === 201 ? [body.id] : []))
    expect(ids.every((id) => drawOf(id) >= 0.575)).toBe(true)
    const rows = await store.read
      .select({ id: messages.id })
      .from(messages)
      .where(eq(messages.project_id, project.project_id))
    expect(rows.map(({ id }) => id).sort()).toEqual(ids.sort())
  })

  test("may repeat a refused send with the same Idempotency-Key until it is accepted, once", async () => {
    const project = await service.project()
    await sent(store, project, { sent: 1000, bounced: 90 })
    const seen = new Set<number>()
    let accepted: string | undefined
    for (let tries = 0; tries < 100 && !accepted; tries++) {
      const reply = await project.post("/v1/emails", EMAIL, { "idempotency-key": "k-1" })
      seen.add(reply.status)
      if (reply.status === 201) accepted = reply.body.id
    }
    const again = await project.post("/v1/emails", EMAIL, { "idempotency-key": "k-1" })
    expect([again.status, again.body.id]).toEqual([201, accepted])
    expect([...seen].every((status) => status === 201 || status === 429)).toBe(true)
  })

  test("gives back the quota of what it refuses", async () => {
    const project = await service.project({ limits: { emails_per_month: 50 } })
    await sent(store, project, { sent: 1000, bounced: 75 })
    const replies = await sendMany(project, 60)
    const taken = replies.filter(({ status }) => status === 201).length
    const usage = await project.get("/v1/usage")
    expect(usage.body.data.email).toMatchObject({ used: taken, remaining: 50 - taken })
  })

  test("takes or refuses a strict batch as a whole, and items of a permissive one apart", async () => {
    const project = await service.project()
    await sent(store, project, { sent: 1000, bounced: 75 })
    const batch = (mode: string) =>
      project.post(
        "/v1/emails/batch",
        { messages: Array.from({ length: 20 }, () => EMAIL) },
        { "x-batch-validation": mode },
      )
    const strict = await Promise.all(Array.from({ length: 40 }, () => batch("strict")))
    const statuses = strict.map(({ status, body }) =>
      status === 200 ? body.data.succeeded : status,
    )
    expect(new Set(statuses)).toEqual(new Set([429, 20]))
    const { status, body } = await batch("permissive")
    expect(status).toBe(200)
    expect(body.data.succeeded + body.data.failed).toBe(20)
    const codes = body.data.results.flatMap((one: { error?: { code: string } }) =>
      one.error ? [one.error.code] : [],
    )
    expect(codes).toEqual(Array(body.data.failed).fill("account_throttled"))
  })

  test("is active again by itself after six low hours, and its projects are told each change once", async () => {
    clock.freeze()
    const project = await service.project()
    await sent(store, project, { sent: 1000, bounced: 50 })
    await assessAll(store)
    await sent(store, project, { sent: 1000 })
    await assessAll(store)
    expect(await show(project)).toMatchObject({ status: "throttled", bounce_rate: 0.025 })
    clock.advance({ seconds: 6 * HOUR - 60 })
    await assessAll(store)
    expect((await accountOf(store, project)).sending_status).toBe("throttled")
    clock.advance({ seconds: 60 })
    await assessAll(store)
    expect(headersOf(await project.get(REPUTATION))).toEqual(["active", null])
    expect(await statusEvents(store, project.project_id)).toMatchObject([
      {
        ...{ account_id: project.account_id, from: "active", to: "throttled" },
        ...{ reason: "bounce_rate=5%;threshold=5%;window=7d", bounce_rate: 0.05 },
      },
      { from: "throttled", to: "active", reason: null, bounce_rate: 0.025, complaint_rate: 0 },
    ])
  })

  test("assessed by several nodes at once, each change happens and is told once", async () => {
    const project = await service.project()
    await store.tx(async () => {})
    await Promise.all(
      Array.from({ length: 8 }, () => sent(store, project, { sent: 100, bounced: 12 })),
    )
    const told = await statusEvents(store, project.project_id)
    expect(told.at(-1)).toMatchObject({ to: "frozen" })
    expect(new Set(told.map(({ to }) => to)).size).toBe(told.length)
  })
})

describe("a frozen account", () => {
  test("sends nothing over any route, and reads as before", async () => {
    const project = await service.project()
    const first = await project.post("/v1/emails", EMAIL)
    await sent(store, project, { sent: 500, complained: 3 })
    const incoming = `/v1/inbound-emails/${(await received(service, project)).id}`
    const key = { "idempotency-key": newId() }
    const calls = await Promise.all([
      project.post("/v1/emails", EMAIL, key),
      project.post("/v1/emails/batch", { messages: [EMAIL, EMAIL] }),
      project.post("/v1/emails/batch", [EMAIL]),
      project.post(`/v1/emails/${first.body.id}/resend`, {}),
      project.post(`${incoming}/reply`, { text: "Here." }),
      project.post(`${incoming}/forward`, { to: "kim@example.test" }),
    ])
    expect(calls.map(refusal)).toEqual(Array(6).fill([403, "account_frozen"]))
    expect(calls[0]?.body.error.details).toEqual({
      reason: "complaint_rate=0.6%;threshold=0.5%;window=7d",
      ...{ bounce_rate: 0, complaint_rate: 0.006 },
    })
    const reads = [
      await project.get("/v1/emails"),
      await project.get(`/v1/emails/${first.body.id}`),
    ]
    expect(reads.map(({ status }) => status)).toEqual([200, 200])
    expect(headersOf(calls[1] as never)).toEqual([
      "frozen",
      "complaint_rate=0.6%;threshold=0.5%;window=7d",
    ])
  })

  test("is told of a used-up quota first, and of its status before a domain that is not verified", async () => {
    const poor = await service.project({ limits: { emails_per_month: 1 } })
    expect((await poor.post("/v1/emails", EMAIL)).status).toBe(201)
    await sent(store, poor, { sent: 500, bounced: 50 })
    expect(refusal(await poor.post("/v1/emails", EMAIL))).toEqual([402, "payment_required"])
    const rich = await service.project()
    await sent(store, rich, { sent: 500, bounced: 50 })
    const unknown = { ...EMAIL, from: "a@unverified.test" }
    expect(refusal(await rich.post("/v1/emails", unknown))).toEqual([403, "account_frozen"])
    expect(refusal(await rich.post("/v1/emails", { ...EMAIL, to: 5 }))[0]).toBe(422)
    const nothing = await rich.post(`/v1/emails/${newId()}/resend`, {})
    expect(refusal(nothing)).toEqual([404, "not_found"])
  })

  test("is lifted by the operator alone; then only new mail counts", async () => {
    const project = await service.project()
    const path = `/v1/admin/accounts/${project.account_id}`
    await sent(store, project, { sent: 500, bounced: 50, domain: "a.test" })
    clock.advance({ seconds: 48 * HOUR })
    await assessAll(store)
    const operator = await person(service, undefined, true)
    const ask = (verb: string, reason = "we talked") => operator.post(`${path}/${verb}`, { reason })
    expect(refusal(await ask("freeze"))).toEqual([409, "conflict"])
    expect(refusal(await project.post(`${path}/unfreeze`, { reason: "mine" }))).toEqual([
      403,
      "forbidden",
    ])
    const lifted = await ask("unfreeze")
    expect(lifted.body.data).toMatchObject({
      ...{ id: project.account_id, sending_status: "active", sending_status_reason: null },
    })
    expect(refusal(await ask("unfreeze"))).toEqual([409, "conflict"])
    expect((await project.post("/v1/emails", EMAIL)).status).toBe(201)
    await assessAll(store)
    expect(await show(project)).toMatchObject({ status: "active", sent: 0, bounced: 0 })
    await sent(store, project, { sent: 199, bounced: 20 })
    expect(await show(project)).toMatchObject({ status: "active", sent: 199, bounced: 20 })
    await sent(store, project, { sent: 1 })
    expect(await show(project)).toMatchObject({ status: "throttled", sent: 200 })
    const told = await statusEvents(store, project.project_id)
    expect(told.map(({ from, to }) => `${from}-${to}`)).toEqual([
      "active-frozen",
      "frozen-active",
      "active-throttled",
    ])
  })

  test("counts no late word about mail of the same hour that was sent before it was lifted", async () => {
    await using own = await testService()
    const project = await own.project()
    const mail = { ...EMAIL, from: "bell@mailbox.test" }
    const post = async (to: string) =>
      (await project.post("/v1/emails", { ...mail, to })).body.id as string
    const tell = (id: string, type: "bounced" | "complained", recipient_email: string) =>
      own.store.tx((tx) => feedback(tx, id, { type, address: recipient_email }))
    // Each address is another one: what bounced or complained is suppressed.
    const [ann, ben, eve] = ["ann@example.test", "ben@example.test", "eve@example.test"] as const
    const [early, complained] = [await post(ann), await post(ben)]
    await deliverAll(own)
    const operator = await person(own, undefined, true)
    for (const verb of ["freeze", "unfreeze"]) {
      clock.advance({ seconds: 1 })
      await operator.post(`/v1/admin/accounts/${project.account_id}/${verb}`, { reason: "case" })
    }
    clock.advance({ seconds: 1 })
    await tell(early, "bounced", ann)
    await tell(complained, "complained", ben)
    expect(await show(project)).toMatchObject({ sent: 0, bounced: 0, complained: 0 })
    const after = await post(eve)
    await deliverAll(own)
    await tell(after, "bounced", eve)
    expect(await show(project)).toMatchObject({ sent: 1, bounced: 1, complained: 0 })
  })

  test("can be made so by the operator, whose reason is shown, logged, and safe in a header", async () => {
    const operator = await person(service, undefined, true)
    const project = await service.project()
    const path = `/v1/admin/accounts/${project.account_id}/freeze`
    expect(refusal(await operator.post(path, {}))[0]).toBe(422)
    const nobodys = `/v1/admin/accounts/${newId()}/freeze`
    expect(refusal(await operator.post(nobodys, { reason: "x" }))).toEqual([404, "not_found"])
    const reply = await operator.post(path, { reason: "Phishing – Fall 7" })
    expect(reply.body.data.sending_status_reason).toBe("Phishing – Fall 7")
    const refused = await project.post("/v1/emails", EMAIL)
    expect(refused.body.error.details.reason).toBe("Phishing – Fall 7")
    expect(headersOf(refused)).toEqual(["frozen", "Phishing ? Fall 7"])
    const ours = and(
      eq(auditLog.account_id, project.account_id),
      eq(auditLog.action, "account.frozen"),
    )
    const [entry] = await store.read.select().from(auditLog).where(ours)
    expect(entry).toMatchObject({
      ...{ actor_id: operator.id, before: { sending_status: "active" } },
      after: { sending_status: "frozen", reason: "Phishing – Fall 7" },
    })
  })
})

test("owners are warned before each step, and told of each change, once", async () => {
  const { account_id, project_id } = await team(service)
  const home = { account_id, project_id }
  const steps = [
    { sent: 200, bounced: 8 }, // 4 %: 80 % of the first threshold
    { sent: 10, bounced: 0 },
    { sent: 90, bounced: 9 }, // 5.7 %
    { sent: 300, bounced: 31 }, // 8 %: 80 % of the last threshold
    { sent: 10, bounced: 2 },
    { sent: 100, bounced: 30 },
  ]
  for (const step of steps) await sent(store, home, step)
  const rows = await store.read.select().from(jobs).where(eq(jobs.name, "reputation.alert"))
  const told = rows.flatMap(({ payload }) => {
    const { account_id: id, kind } = payload as { account_id: string; kind: string }
    return id === account_id ? [kind] : []
  })
  expect(told.sort()).toEqual(["frozen", "frozen_soon", "throttled", "throttled_soon"])
  expect((await accountOf(store, home)).sending_status).toBe("frozen")
})

describe("a sudden rise", () => {
  const HOURLY = { sent: 200 }

  test("above 1,000 and five times the busiest earlier hour throttles until its hour is over", async () => {
    clock.freeze()
    const project = await service.project()
    await sent(store, project, HOURLY)
    clock.advance({ seconds: 25 * HOUR })
    await sent(store, project, { sent: 1000 })
    expect(await show(project)).toMatchObject({
      ...{ status: "active", hour_sent: 1000, usual_hour: 200 },
      warning: { next: "throttled", reason: "hour_sent=1000;threshold=1001;window=1h" },
    })
    await sent(store, project, { sent: 1 })
    expect(await show(project)).toMatchObject({
      ...{ status: "throttled", rejected_share: 0.25 },
      reason: "hour_sent=1001;threshold=1001;window=1h",
    })
    for (let hour = 0; hour < 7; hour++) {
      clock.advance({ seconds: HOUR })
      await assessAll(store)
    }
    expect((await show(project)).status).toBe("active")
  })

  test("of an account without an hour that is a day old is its first mailing", async () => {
    const project = await service.project()
    await sent(store, project, HOURLY)
    clock.advance({ seconds: 2 * HOUR })
    await sent(store, project, { sent: 50_000 })
    expect(await show(project)).toMatchObject({ status: "active", usual_hour: null })
  })
})

test("with reputation.enforced off nothing is throttled or held, and rates are still shown", async () => {
  const own = settings() as { "reputation.enforced": boolean }
  const project = await service.project()
  await sent(store, project, { sent: 300, bounced: 30, complained: 3, tags: ["news"] })
  expect(await show(project)).toMatchObject({ status: "throttled", would_be: null })
  const held = await service.project()
  await sent(store, held, { sent: 1000, bounced: 200 })
  own["reputation.enforced"] = false
  try {
    const first = await held.post("/v1/emails", EMAIL)
    expect([first.status, ...headersOf(first)]).toEqual([201, "active", null])
    const other = await service.project()
    await sent(store, other, { sent: 1000, bounced: 500, complained: 9, tags: ["news"] })
    await sent(store, project, { sent: 1 })
    await assessAll(store)
    for (const [one, would_be] of [
      [other, "frozen"],
      [held, "frozen"],
      [project, "throttled"],
    ] as const) {
      expect(await show(one)).toMatchObject({ status: "active", enforced: false, would_be })
      expect((await one.post("/v1/emails", EMAIL)).status).toBe(201)
    }
    expect(await show(other)).toMatchObject({ held: [], bounce_rate: 0.5 })
  } finally {
    own["reputation.enforced"] = true
  }
})
