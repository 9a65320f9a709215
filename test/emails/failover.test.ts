import { describe, expect, test } from "bun:test"
import { LOCAL } from "../../src/audit-log/audit-log"
import { direct } from "../../src/emails/providers/direct"
import { DeferredError } from "../../src/jobs/work-item"
import * as configs from "../../src/providers/configs"
import { mailTo } from "../contracts/email-provider"
import { type Script, smtpSink } from "../fakes/smtp-sink"
import { nobody } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { PROJECT } from "../messages/letters"
import { refusal } from "../store/facts"
import { failover, OWNER } from "./failover-setup"

quietLog()

const ANN = "ann@example.test"
const BOB = "bob@example.test"

const at = ({ port }: { port: number }, more: object = {}) => ({
  host: "127.0.0.1",
  port,
  tls: "none",
  ...more,
})

const LOGIN = { username: "belfry", password: "a right password" }
const AUTH = "250-sink.test\r\n250-PIPELINING\r\n250 AUTH PLAIN"

type Case = [why: string, script: Script, status: string, fails_over: boolean]

const table: Case[] = [
  ["hangs up before its greeting", { greeting: "drop" }, "retry", true],
  ["is closing (421 greeting)", { greeting: "421 4.3.2 closing" }, "retry", true],
  ["refuses us (554 greeting)", { greeting: "554 5.7.1 go away" }, "failed", true],
  ["refuses the login (535)", { EHLO: AUTH, AUTH: "535 5.7.8 wrong" }, "waiting", true],
  ["wants a login (530 at MAIL)", { MAIL: "530 5.7.0 log in" }, "waiting", true],
  ["has no login now (454)", { EHLO: AUTH, AUTH: "454 4.7.0 later" }, "retry", true],
  ["is full (452 at MAIL)", { MAIL: "452 4.3.1 full" }, "retry", true],
  ["has a quota for us (550 at MAIL)", { MAIL: "550 5.4.5 daily quota" }, "failed", true],
  ["closes at RCPT (421)", { RCPT: "421 4.7.0 too many" }, "retry", true],
  ["hangs up at DATA", { DATA: "drop" }, "retry", true],
  [
    "is on a block list (554 at DATA)",
    { DATA: "554 5.7.1 client host blocked using spamhaus" },
    "failed",
    true,
  ],
  ["does not relay for us (554 at RCPT)", { RCPT: "554 Relay access denied" }, "failed", true],
  ["has a quota (550 at RCPT)", { RCPT: "550 5.4.5 Daily user sending quota" }, "failed", true],
  ["has a quota (452 at RCPT)", { RCPT: "452 4.5.3 sending quota exceeded" }, "retry", true],
  ["has a quota (552 at MAIL)", { MAIL: "552 5.2.2 sending quota exceeded" }, "failed", true],
  ["has a quota (552 at the end)", { end: "552 5.2.2 sending quota exceeded" }, "failed", true],
  ["has a limit (550 at the end)", { end: "550 Daily SMTP relay limit exceeded" }, "failed", true],
  ["is out of order (503 at RCPT)", { RCPT: "503 Bad sequence of commands" }, "failed", true],
  ["does not know the recipient (550)", { RCPT: "550 5.1.1 nobody here" }, "bounced", false],
  ["defers the recipient (450)", { RCPT: "450 4.2.0 grey" }, "retry", false],
  ["has a full mailbox (552)", { RCPT: "552 5.2.2 full" }, "bounced", false],
  ["takes nothing so large (552 at MAIL)", { MAIL: "552 5.3.4 too big" }, "bounced", false],
  ["takes nothing so long (552 at MAIL)", { MAIL: "552 5.2.3 too long" }, "bounced", false],
  ["has a size in words (552 at MAIL)", { MAIL: "552 message size exceeds" }, "bounced", false],
  ["dislikes the content (554)", { end: "554 5.6.0 spam" }, "bounced", false],
  ["defers the content (451)", { end: "451 4.3.0 later" }, "retry", false],
  ["loses its reply to the message", { end: "drop" }, "retry", false],
]

