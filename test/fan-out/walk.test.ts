import { describe, expect, test } from "bun:test"
import { eq, inArray } from "drizzle-orm"
import { now, secondsFromNow } from "../../src/core/time"
import { emailChunk } from "../../src/emails/email-planner"
import { CHUNK } from "../../src/fan-out/audience-source"
import { writeChunk } from "../../src/fan-out/chunk"
import * as fanOut from "../../src/fan-out/fan-out"
import { fanOuts } from "../../src/fan-out/tables"
import { accounts, projects } from "../../src/identity/tables"
import { sharedLanguages } from "../../src/messages/contents"
import { subscribers } from "../../src/subscribers/tables"
import { topicMembers, topics } from "../../src/topics/tables"
import { movableClock } from "../harness/clock"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { audience, begun, INLINE, messagesOf, publish, record, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service

const people = (count: number) => Array.from({ length: count }, () => ({}))

const setAccount = (id: string, change: Partial<typeof accounts.$inferInsert>) =>
  store.tx((tx) => tx.update(accounts).set(change).where(eq(accounts.id, id)))

describe("the audience", () => {
  test("is fixed at the start: a later member gets nothing, one that left before is skipped", async () => {
    const project = await service.project()
    const { topic, ids } = await audience(store, project, people(CHUNK + 50))
    const { id } = await publish(service, project, topic)
    const walk = await begun(service, id)
    expect(await walk.step()).toBe("more")
    const gone = ids.slice(CHUNK, CHUNK + 7)
    await store.tx(async (tx) => {
      await tx.delete(topicMembers).where(inArray(topicMembers.subscriber_id, gone))
      const [joined] = await tx
        .insert(subscribers)
        .values({ ...NEWCOMER, project_id: project.project_id })
        .returning()
      const number = topic.last_number + 1
      await tx.insert(topicMembers).values({
        topic_id: topic.id,
        number,
        project_id: project.project_id,
        subscriber_id: joined?.id ?? "",
        created_at: topic.created_at,
      })
      const counts = { last_number: number, subscriber_count: CHUNK + 50 - 7 + 1 }
      await tx.update(topics).set(counts).where(eq(topics.id, topic.id))
    })
    await walkAll(service)
    const { email } = (await record(parts, id)).channels
    expect(email).toMatchObject({ planned: CHUNK + 50, sent: CHUNK + 43 })
    expect(email?.skipped.preference).toBe(7)
    const reached = (await messagesOf(parts, project, id)).map((one) => one.subscriber_id)
    expect(new Set(reached)).toEqual(new Set(ids.filter((one) => !gone.includes(one))))
    expect(reached.length).toBe(CHUNK + 43)
  })

  test("is without those that are excluded", async () => {
    const project = await service.project()
    const { topic, ids } = await audience(store, project, people(5))
    const { id } = await publish(service, project, topic, { exclude: ids.slice(0, 2) })
    await walkAll(service)
    expect(await record(parts, id)).toMatchObject({
      audience: 3,
      channels: { email: { planned: 3, sent: 3, skipped: { preference: 0 } } },
    })
  })

  test("may be empty: then the publish is complete at once", async () => {
    const project = await service.project()
    const { topic } = await audience(store, project, [])
    const { id } = await publish(service, project, topic)
    await walkAll(service)
    expect(await record(parts, id)).toMatchObject({ status: "completed", audience: 0 })
  })
})

const NEWCOMER = {
  id: "01890000-0000-7000-8000-0000000000aa",
  external_id: "newcomer",
  email: "newcomer@example.test",
  metadata: {},
  tags: [],
  status: "active" as const,
  search_key: "newcomer",
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
}

describe("a recipient is skipped", () => {
  test("for preferences, blocks, unsubscribes and suppressions, and each is counted by its reason", async () => {
    const project = await service.project()
    const off = { email: { enabled: false } }
    const { topic } = await audience(store, project, [
      {},
      { status: "blocked" },
      { status: "unsubscribed" },
      { preferences: off },
      { email: "bounced@example.test" },
      { email: null },
    ])
    await project.post("/v1/suppressions", { email: "bounced@example.test" })
    const { id } = await publish(service, project, topic)
    await walkAll(service)
    const skipped = { no_address: 1, preference: 3, suppressed: 1, frequency_cap: 0, quota: 0 }
    expect((await record(parts, id)).channels.email).toEqual({
      planned: 6,
      sent: 1,
      skipped,
      failed: 0,
    })
  })

  test("over the quota of the month, and those before it are written to", async () => {
    const project = await service.project({ limits: { emails_per_month: 3 } })
    const { topic } = await audience(store, project, people(5))
    const { id } = await publish(service, project, topic)
    await walkAll(service)
    const { email } = (await record(parts, id)).channels
    expect(email).toMatchObject({ sent: 3, skipped: { quota: 2 } })
    expect((await messagesOf(parts, project, id)).length).toBe(3)
  })

  test("for choices only where the publish respects them", async () => {
    const project = await service.project()
    const off = { email: { enabled: false } }
    const { topic } = await audience(store, project, [{ preferences: off }, { status: "blocked" }])
    const { id } = await publish(service, project, topic, { respect_preferences: false })
    await walkAll(service)
    const { email } = (await record(parts, id)).channels
    expect(email).toMatchObject({ sent: 1, skipped: { preference: 1 } })
    const [sent] = await messagesOf(parts, project, id)
    expect((await explained(project, sent?.id)).preference).toBe("preferences_ignored")
  })
})

describe("the walk", () => {
  test("pauses while the account is frozen, and goes on at the next recipient", async () => {
    const project = await service.project()
    const { topic, ids } = await audience(store, project, people(CHUNK + 20))
    const { id } = await publish(service, project, topic)
    const walk = await begun(service, id)
    expect(await walk.step()).toBe("more")
    await setAccount(project.account_id, { sending_status: "frozen" })
    expect(await walk.step()).toMatchObject({ wait_seconds: 5 })
    expect(await record(parts, id)).toMatchObject({
      status: "paused",
      status_reason: "account_frozen",
    })
    await setAccount(project.account_id, { sending_status: "active" })
    await walkAll(service)
    expect(await record(parts, id)).toMatchObject({ status: "completed", status_reason: null })
    const reached = (await messagesOf(parts, project, id)).map((one) => one.subscriber_id)
    expect(reached.toSorted()).toEqual(ids.toSorted())
  })

  test("is stopped by a cancel before the next chunk, and cannot be cancelled twice", async () => {
    const project = await service.project()
    const { topic } = await audience(store, project, people(CHUNK + 20))
    const { id } = await publish(service, project, topic)
    const walk = await begun(service, id)
    expect(await walk.step()).toBe("more")
    const ours = [project.project_id, topic.id, id] as const
    const row = await store.tx((tx) => fanOut.cancel(tx, ...ours))
    expect(row.status).toBe("cancelled")
    expect(await walk.step()).toBe("over")
    await walkAll(service)
    expect((await record(parts, id)).channels.email).toMatchObject({ sent: CHUNK })
    expect((await messagesOf(parts, project, id)).length).toBe(CHUNK)
    const refused = await store.tx((tx) => fanOut.cancel(tx, ...ours)).catch((error) => error)
    expect(refused).toMatchObject({ code: "conflict" })
  })

  test("stops before a recipient whose subject was rendered for another place, and goes on there", async () => {
    const project = await service.project()
    const names = ["Ann", "Ben", "Cid", "Dan"]
    const { topic, ids } = await audience(
      store,
      project,
      names.map((name) => ({ name })),
    )
    const email = { ...INLINE, subject: "News for {{subscriber.name}}" }
    const { id } = await publish(service, project, topic, { content: { email } })
    await begun(service, id)
    const { rules } = parts
    const languages = await sharedLanguages(store.read, id)
    const subjects = new Map([
      [ids[0] ?? "", "News for Ann"],
      [ids[1] ?? "", "News for Ben"],
      [ids[3] ?? "", "News for Dan"],
    ])
    const [fan_out] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
    if (!fan_out) throw new Error("there is no such publish")
    const chunk = emailChunk({ fan_out, languages, at: now(), rules, subjects })
    const input = { fan_out_id: id, part: 0, plans: [{ channel: "email" as const, chunk }] }
    const write = () => store.tx((tx) => writeChunk(tx, input))
    expect(await write()).toBe("more")
    expect((await messagesOf(parts, project, id)).length).toBe(2)
    expect(await write()).toBe("more")
    await walkAll(service)
    const made = await messagesOf(parts, project, id)
    expect(made.map(({ subject }) => subject)).toEqual(names.map((name) => `News for ${name}`))
    expect(await record(parts, id)).toMatchObject({
      status: "completed",
      channels: { email: { sent: 4, skipped: { preference: 0 } } },
    })
  })

  test("begins at its scheduled time, and not at all once it has expired", async () => {
    const project = await service.project()
    const { topic } = await audience(store, project, people(2))
    const scheduled_at = secondsFromNow(3600)
    const later = await publish(service, project, topic, { scheduled_at })
    const expires_at = secondsFromNow(1800)
    const never = await publish(service, project, topic, { scheduled_at, expires_at })
    await walkAll(service)
    expect(await record(parts, later.id)).toMatchObject({ status: "scheduled", audience: 0 })
    clock.advance({ seconds: 3601 })
    await walkAll(service)
    expect(await record(parts, later.id)).toMatchObject({ status: "completed", audience: 2 })
    expect(await record(parts, never.id)).toMatchObject({
      status: "failed",
      status_reason: "expired",
    })
    expect((await messagesOf(parts, project, never.id)).length).toBe(0)
  })

  test("fails with the code that a send would get now", async () => {
    const project = await service.project()
    const { topic } = await audience(store, project, people(2))
    const { id } = await publish(service, project, topic)
    const { sending_domains } = parts.rules
    parts.rules.sending_domains = new Set()
    await walkAll(service)
    parts.rules.sending_domains = sending_domains
    expect(await record(parts, id)).toMatchObject({
      status: "failed",
      status_reason: "domain_not_verified",
    })
  })

  test.each([
    ["before it begins", 0],
    ["on its way", CHUNK],
  ] as const)(
    "ends %s where the project is deleted or the account is not active",
    async (_, sent) => {
      const stops: [string, (project: TestProject) => Promise<unknown>][] = [
        ["account_locked", (project) => setAccount(project.account_id, { status: "locked" })],
        ["account_suspended", (project) => setAccount(project.account_id, { status: "suspended" })],
        ["unauthorized", (project) => setAccount(project.account_id, { deleting_at: now() })],
        [
          "unauthorized",
          ({ project_id }) => {
            const ours = eq(projects.id, project_id)
            const change = { status: "deleting", deleting_at: now() } as const
            return store.tx((tx) => tx.update(projects).set(change).where(ours))
          },
        ],
      ]
      for (const [status_reason, stop] of stops) {
        const project = await service.project()
        const { topic } = await audience(store, project, people(CHUNK + 2))
        const { id } = await publish(service, project, topic)
        const walk = sent > 0 ? await begun(service, id) : undefined
        await walk?.step()
        await stop(project)
        if (walk) expect(await walk.step()).toBe("over")
        await walkAll(service)
        expect(await record(parts, id)).toMatchObject({ status: "failed", status_reason })
        expect((await messagesOf(parts, project, id)).length).toBe(sent)
      }
    },
  )

  test("keeps to the send bucket, and leaves a part of it to single sends", async () => {
    const project = await service.project({ limits: { sends_per_second: 10 } })
    const { topic } = await audience(store, project, people(20))
    const { id } = await publish(service, project, topic)
    clock.freeze()
    const walk = await begun(service, id)
    expect(await walk.step()).toMatchObject({ wait_seconds: 1 })
    expect((await messagesOf(parts, project, id)).length).toBe(8)
    clock.advance({ seconds: 1 })
    await walk.step()
    expect((await messagesOf(parts, project, id)).length).toBe(16)
    clock.advance({ seconds: 1 })
    expect(await walk.step()).toBe("part_done")
    expect((await messagesOf(parts, project, id)).length).toBe(20)
  })

  test("puts recipients off while the account is throttled, and loses none", async () => {
    const project = await service.project()
    const { topic, ids } = await audience(store, project, people(12))
    const reputation = { rejected_share: 0.5 } as never
    await setAccount(project.account_id, { sending_status: "throttled", reputation })
    const { id } = await publish(service, project, topic)
    const walk = await begun(service, id)
    let steps = 1
    while ((await walk.step()) !== "part_done") steps += 1
    expect(steps).toBeGreaterThan(1)
    const reached = (await messagesOf(parts, project, id)).map((one) => one.subscriber_id)
    expect(reached).toEqual(ids)
  })

  test("defers a message to the end of quiet hours", async () => {
    const project = await service.project()
    clock.freeze()
    const end = secondsFromNow(3600).slice(0, 16)
    const quiet_hours = {
      enabled: true,
      start: secondsFromNow(-3600).slice(11, 16),
      end: end.slice(11),
      timezone: "UTC",
      channels: ["email" as const],
    }
    const { topic } = await audience(store, project, [{ preferences: { quiet_hours } }, {}])
    const { id } = await publish(service, project, topic)
    await walkAll(service)
    const [quiet, other] = await messagesOf(parts, project, id)
    expect(quiet?.scheduled_at).toBe(`${end}:00.000Z`)
    expect(other?.scheduled_at).toBeNull()
    expect(await explained(project, quiet?.id)).toEqual({
      preference: "allowed",
      quiet_hours: "quiet_hours",
    })
    expect(await explained(project, other?.id)).toEqual({
      preference: "allowed",
      quiet_hours: "no_quiet_hours",
    })
  })
})

/** The rules by which the explanation of a message says that it may go out, and when. */
async function explained(project: TestProject, id: string | undefined) {
  const { body } = await project.get(`/v1/emails/${id}/explain`)
  const steps: { stage: string; rule: string }[] = body.data.steps
  const ruleOf = (stage: string) => steps.find((one) => one.stage === stage)?.rule
  return { preference: ruleOf("preference"), quiet_hours: ruleOf("quiet_hours") }
}
