import { afterAll, afterEach, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { metricCounter, metricsText } from "../../src/core/metrics"
import { isoFrom, millis, now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { DEAD, OVER } from "../../src/jobs/work-item"
import { messageContents, messages } from "../../src/messages/tables"
import { countedRows } from "../../src/operations/counted-rows"
import { type BrokenInvariant, brokenIn } from "../../src/operations/invariants"
import {
  checkInvariants,
  invariantWarnings,
  lastCheck,
  nightlyCheck,
} from "../../src/operations/nightly-check"
import { STORED } from "../../src/plans/stored-bytes"
import { bump } from "../../src/store/counters"
import { counters } from "../../src/store/tables"
import { count } from "../../src/webhooks/endpoint-counts"
import { removeOfEvents } from "../../src/webhooks/retention"
import { deliveries } from "../../src/webhooks/tables"
import { movableClock } from "../harness/clock"
import { bounced, deliverAll, delivered } from "../harness/delivery"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { type TestProject, testService } from "../harness/service"
import { endpoint, happens } from "../webhooks/endpoints"

const clock = movableClock()
const lines = quietLog()
const service = await testService()
afterAll(() => service[Symbol.asyncDispose]())
const { store } = service

const HOUR = 3600

// A message that nothing tries would be waited for.
afterEach(() => store.tx((tx) => tx.delete(messages).where(eq(messages.status, "queued"))))

const send = async (project: TestProject, to: string): Promise<string> =>
  (await project.post("/v1/emails", mail({ to }))).body.id

/** A project in which something of everything happened. */
async function busyProject() {
  const project = await service.project()
  await endpoint(project, { events: ["*"] })
  await project.post("/v1/topics", { key: "news", name: "News" })
  await project.post("/v1/subscribers", {
    external_id: "ann",
    email: "ann@example.test",
    tags: ["a.b"],
  })
  await project.post("/v1/suppressions", { address: "gone@example.test", channel: "email" })
  await send(project, "first@example.test") // its first event may be the oldest that is kept
  const sent = await send(project, "ann@example.test")
  const refused = await send(project, "no@example.test")
  await deliverAll(service, (email) => (email.startsWith("no") ? bounced(email) : delivered(email)))
  const open = await send(project, "late@example.test")
  return { project, sent, refused, open }
}

async function brokenOf(project: TestProject, overdue_before: string | null = null) {
  const found: BrokenInvariant[] = []
  await store.snapshot(async (db) => {
    const look = { db, pause: async () => {}, since: null, overdue_before }
    const { project_id, account_id } = project
    const parts = [
      { kind: "project", id: project_id },
      { kind: "account", id: account_id },
      { kind: "deliveries", id: "" },
    ] as const
    for (const part of parts) {
      for await (const place of brokenIn(look, part)) {
        if ([project_id, account_id].includes(place.owner_id)) found.push(place)
      }
    }
  })
  return found
}

test("nothing is broken where everything happened in the usual way", async () => {
  const { project } = await busyProject()
  expect(await brokenOf(project)).toEqual([])
})

test("every counter that the service keeps is known, or counts no rows", async () => {
  const { project } = await busyProject()
  const rows = await store.read.select().from(counters)
  const known = ["invitations:", "found", STORED.deliveries]
  const ours = rows.filter((row) =>
    [project.project_id, project.account_id].includes(row.project_id),
  )
  expect(ours.length).toBeGreaterThan(8)
  const unknown = ours.filter(({ project_id, name }) => {
    const kind = project_id === project.project_id ? "project" : "account"
    return !countedRows(kind, project_id, name) && !known.some((text) => name.startsWith(text))
  })
  expect(unknown.map(({ name }) => name)).toEqual([])
})

/** On Postgres an event that is younger than a minute may have been recorded beside a change of its endpoint. */
const missed = (id: string) => (store.isAlone ? [["I4", id]] : [])

describe("an event without a delivery", () => {
  /** A project of an hour ago whose endpoint was told of two events: the last one, and its delivery. */
  async function told(fields: Record<string, unknown> = {}) {
    const project = await service.project()
    clock.freeze()
    const { id } = await endpoint(project, { events: ["email.*"], ...fields })
    clock.advance({ seconds: 2 * HOUR })
    await happens(project)
    clock.advance({ seconds: 300 })
    const event = await happens(project, "email.delivered")
    clock.advance({ seconds: 300 })
    return { project, webhook_id: String(id), event_id: String(event.id) }
  }

  const lose = (event_id: string) => store.tx((tx) => removeOfEvents(tx, [event_id]))

  test("is found, also where it is the only one of its endpoint", async () => {
    const { project, webhook_id, event_id } = await told()
    expect(await brokenOf(project)).toEqual([])
    await lose(event_id)
    const place = { name: "I4", id: event_id, owner_id: project.project_id }
    expect(await brokenOf(project)).toMatchObject([place])
    expect((await brokenOf(project))[0]?.what).toContain(webhook_id)
    const swept = await checkInvariants(store, now())
    expect(swept.found.I4).toBeGreaterThan(0)
  })

  test("is found where its endpoint is disabled, because it should be held", async () => {
    const { project, webhook_id } = await told()
    expect((await project.post(`/v1/webhooks/${webhook_id}/disable`)).status).toBe(200)
    clock.advance({ seconds: 300 })
    const { id } = await happens(project)
    clock.advance({ seconds: 300 })
    expect(await brokenOf(project)).toEqual([])
    await lose(id)
    expect(await brokenOf(project)).toMatchObject([{ name: "I4", id }])
  })

  test("is no fault where the endpoint did not ask for it, or may not have", async () => {
    const filter = { field: "data.n", op: "eq", value: 1 }
    const { project, webhook_id } = await told()
    await endpoint(project, { filter }) // made later, too
    await happens(project, "sms.sent")
    clock.advance({ seconds: 300 })
    expect((await project.post(`/v1/webhooks/${webhook_id}/test`, {})).status).toBe(200)
    const other = await told({ filter })
    expect(await brokenOf(project)).toEqual([])
    expect(await brokenOf(other.project)).toEqual([])
  })

  test("is no fault from before the last change of its endpoint", async () => {
    const { project, webhook_id, event_id } = await told()
    await lose(event_id)
    const body = { events: ["*"] }
    const changed = await project.call("PATCH", `/v1/webhooks/${webhook_id}`, { body })
    expect(changed.status).toBe(200)
    expect(await brokenOf(project)).toEqual([])
  })

  test("is no fault where retention removed the delivery, and a younger one is kept", async () => {
    const { project, event_id } = await told()
    await settle(event_id)
    clock.advance({ seconds: 10 * HOUR })
    const kept = await happens(project)
    await settle(kept.id)
    await lose(event_id)
    clock.advance({ seconds: 10 * HOUR })
    const found = await brokenOf(project)
    expect(found).toEqual([])
    await lose(kept.id) // now nothing shows since when all are kept
    expect(await brokenOf(project)).toEqual([])
  })

  /** As if the delivery of the event had succeeded at once. */
  const settle = (event_id: string) =>
    store.tx(async (tx) => {
      const over = { status: "success", state: OVER } as const
      const ours = tx.update(deliveries).set(over).where(eq(deliveries.event_id, event_id))
      await count(tx, await ours.returning(), { open: -1 })
    })
})

describe("a broken place is found", () => {
  const WRONG_TOTALS = { name: "I5", what: expect.stringContaining("deliveries of an endpoint") }

  const change = (id: string, fields: Partial<typeof messages.$inferInsert>) =>
    store.tx((tx) => tx.update(messages).set(fields).where(eq(messages.id, id)))

  test.each([OVER, DEAD])("I1: a message that waits in state %i", async (state) => {
    const { project, open } = await busyProject()
    await change(open, { state })
    expect(await brokenOf(project)).toMatchObject([{ name: "I1", id: open }])
  })

  test("I1: a message that waits without its content", async () => {
    const { project, open } = await busyProject()
    await store.tx((tx) => tx.delete(messageContents).where(eq(messageContents.message_id, open)))
    const [place] = await brokenOf(project)
    expect(place).toMatchObject({ name: "I1", id: open, owner_id: project.project_id })
    expect(place?.what).toContain("content is missing")
  })

  test("I1: a message that was due long ago, where a server should have tried it", async () => {
    const { project, open } = await busyProject()
    const later = isoFrom(millis() + HOUR * 1000)
    expect(await brokenOf(project, later)).toMatchObject([{ name: "I1", id: open }])
  })

  test("I1: a delivery that waits and is over", async () => {
    const { project } = await busyProject()
    const ours = eq(deliveries.project_id, project.project_id)
    const [row] = await store.read.select({ id: deliveries.id }).from(deliveries).where(ours)
    const id = row?.id ?? ""
    await store.tx((tx) =>
      tx.update(deliveries).set({ status: "pending", state: OVER }).where(eq(deliveries.id, id)),
    )
    expect(await brokenOf(project)).toMatchObject([WRONG_TOTALS, { name: "I1", id }])
  })

  test("I4: an ending without its event, and one with two", async () => {
    const { project, sent, refused } = await busyProject()
    const of = await store.read.select().from(events).where(eq(events.subject_id, refused))
    const [bounce] = of.filter(({ type }) => type === "email.bounced")
    const [last] = (
      await store.read.select().from(events).where(eq(events.subject_id, sent))
    ).filter(({ type }) => type === "email.delivered")
    if (!bounce || !last) throw new Error("both events are there")
    const second = `evt_${Bun.randomUUIDv7()}`
    await store.tx(async (tx) => {
      await tx.delete(events).where(eq(events.id, bounce.id))
      await tx.insert(events).values({ ...last, id: second })
    })
    const found = await brokenOf(project)
    expect(found.map(({ name, id }) => [name, id]).sort()).toEqual(
      [["I4", sent], ["I4", refused], ...missed(second)].sort(),
    )
  })

  test("I4: an event that goes to one endpoint twice", async () => {
    const { project } = await busyProject()
    const ours = eq(deliveries.project_id, project.project_id)
    const [row] = await store.read.select().from(deliveries).where(ours)
    if (!row) throw new Error("a delivery is there")
    const id = Bun.randomUUIDv7()
    await store.tx((tx) => tx.insert(deliveries).values({ ...row, id }))
    expect(await brokenOf(project)).toMatchObject([
      WRONG_TOTALS,
      { name: "I5", what: expect.stringContaining(`The counter ${STORED.deliveries} is`) },
      { name: "I4", id },
    ])
  })

  test.each([
    "email",
    "email.delivered",
    "topics",
    "subscribers.tag.a.b",
    "suppressions",
    STORED.deliveries,
  ])("I5: a counter %s that is one too high", async (name) => {
    const { project } = await busyProject()
    await store.tx((tx) => bump(tx, project.project_id, name, 1))
    const [place, ...others] = await brokenOf(project)
    expect(others).toEqual([])
    const [, counter, told, counted] =
      /^The counter (\S+) is (\d+), but \D+ (\d+)/.exec(place?.what ?? "") ?? []
    expect([place?.name, counter]).toEqual(["I5", name])
    expect(Number(told) - Number(counted)).toBe(1)
  })
})

describe("the sweep", () => {
  const counter = metricCounter("belfry_invariant_violations_total", "")

  test("counts what it found, logs it loudly, and warns until a sweep finds nothing", async () => {
    const { project, open } = await busyProject()
    const before = (await checkInvariants(store, now())).found
    await store.tx((tx) => tx.update(messages).set({ state: OVER }).where(eq(messages.id, open)))
    const counted = counter.value({ name: "I1" })
    const swept = await checkInvariants(store, now())
    expect(swept.found.I1).toBe(before.I1 + 1)
    expect(counter.value({ name: "I1" })).toBe(counted + swept.found.I1)
    expect(metricsText()).toContain('belfry_invariant_violations_total{name="I1"} ')
    const line = lines().findLast((text) => text.includes("AN INVARIANT IS BROKEN: I1"))
    expect(line).toContain('"level":"error"')
    expect(line).toContain(project.project_id)
    expect(line).not.toContain("@example.test")
    expect(await invariantWarnings(store.read)).toContainEqual(
      expect.stringContaining(`Invariant I1 is broken in ${swept.found.I1} places`),
    )
  })

  test("comes once a day, by one of two nodes", async () => {
    const disk = { failed: () => undefined, isDamaged: () => false, healthy: () => true }
    const nodes = [nightlyCheck(store, disk), nightlyCheck(store, disk)]
    const look = () => Promise.all(nodes.map((node) => node.look()))
    const checkedAt = async () => (await lastCheck(store.read))?.at
    clock.freeze()
    const first = await checkedAt()
    await look()
    expect(await checkedAt()).toBe(first) // a day after the first look
    clock.advance({ seconds: 24 * HOUR })
    await look()
    const second = await checkedAt()
    expect(second).toBe(now())
    clock.advance({ seconds: 24 * HOUR - 1 })
    await look()
    expect(await checkedAt()).toBe(second)
    for (const node of nodes) await node.stop()
  })
})