test.each(table)("a provider that %s: alone, and with another behind it", async (_, ...row) => {
  const [script, status, fails_over] = row
  using first = smtpSink(script)
  using second = smtpSink()
  await using alone = await failover()
  await alone.add("smtp", at(first, LOGIN))
  const { status: said, login_refused } = await alone.send(ANN)
  expect(login_refused ? "waiting" : said).toBe(status as "retry")

  await using both = await failover()
  await both.add("smtp", at(first, LOGIN), { priority: 1 })
  await both.add("smtp", at(second), { priority: 2, name: "backup" })
  const outcome = await both.send(ANN)
  expect(outcome.status).toBe(fails_over ? "sent" : (status as "retry"))
  expect(second.received).toHaveLength(fails_over ? 1 : 0)
  const log = outcome.transcript.join("\n")
  if (fails_over) expect(log).toContain("* trying the next provider: smtp (backup)")
  expect(log).not.toContain(LOGIN.password)
})

test("nobody listens at the first provider: the second one takes it", async () => {
  const gone = smtpSink()
  gone[Symbol.dispose]()
  using second = smtpSink()
  await using it = await failover()
  await it.add("smtp", at(gone), { priority: 1 })
  await it.add("smtp", at(second), { priority: 2 })
  expect(await it.send(ANN)).toMatchObject({ status: "sent", provider: "smtp" })
})

test("one recipient is refused for good, the other goes on to the next provider", async () => {
  const script = { RCPT: (line: string) => (line.includes("bob") ? "421 4.3.2 bye" : undefined) }
  using first = smtpSink({ ...script, DATA: "drop" })
  using refusing = smtpSink({
    RCPT: (line) => (line.includes("ann") ? "550 5.1.1 no" : "550 5.7.1 your ip is blocked"),
  })
  using second = smtpSink()
  await using it = await failover()
  await it.add("smtp", at(refusing), { priority: 1 })
  await it.add("smtp", at(second), { priority: 2 })
  const outcome = await it.send(ANN, BOB)
  expect([outcome, ...outcome.others].map(({ address: email, status }) => [email, status])).toEqual(
    [
      [ANN, "bounced"],
      [BOB, "sent"],
    ],
  )
  expect(second.lines.filter((line) => line.startsWith("RCPT"))).toEqual([`RCPT TO:<${BOB}>`])
  expect(first.received).toEqual([])
})

test("a provider that was away and one that refuses for good: there is another try", async () => {
  using away = smtpSink({ greeting: "421 4.3.2 closing" })
  using refusing = smtpSink({ MAIL: "550 5.4.5 quota" })
  await using it = await failover()
  await it.add("smtp", at(away), { priority: 1 })
  await it.add("smtp", at(refusing), { priority: 2 })
  expect(await it.send(ANN)).toMatchObject({ status: "retry" })
})

test("the order is that of the priorities, and who is switched off is not asked", async () => {
  using first = smtpSink()
  using second = smtpSink()
  await using it = await failover()
  const low = await it.add("smtp", at(first), { priority: 1 })
  await it.add("smtp", at(second), { priority: 2 })
  await it.send(ANN)
  await it.change(low.id, { priority: 3 })
  await it.send(ANN)
  await it.change(low.id, { priority: 1, enabled: false })
  await it.send(ANN)
  expect([first.received.length, second.received.length]).toEqual([1, 2])
})

test("another address takes effect with the next message, over warm connections too", async () => {
  using old = smtpSink()
  using fresh = smtpSink()
  await using it = await failover()
  const { id } = await it.add("smtp", at(old))
  await it.send(ANN)
  await it.send(ANN)
  expect(old.connections()).toBe(1)
  await it.change(id, { credentials: at(fresh) })
  await it.send(ANN)
  expect([old.received.length, fresh.received.length]).toEqual([2, 1])
})

