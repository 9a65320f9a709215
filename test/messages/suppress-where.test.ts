import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { outcomeOf } from "../../src/emails/smtp/outcome"
import { feedback, type LateFact } from "../../src/messages/settle"
import type { NO_REPLY, RecipientOutcome } from "../../src/providers/provider"
import { purgeGeneralBounces, purgeSoftFailures } from "../../src/suppressions/soft-failures"
import { generalBounces, softFailures, suppressions } from "../../src/suppressions/tables"
import { movableClock } from "../harness/clock"
import { bounced, deliverBy, delivered } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service
const clock = movableClock()

const DAY = 86_400

/** Sends one email a recipient, and delivers them with these answers. */
async function send(
  project: TestProject,
  to: string[],
  answer: (email: string) => RecipientOutcome,
  name = "smtp",
): Promise<string[]> {
  const ids: string[] = []
  for (const one of to) ids.push((await project.post("/v1/emails", mail({ to: one }))).body.id)
  const provider: EmailProvider = {
    name,
    schedule: () => undefined,
    send: async (one) =>
      outcomeOf(one.to.map(answer), { provider: name, schedule: () => undefined }),
    close: async () => {},
  }
  await deliverBy(service.parts, provider)
  return ids
}

const listed = async ({ project_id }: TestProject) => {
  const ours = eq(suppressions.project_id, project_id)
  const rows = await store.read.select().from(suppressions).where(ours).orderBy(suppressions.id)
  return rows.map(({ address, reason, origin, source_message_id, scope_type, expires_at }) => ({
    ...{ address, reason, origin, source_message_id, scope_type, expires_at },
  }))
}

const addresses = async (project: TestProject) =>
  (await listed(project)).map(({ address }) => address)

const refusedAs = (bounce_subtype: string) => (email: string) => ({
  ...bounced(email),
  bounce_subtype,
})

const deferred = (email: string): RecipientOutcome => ({
  ...delivered(email),
  status: "retry",
  reason: "452 4.2.2 Mailbox full",
  is_soft: true,
})

describe("a permanent bounce", () => {
  test("suppresses the address in the whole project, for ever", async () => {
    const project = await service.project()
    const [id = ""] = await send(project, ["Ann@Example.test"], bounced)
    expect(await listed(project)).toEqual([
      {
        address: "ann@example.test",
        reason: "bounce",
        origin: "event",
        source_message_id: id,
        scope_type: "project",
        expires_at: null,
      },
    ])
    expect((await project.post("/v1/emails", mail())).status).toBe(422)
    const { data } = (await project.get("/v1/events?types=suppression.*")).body
    expect(data.map(({ type }: { type: string }) => type)).toEqual(["suppression.created"])
  })

  test.each([
    ["NoEmail", true],
    ["General", false],
    ["MailboxFull", true],
    ["Suppressed", true],
    ["MessageTooLarge", false],
    ["ContentRejected", false],
    ["AttachmentRejected", false],
    ["PolicyRejected", false],
    ["InfrastructureRejected", false],
  ])("of subtype %s suppresses: %p", async (subtype, suppresses) => {
    const project = await service.project()
    await send(project, ["ann@example.test"], refusedAs(subtype))
    expect(await addresses(project)).toEqual(suppresses ? ["ann@example.test"] : [])
  })

  const HOUR = 3_600
  test.each<[string, hours: number[], at: number | undefined]>([
    ["a day apart", [0, 24], 24],
    ["six days apart", [0, 144], 144],
    ["within a day", [0, 23, 23.9], undefined],
    ["more than seven days apart", [0, 169, 338], undefined],
    ["of which only the middle one is near enough", [0, 3, 170], 170],
    ["of which an old one was forgotten", [0, 169, 200], 200],
  ])("that names nothing suppresses at the second: %s", async (_, hours, at) => {
    clock.freeze()
    const project = await service.project()
    for (const [index, hour] of hours.entries()) {
      clock.advance({ seconds: (hour - (hours[index - 1] ?? 0)) * HOUR })
      expect(await addresses(project)).toEqual([])
      await send(project, ["ann@example.test", "ann@example.test"], refusedAs("General"))
      await send(project, [`${index}@example.test`], refusedAs("General"))
    }
    expect(await addresses(project)).toEqual(at === undefined ? [] : ["ann@example.test"])
    clock.advance({ seconds: 7 * DAY + 1 })
    while ((await purgeGeneralBounces(store)) > 0);
    expect(await store.read.select().from(generalBounces)).toEqual([])
  })

  test("keeps the reply that caused it, up to 1,000 characters", async () => {
    const project = await service.project()
    const told = (response: string) => (email: string) => {
      const { reply, ...rest } = bounced(email)
      return { ...rest, reply: { ...reply, response } }
    }
    await send(project, ["a@x.test"], told("550 5.1.1 nobody of this name"))
    await send(project, ["b@x.test"], told(`550 ${"é".repeat(2_000)}`))
    const { data } = (await project.get("/v1/suppressions")).body
    const [long, short] = data.map((row: { diagnostic: string }) => row.diagnostic)
    expect(short).toBe("550 5.1.1 nobody of this name")
    expect(long).toBe(`550 ${"é".repeat(996)}`)
  })

  test("of many messages at once suppresses each address once", async () => {
    const project = await service.project()
    const to = ["a@x.test", "b@x.test", "a@x.test", "c@x.test"]
    await send(project, to, bounced)
    expect((await addresses(project)).sort()).toEqual(["a@x.test", "b@x.test", "c@x.test"])
    const { meta } = (await project.get("/v1/suppressions?origin=event")).body
    expect(meta.total).toBe(3)
  })

  test("of a copy suppresses the copy", async () => {
    const project = await service.project()
    const body = mail({ cc: "ben@example.test" })
    await project.post("/v1/emails", body)
    await send(project, [], (email) =>
      email.startsWith("ben") ? bounced(email) : delivered(email),
    )
    expect(await addresses(project)).toEqual(["ben@example.test"])
  })

  test("said by the embedded mailbox counts for its own domain alone", async () => {
    const project = await service.project()
    const to = ["bounce@mailbox.test", "ann@example.test"]
    await send(project, to, bounced, "mailbox")
    expect(await addresses(project)).toEqual(["bounce@mailbox.test"])
  })
})

