import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { inFlightOf } from "../../src/jobs/in-flight"
import { pausedQueues } from "../../src/jobs/tables"
import { LEASED } from "../../src/jobs/work-item"
import { messages } from "../../src/messages/tables"
import { bump } from "../../src/store/counters"
import { deliveries } from "../../src/webhooks/tables"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { endpoint, happens, settleAs } from "../webhooks/endpoints"

const service = await sharedService()
const { store } = service

const queueOf = async (project: TestProject) => (await project.get("/v1/queue")).body.data

type Change = Partial<typeof messages.$inferSelect>

const setMail = (project: TestProject, recipient: string, change: Change) =>
  store.tx((tx) =>
    tx
      .update(messages)
      .set(change)
      .where(and(eq(messages.project_id, project.project_id), eq(messages.address, recipient))),
  )

/** Claims a mail, in memory where this process is alone. Returns whether it is. */
async function claimed({ project_id }: TestProject, recipient: string, lease_until: string) {
  const one = and(eq(messages.project_id, project_id), eq(messages.address, recipient))
  const [row] = await store.read.select().from(messages).where(one)
  const inFlight = inFlightOf(store.read, "messages")
  if (row && inFlight) inFlight.claim(row.id, row.priority, row)
  else await store.tx((tx) => tx.update(messages).set(leasedUntil(lease_until)).where(one))
  return inFlight !== undefined
}

/** As a worker of another process holds it. */
const leasedUntil = (lease_until: string | null) => ({
  state: LEASED,
  owner: newId(),
  lease_until,
})

test("a project without open work has none", async () => {
  const project = await service.project()
  expect(await queueOf(project)).toEqual({ by_state: [], by_domain: [] })
})

describe("mail", () => {
  async function sent(project: TestProject) {
    for (const to of ["a@one.test", "b@one.test", "c@two.test", "d@two.test"]) {
      await project.post("/v1/emails", mail({ to }))
    }
  }

  test("is told by state and reason, with the age of the oldest", async () => {
    const project = await service.project()
    await sent(project)
    const later = secondsFromNow(60)
    const put_off = { status_reason: "451 later", run_at: later, attempt: 1 }
    await setMail(project, "a@one.test", { created_at: secondsFromNow(-100) })
    await setMail(project, "c@two.test", put_off)
    const lease_until = secondsFromNow(30)
    const is_alone = await claimed(project, "d@two.test", lease_until)
    const { by_state } = await queueOf(project)
    const line = {
      queue: "email",
      reason: null,
      oldest_seconds: expect.any(Number),
      lease_until: null,
    }
    expect(by_state).toHaveLength(3)
    const { oldest_seconds, ...oldest } = by_state[0]
    expect(oldest_seconds).toBeGreaterThanOrEqual(100)
    expect(oldest).toMatchObject({ queue: "email", state: "waiting", reason: null, count: 2 })
    const retrying = { state: "retrying", reason: "451 later", count: 1, next_attempt_at: later }
    expect(by_state).toContainEqual({ ...line, ...retrying })
    const running = {
      state: "running",
      count: 1,
      next_attempt_at: null,
      lease_until: is_alone ? null : lease_until,
    }
    expect(by_state).toContainEqual({ ...line, ...running })
  })

  test("is told by domain: what waits there, what runs, and until when nothing goes", async () => {
    const project = await service.project()
    await sent(project)
    const [soon, late] = [secondsFromNow(60), secondsFromNow(120)]
    const reason = { status_reason: "451 later", attempt: 1 }
    await setMail(project, "c@two.test", { ...reason, run_at: late })
    await setMail(project, "d@two.test", { ...reason, run_at: soon })
    await claimed(project, "a@one.test", secondsFromNow(30))
    expect((await queueOf(project)).by_domain).toEqual([
      { domain: "one.test", waiting: 1, running: 1, paused_until: null, reason: null },
      { domain: "two.test", waiting: 2, running: 0, paused_until: soon, reason: "451 later" },
    ])
  })

  const newIds = (length: number) => Array.from({ length }, () => newId())

  /** Copies of the first mail under these ids. */
  async function copied(project: TestProject, ids: string[], change: Change = {}) {
    const ours = eq(messages.project_id, project.project_id)
    const [row] = await store.read.select().from(messages).where(ours).limit(1)
    if (!row) throw new Error("a message is there")
    const copies = ids.map((id) => ({ ...row, ...change, id }))
    for (let at = 0; at < copies.length; at += 100) {
      const some = copies.slice(at, at + 100)
      await store.tx(async (tx) => {
        await tx.insert(messages).values(some)
        await bump(tx, project.project_id, change.channel ?? "email", some.length)
      })
    }
  }

  test("of a long queue is all counted, and the oldest asked for its domain", async () => {
    const project = await service.project()
    await sent(project)
    await copied(project, newIds(1496))
    const { body } = await project.get("/v1/queue")
    expect(body.meta.incomplete).toBe(true)
    const count = (list: Record<string, number>[], name: string) =>
      list.reduce((all, line) => all + (line[name] ?? 0), 0)
    expect(count(body.data.by_state, "count")).toBe(1500)
    expect(count(body.data.by_domain, "waiting")).toBe(500)
  })

  test("is counted also where the oldest messages are of another channel", async () => {
    const project = await service.project()
    const older = newIds(600)
    await sent(project)
    await copied(project, older, { channel: "sms" })
    const { body } = await project.get("/v1/queue")
    expect(body.meta.incomplete).toBe(true)
    const line = { queue: "email", state: "waiting", reason: null, count: 4 }
    const texts = { queue: "sms", state: "waiting", reason: null, count: 600 }
    expect(body.data).toMatchObject({ by_state: [line, texts], by_domain: [] })
  })

  test("that is settled is no work", async () => {
    const project = await service.project()
    await sent(project)
    const ours = eq(messages.project_id, project.project_id)
    await store.tx((tx) => tx.update(messages).set({ status: "delivered" }).where(ours))
    expect(await queueOf(project)).toEqual({ by_state: [], by_domain: [] })
  })
})