test("refused credentials pause a provider: it is not asked again until they are changed", async () => {
  using strict = smtpSink({
    EHLO: AUTH,
    AUTH: (line) => (line.includes(btoa("\0belfry\0right")) ? undefined : "535 5.7.8 wrong"),
  })
  await using it = await failover()
  const { id } = await it.add("smtp", at(strict, { username: "belfry", password: "wrong" }))
  const by = `provider:${PROJECT}`
  const first = await it.send(ANN)
  expect(first).toMatchObject({ status: "retry", login_refused: { by } })
  expect(first.login_refused?.reason).toContain("refuses our login: AUTH: 535 5.7.8 wrong")
  const paused = await it.find(id)
  expect(paused).toMatchObject({ status: "error", last_error: "AUTH: 535 5.7.8 wrong" })
  expect(await refusal(it.send(ANN))).toContain("refuses our login: AUTH: 535 5.7.8 wrong")
  expect(strict.connections()).toBe(1)

  await it.change(id, { credentials: at(strict, { username: "belfry", password: "right" }) })
  expect(await it.send(ANN)).toMatchObject({ status: "sent" })
  expect(await it.find(id)).toMatchObject({ status: "active", last_error: null })
})

test("a refusal of credentials that were replaced meanwhile pauses nothing", async () => {
  const change = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const strict = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => void socket.write("220 sink.test\r\n"),
      async data(socket, bytes) {
        if (!bytes.toString().startsWith("AUTH")) return void socket.write(`${AUTH}\r\n`)
        asked.resolve()
        await change.promise
        socket.write("535 5.7.8 wrong\r\n")
      },
    },
  })
  using after = smtpSink()
  await using it = await failover()
  const { id } = await it.add("smtp", at(strict, LOGIN))
  const sending = refusal(it.send(ANN))
  await asked.promise
  await it.change(id, { credentials: at(after) })
  change.resolve()
  await sending
  expect(await it.find(id)).toMatchObject({ status: "active", paused_until: null })
  strict.stop(true)
})

test("the instance's own provider refuses the login: the message waits, it is not burnt", async () => {
  using strict = smtpSink({ EHLO: AUTH, AUTH: "535 5.7.8 wrong" })
  const { smtp } = await import("../../src/emails/providers/smtp")
  const own = smtp({ ...at(strict, LOGIN), tls: "none" })
  await using it = await failover({ own })
  expect(await it.send(ANN)).toMatchObject({ login_refused: { by: `provider:${PROJECT}` } })
  expect(await refusal(it.send(ANN))).toContain("smtp refuses our login: AUTH: 535 5.7.8 wrong")
  expect(strict.connections()).toBe(1)
})

test("where a tenant's host leads is checked for each connection", async () => {
  using sink = smtpSink()
  await using it = await failover({ allow_private: [] })
  await it.add("smtp", at(sink))
  const outcome = await it.send(ANN)
  expect(outcome.status).toBe("retry")
  expect(outcome.reason).toContain("an address that is not allowed")
  expect(sink.connections()).toBe(0)
})

test("a project's pace holds: what is too much waits for its turn", async () => {
  using sink = smtpSink()
  await using it = await failover()
  await it.add("smtp", at(sink), { settings: { max_per_second: 0.001 } })
  expect(await it.send(ANN)).toMatchObject({ status: "sent" })
  expect(await refusal(it.send(ANN))).toContain("at most 0.001 messages a second")
  expect(sink.received).toHaveLength(1)
})

test("a project without providers sends by the instance's own", async () => {
  using sink = smtpSink()
  const { smtp } = await import("../../src/emails/providers/smtp")
  await using it = await failover({ own: smtp({ ...at(sink), tls: "none" }) })
  expect(await it.send(ANN)).toMatchObject({ status: "sent", provider: "smtp" })
})

