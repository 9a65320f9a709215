import { expect, test } from "bun:test"
import { asc, inArray, like } from "drizzle-orm"
import { readLocalPart } from "../../src/core/mail-token"
import { domains } from "../../src/domains/tables"
import { HELD } from "../../src/jobs/work-item"
import { asTheyStand } from "../../src/messages/message-list"
import { attempts, messages } from "../../src/messages/tables"
import { testDomain } from "../domains/subject"
import { smtpSink } from "../fakes/smtp-sink"
import { movableClock } from "../harness/clock"
import { mail } from "../harness/mail"
import { type TestService, testService } from "../harness/service"
import { PATIENT } from "../harness/waits"
import { delivering } from "./direct-delivery"
import { a, directOn, mx, type Names } from "./providers/direct-fixture"

const clock = movableClock()

const NAMES: Names = {
  "MX quick.test": mx([10, "mx.quick.test"]),
  "A mx.quick.test": a("127.0.0.1"),
  "MX slow.test": mx([10, "mx.slow.test"]),
  "A mx.slow.test": a("127.0.0.2"),
}

async function rowsTo({ store }: TestService, domain: string) {
  const rows = await store.read
    .select()
    .from(messages)
    .where(like(messages.address, `%@${domain}`))
    .orderBy(asc(messages.id))
  const views = await asTheyStand(store.read, rows)
  return rows.map((row, at) => ({ ...row, ...views[at] }))
}

const settled = async (it: TestService, domain: string) => {
  const rows = await rowsTo(it, domain)
  return rows.length > 0 && rows.every(({ status }) => status === "delivered")
}

async function sendTo(it: TestService, domain: string, count: number) {
  const project = await it.project()
  for (let sent = 0; sent < count; sent += 100) {
    const list = Array.from({ length: Math.min(100, count - sent) }, (_, n) =>
      mail({ to: `user${sent + n}@${domain}` }),
    )
    const { status } = await project.post("/v1/emails/batch", { messages: list })
    expect(status).toBe(200)
  }
}

test("a domain that hangs keeps nobody else from being delivered to", async () => {
  await using it = await testService()
  using quick = smtpSink()
  using slow = smtpSink({ greeting: "stall" }, { hostname: "127.0.0.2", port: quick.port })
  const timeouts = { ...PATIENT, greeting: 60_000 }
  await using on = await directOn(NAMES, { port: quick.port, timeouts })

  await sendTo(it, "slow.test", 300)
  await sendTo(it, "quick.test", 40)
  await delivering(it, on.provider, () => settled(it, "quick.test"))

  expect(quick.received).toHaveLength(40)
  expect(slow.connections()).toBe(2) // of twenty places, and the queue holds three hundred
  const waiting = (await rowsTo(it, "slow.test")).filter(({ status }) => status === "queued")
  const held = waiting.filter(({ status_reason }) => status_reason?.startsWith("slow.test"))
  expect(held.length).toBeGreaterThan(0)
  for (const { attempts: made, next_attempt_at, recipients } of held) {
    expect(made).toBe(0)
    expect(next_attempt_at).not.toBeNull()
    expect(recipients).toMatchObject([{ status: "queued", status_reason: null }])
  }
})

test("new domains that hang leave room for one that is known to be quick", async () => {
  await using it = await testService()
  using quick = smtpSink()
  using _ = smtpSink({ greeting: "stall" }, { hostname: "127.0.0.2", port: quick.port })
  const timeouts = { ...PATIENT, greeting: 60_000 }
  const names: Names = { ...NAMES }
  for (let n = 0; n < 12; n++) names[`MX new${n}.test`] = mx([10, "mx.slow.test"])
  await using on = await directOn(names, { port: quick.port, timeouts })

  await sendTo(it, "quick.test", 1)
  await delivering(it, on.provider, () => settled(it, "quick.test"))
  for (let n = 0; n < 12; n++) await sendTo(it, `new${n}.test`, 2)
  await sendTo(it, "quick.test", 5)
  await delivering(it, on.provider, () => settled(it, "quick.test"))

  expect(quick.received).toHaveLength(6)
  expect(await it.store.read.select().from(attempts)).toHaveLength(6) // no other one was over
})