describe("deliveries", () => {
  test("are told by state; a moment only where something is planned", async () => {
    const project = await service.project()
    const { id } = await endpoint(project, { events: ["email.*"] })
    const paused = await endpoint(project, { events: ["email.*"] })
    await project.post(`/v1/webhooks/${paused.id}/pause`)
    await happens(project)
    const states = async () =>
      (await queueOf(project)).by_state.map(
        ({ queue, state, reason, count }: Record<string, unknown>) =>
          `${queue} ${state} ${reason} ${count}`,
      )
    const sorted = async () => (await states()).sort()
    expect(await sorted()).toEqual(["webhooks held paused 1", "webhooks waiting null 1"])
    const ofFirst = eq(deliveries.webhook_id, id)
    const set = (change: Partial<typeof deliveries.$inferSelect>) =>
      store.tx((tx) => tx.update(deliveries).set(change).where(ofFirst))
    await set({ status: "failed", last_error: "timeout", attempts: 1 })
    expect(await sorted()).toEqual(["webhooks held paused 1", "webhooks retrying timeout 1"])
    const row = { queue: "webhooks", paused_by: null, paused_at: now() }
    await store.tx((tx) => tx.insert(pausedQueues).values(row))
    expect(await sorted()).toEqual([
      "webhooks held paused 1",
      "webhooks retrying The queue webhooks is paused by an operator. 1",
    ])
    await store.tx((tx) => tx.delete(pausedQueues))
    const inFlight = inFlightOf(store.read, "webhook_deliveries")
    const [delivery] = await store.read.select().from(deliveries).where(ofFirst)
    if (inFlight && delivery) inFlight.claim(delivery.id, id, delivery)
    else await set(leasedUntil(secondsFromNow(30)))
    expect(await sorted()).toEqual(["webhooks held paused 1", "webhooks running null 1"])
    await settleAs(service, project, { status: "exhausted" })
    expect(await sorted()).toEqual([])
  })
})

test("others' work is not told", async () => {
  const [project, stranger] = [await service.project(), await service.project()]
  await endpoint(project)
  await project.post("/v1/emails", mail())
  await happens(project)
  expect(await queueOf(stranger)).toEqual({ by_state: [], by_domain: [] })
})