test("the next provider has no room: what the first one said is not lost", async () => {
  using first = smtpSink({
    RCPT: (line) => (line.includes("bob") ? "550 5.7.1 your ip is blocked" : undefined),
  })
  await using it = await failover({
    openDirect: () => ({
      ...nobody,
      name: "direct",
      send: () => Promise.reject(new DeferredError("no room", 1)),
    }),
  })
  await it.add("smtp", at(first), { priority: 1 })
  await it.add("direct", {}, { priority: 2 })
  const outcome = await it.send(ANN, BOB)
  expect([outcome, ...outcome.others].map(({ address: email, status }) => [email, status])).toEqual(
    [
      [ANN, "sent"],
      [BOB, "failed"],
    ],
  )
})

test("a provider that is deleted while it carries a message ends that one, and gets no other", async () => {
  const began = Promise.withResolvers<void>()
  using old = smtpSink({
    RCPT: () => {
      began.resolve()
      return undefined
    },
  })
  using next = smtpSink()
  await using it = await failover()
  const { id } = await it.add("smtp", at(old), { priority: 1 })
  await it.add("smtp", at(next), { priority: 2 })
  const sending = it.send(ANN)
  await began.promise
  const config = { kind: "email_provider" as const, id }
  await it.store.tx((tx) => configs.remove(tx, OWNER, config, LOCAL))
  expect(await sending).toMatchObject({ status: "sent" })
  expect(await it.send(BOB)).toMatchObject({ status: "sent" })
  expect([old.received.length, next.received.length]).toEqual([1, 1])
})

describe("before a message is composed", () => {
  const admit = (it: Awaited<ReturnType<typeof failover>>, id: string, is_urgent = false) =>
    it.provider.admit(id, [ANN], is_urgent, PROJECT).then(
      () => "come in",
      (error) => (error instanceof DeferredError ? (error.by ?? error.seconds) : error),
    )

  test("it is told to wait for a paused provider until that comes back", async () => {
    using strict = smtpSink({ EHLO: AUTH, AUTH: "535 5.7.8 wrong" })
    await using it = await failover()
    const { id } = await it.add("smtp", at(strict, LOGIN))
    expect(await admit(it, "message_1")).toBe("come in")
    await it.send(ANN)
    expect(await admit(it, "message_2")).toBe(`provider:${PROJECT}`)
    await it.change(id, { enabled: true })
    expect(await admit(it, "message_2")).toBe("come in")
  })

  test("it takes its turn of the pace, which it has not to take again; a code passes the others", async () => {
    using sink = smtpSink()
    await using it = await failover()
    await it.add("smtp", at(sink), { settings: { max_per_second: 1 } })
    const { message_id } = mailTo(ANN)
    expect(await admit(it, message_id)).toBe("come in")
    expect(await admit(it, message_id)).toBe("come in")
    expect(await admit(it, "message_2")).toBeWithin(0.9, 1.1)
    expect(await it.send(ANN)).toMatchObject({ status: "sent" })
    expect(await admit(it, "message_3", true)).toBe("come in")
    it.provider.dismiss(message_id)
    expect(await refusal(it.send(ANN))).toContain("at most 1 messages a second")
  })

  test("it gets its place in the line of its recipients' domain, which ends with it", async () => {
    const dismissed: string[] = []
    const full = direct({ dns: NO_NAMES, policies: NO_POLICIES, per_domain: 1 })
    const openDirect = () => ({
      ...full,
      dismiss: (id: string) => {
        dismissed.push(id)
        full.dismiss?.(id)
      },
    })
    await using it = await failover({ openDirect })
    await it.add("direct", {})
    expect(await admit(it, "message_1")).toBe("come in")
    expect(await admit(it, "message_2")).toBeWithin(0, 2)
    it.provider.dismiss("message_1")
    expect(await admit(it, "message_2")).toBe("come in")
    expect(dismissed).toEqual(["message_1"])
  })
})

const none = async () => []
const NO_NAMES = { mx: none, a: none, aaaa: none, txt: none }
const NO_POLICIES = { find: async () => undefined, keep: async () => {} }