test("what is delivered or fails for our own reasons suppresses nothing", async () => {
  const project = await service.project()
  await send(project, ["a@x.test"], delivered)
  const failed = (email: string): RecipientOutcome => ({ ...bounced(email), status: "failed" })
  await send(project, ["b@x.test"], failed)
  const unreached = (email: string): RecipientOutcome => ({
    ...deferred(email),
    is_soft: undefined as never,
    fault: "connection",
  })
  for (const _ of Array(4)) await send(project, ["c@x.test"], unreached)
  expect(await listed(project)).toEqual([])
  const ours = eq(softFailures.project_id, project.project_id)
  expect(await store.read.select().from(softFailures).where(ours)).toEqual([])
})

describe("messages that are given up after soft failures", () => {
  test("suppress the address for 30 days, the third within 7 days", async () => {
    clock.freeze()
    const project = await service.project()
    await send(project, ["ann@example.test"], deferred)
    await send(project, ["ann@example.test"], deferred)
    expect(await listed(project)).toEqual([])
    const [id = ""] = await send(project, ["ann@example.test"], deferred)
    const [row] = await listed(project)
    expect(row).toMatchObject({ reason: "bounce", origin: "event", source_message_id: id })
    const days = (Date.parse(row?.expires_at ?? "") - Date.now()) / 86_400_000
    expect(Math.round(days)).toBe(30)
    const ask = "/v1/suppressions/check?email=ann@example.test"
    expect((await project.get(ask)).body.data.suppressed).toBe(true)
    clock.advance({ seconds: 30 * DAY + 60 })
    expect((await project.get(ask)).body.data.suppressed).toBe(false)
  })

  test("do not where they are further apart", async () => {
    clock.freeze()
    const project = await service.project()
    for (const _ of Array(4)) {
      await send(project, ["ann@example.test"], deferred)
      clock.advance({ seconds: 3.6 * DAY })
    }
    expect(await listed(project)).toEqual([])
    clock.advance({ seconds: 7 * DAY })
    while ((await purgeSoftFailures(store)) > 0);
    const ours = eq(softFailures.project_id, project.project_id)
    expect(await store.read.select().from(softFailures).where(ours)).toEqual([])
  })

  test("count for their address alone", async () => {
    const project = await service.project()
    await send(project, ["a@x.test", "b@x.test", "c@x.test"], deferred)
    await send(project, ["a@x.test", "b@x.test"], deferred)
    expect(await listed(project)).toEqual([])
    await send(project, ["b@x.test"], deferred)
    expect(await addresses(project)).toEqual(["b@x.test"])
  })
})

describe("what is told later", () => {
  const detail = (reply: Partial<typeof NO_REPLY>) => ({
    ...{ smtp_code: null, enhanced_code: null, mx: null, tls: null, response: null },
    ...reply,
  })

  const later = async (fact: Omit<LateFact, "address">, times = 1) => {
    const project = await service.project()
    for (let at = 0; at < times; at++) {
      const [id = ""] = await send(project, ["ann@example.test"], delivered)
      await store.tx((tx) => feedback(tx, id, { ...fact, address: "ann@example.test" }))
    }
    return listed(project)
  }

  test("a complaint suppresses the address for ever", async () => {
    const rows = await later({ type: "complained", complaint_feedback_type: "abuse" })
    expect(rows).toMatchObject([{ reason: "complaint", origin: "event", expires_at: null }])
  })

  test("a report that mail is no spam does not", async () => {
    expect(await later({ type: "complained", complaint_feedback_type: "not-spam" })).toEqual([])
  })

  test("a permanent bounce does, and one of the infrastructure does not", async () => {
    const permanent = { type: "bounced", bounce_type: "Permanent" } as const
    const rows = await later({ ...permanent, bounce_subtype: "NoEmail" })
    expect(rows).toMatchObject([{ reason: "bounce", expires_at: null }])
    expect(await later({ ...permanent, bounce_subtype: "PolicyRejected" })).toEqual([])
  })

  test("a bounce of deferred mail counts as a soft failure", async () => {
    const full = { bounce_subtype: "MailboxFull" }
    const by_provider = { type: "bounced", bounce_type: "Transient", ...full } as const
    expect(await later(by_provider, 2)).toEqual([])
    expect(await later(by_provider, 3)).toMatchObject([{ expires_at: expect.any(String) }])
    const of_report = { type: "bounced", bounce_type: "Permanent", ...full } as const
    const by_relay = { ...of_report, detail: detail({ enhanced_code: "4.2.2" }) }
    expect(await later(by_relay)).toEqual([])
    const by_server = { ...of_report, detail: detail({ enhanced_code: "4.2.2", smtp_code: 552 }) }
    expect(await later(by_server)).toMatchObject([{ expires_at: null }])
  })

  test("a deferral on the way changes nothing", async () => {
    expect(await later({ type: "soft_bounced", bounce_subtype: "MailboxFull" }, 4)).toEqual([])
  })
})