test("a domain that asks for less gets less, and everything in the end", async () => {
  await using it = await testService()
  let greeted = 0
  const greeting = () => (greeted++ < 1 ? "421 4.7.0 too many connections" : undefined)
  using sink = smtpSink({ greeting }, { hostname: "127.0.0.2" })
  await using on = await directOn(NAMES, { port: sink.port })

  await sendTo(it, "slow.test", 12)
  await delivering(it, on.provider, async (loop) => {
    const rows = await rowsTo(it, "slow.test")
    if (rows.every(({ status }) => status !== "sending")) clock.advance({ seconds: 5 })
    loop.wake()
    return rows.every(({ status }) => status === "delivered")
  })
  expect(sink.received).toHaveLength(12)
  const rows = await it.store.read.select().from(attempts)
  expect(rows.filter(({ outcome }) => outcome === "retry").length).toBeLessThanOrEqual(2)
})

test("a lost reply is another attempt with the same Message-ID, and is told as one message", async () => {
  await using it = await testService()
  let ends = 0
  using sink = smtpSink({ end: () => (ends++ === 0 ? "drop" : undefined) })
  await using on = await directOn(NAMES, { port: sink.port })
  await sendTo(it, "quick.test", 1)
  await delivering(it, on.provider, async (loop) => {
    if (ends === 1) clock.advance({ seconds: 120 })
    loop.wake()
    return settled(it, "quick.test")
  })
  const [row] = await rowsTo(it, "quick.test")
  expect(row).toMatchObject({ status: "delivered", attempts: 2 })
  expect(sink.received[0]).toContain(`Message-ID: ${row?.rfc_message_id}`)
})

test("what goes to a paused domain is held with its reason, and the rest of a message goes", async () => {
  await using it = await testService()
  using sink = smtpSink()
  using other = smtpSink({}, { hostname: "127.0.0.2", port: sink.port })
  await using on = await directOn(NAMES, { port: sink.port })
  await it.parts.queues.pause("email:slow.test", null)
  const project = await it.project()
  await project.post("/v1/emails", mail({ to: "ann@slow.test" }))
  await project.post("/v1/emails", mail({ to: "ann@quick.test", cc: ["kim@slow.test"] }))
  await delivering(it, on.provider, async () => {
    const open = inArray(messages.state, [0, 1])
    const rows = await it.store.read.select().from(messages).where(open)
    return (await settled(it, "quick.test")) && rows.every(({ attempt }) => attempt > 0)
  })

  expect(other.received).toEqual([])
  const [held] = await rowsTo(it, "slow.test")
  const reason = "The queue email:slow.test is paused by an operator."
  expect(held).toMatchObject({ status: "queued", attempts: 0, status_reason: reason })
  expect(held).toMatchObject({ state: HELD, owner: "email:slow.test" })
  const [both] = await rowsTo(it, "quick.test")
  expect(both?.recipients.map(({ status }) => status)).toEqual(["delivered", "queued"])

  await it.parts.queues.resume("email:slow.test")
  clock.advance({ seconds: 61 })
  await delivering(it, on.provider, async () => other.received.length === 2)
  expect(await settled(it, "slow.test")).toBe(true)
})

test("reports go to an address of the message's own, at the return path that was seen", async () => {
  await using it = await testService()
  using sink = smtpSink()
  await using on = await directOn(NAMES, { port: sink.port })
  const project = await it.project()
  const check = { found: [], hint: null, mistake: null, difference: null, answers: [] }
  const row = testDomain("example.test", {
    project_id: project.project_id,
    status: "verified",
    records: { return_path: { status: "verified", ...check } },
  })
  await it.store.tx((tx) => tx.insert(domains).values(row))
  const { body } = await project.post("/v1/emails", mail({ to: "ann@quick.test" }))
  await delivering(it, on.provider, () => settled(it, "quick.test"))
  const line = sink.lines.find((one) => one.startsWith("MAIL"))
  const local = /^MAIL FROM:<(b\+[a-z2-7]+)@bounce\.example\.test>/.exec(line ?? "")?.[1]
  expect(readLocalPart(it.parts.secrets, local ?? "")).toEqual({ kind: "b", message_id: body.id })
})
