import { afterAll, afterEach, expect, spyOn, test } from "bun:test"
import { connect as connectTls } from "node:tls"
import { log } from "../../src/core/log"
import { SmtpReplyError } from "../../src/smtp/mail-session"
import { selfSigned } from "../fakes/smtp-certificate"
import { SmtpDialogue } from "../harness/smtp-dialogue"
import { loggedIn, openTestMailServer, until } from "./open-mail-server"

const envelope = ["MAIL FROM:<a@b.test>", "RCPT TO:<ann@example.test>"]
const MAIL = "Subject: x\r\n\r\nhi\r\n."

const told = [spyOn(log, "info"), spyOn(log, "warn")].map((spy) => spy.mockImplementation(() => {}))
afterEach(() => {
  for (const spy of told) spy.mockClear()
})

afterAll(() => {
  for (const spy of told) spy.mockRestore()
})

const lines = (text: string) =>
  told
    .flatMap((spy) => spy.mock.calls)
    .flatMap(([message, fields]) => (message === text ? [fields] : []))

test("one address may open 20 connections, and all together 500", async () => {
  await using it = await openTestMailServer({ limits: { connections: 25 } })
  const open: SmtpDialogue[] = []
  const dial = (local: string) => SmtpDialogue.connect(it.server.port, { local })
  for (let i = 0; i < 20; i += 1) open.push(dial("127.0.0.1"))
  for (const one of open) expect((await one.reply()).code).toBe(220)
  const more = dial("127.0.0.1")
  expect((await more.reply()).text).toStartWith("421 4.7.0 rate_limit_exceeded: ")
  await more.end()

  for (let i = 0; i < 5; i += 1) open.push(dial("127.0.0.2"))
  for (const one of open.slice(20)) expect((await one.reply()).code).toBe(220)
  await until(() => it.server.counts().open_connections === 25)
  expect((await dial("127.0.0.3").reply()).text).toStartWith("421 4.3.2 service_unavailable: ")

  for (const one of open) one.socket.destroy()
  await until(() => it.server.counts().open_connections === 0)
  using again = await SmtpDialogue.open(it.server.port, { local: "127.0.0.1" })
  expect(await again.say("NOOP")).toStartWith("250 ")
  expect(it.server.counts()).toMatchObject({ sessions: 26, refused_connections: 2 })
  expect(lines("a mail server refused connections")).toHaveLength(1)
})

test("an address may open only so many connections in a minute", async () => {
  await using it = await openTestMailServer({ kind: "inbound", limits: { per_minute: 3 } })
  for (let i = 0; i < 3; i += 1) {
    using one = await SmtpDialogue.open(it.server.port)
    await one.say("QUIT")
    await one.end()
  }
  using refused = SmtpDialogue.connect(it.server.port)
  expect((await refused.reply()).text).toStartWith("421 4.7.0 rate_limit_exceeded: ")
  using other = SmtpDialogue.connect(it.server.port, { local: "127.0.0.2" })
  expect((await other.reply()).code).toBe(220)
})

test("a client that says nothing, or drips, is closed at the deadline of its phase", async () => {
  const deadlines = { greeting: 400, command: 400, data_idle: 400, data: 1200 }
  const implicit = { host: "127.0.0.1", port: 0 }
  await using it = await openTestMailServer({ kind: "inbound", deadlines, implicit })
  const { port } = it.server
  const silent = await SmtpDialogue.open(port)
  const dripping = await SmtpDialogue.open(port)
  await dripping.say("EHLO me.test")
  const idle = await SmtpDialogue.open(port)
  await idle.talk("EHLO me.test", ...envelope, "DATA")
  const slow = await SmtpDialogue.open(port)
  await slow.talk("EHLO me.test", ...envelope, "DATA")
  const handshake = SmtpDialogue.connect(it.server.implicit_port ?? 0)
  const drip = setInterval(() => {
    if (!dripping.closed) dripping.write("X")
    if (!slow.closed) slow.write("a\r\n")
  }, 50)
  try {
    expect((await silent.reply()).text).toStartWith("421 4.4.2 timeout: ")
    expect((await dripping.reply()).text).toStartWith("421 4.4.2 ")
    expect((await idle.reply()).text).toStartWith("421 4.4.2 ")
    expect(slow.closed).toBe(false)
    expect((await slow.reply()).text).toStartWith("421 4.4.2 ")
    expect(await handshake.end()).toBe("")
    for (const one of [silent, dripping, idle, slow]) await one.end()
  } finally {
    clearInterval(drip)
  }
  await until(() => it.server.counts().open_connections === 0)
  expect(it.server.counts()).toMatchObject({ timeouts: 5, buffered_bytes: 0, accepted_mails: 0 })
  expect(lines("smtp session").map((fields) => fields?.verdict)).toEqual(Array(4).fill("timeout"))
})

test("a client that speaks before the greeting is sent away", async () => {
  await using it = await openTestMailServer()
  using early = SmtpDialogue.connect(it.server.port, { first: "EHLO me.test\r\n" })
  expect((await early.reply()).text).toStartWith("421 4.7.0 ")
  using web = await SmtpDialogue.open(it.server.port)
  expect(await web.say("GET / HTTP/1.1")).toStartWith("421 4.7.0 ")
})

test("only a trusted proxy may say who the client is", async () => {
  await using it = await openTestMailServer({
    kind: "inbound",
    trusted_proxies: () => ["127.0.0.9/32"],
    limits: { per_address: 2 },
  })
  const { port } = it.server
  const header = (n: number) => `PROXY TCP4 192.0.2.${n} 198.51.100.1 5000 25\r\n`

  using forged = SmtpDialogue.connect(port, { local: "127.0.0.1", first: header(1) })
  expect((await forged.reply()).text).toStartWith("421 4.7.0 ")
  using late = await SmtpDialogue.open(port, { local: "127.0.0.1" })
  expect(await late.say(header(1).trim())).toStartWith("500 5.5.2 ")
  await late.talk("EHLO me.test", ...envelope, "DATA", MAIL)
  expect(it.sessions[0]?.address).toBe("127.0.0.1")

  const proxied = { local: "127.0.0.9" }
  using first = await SmtpDialogue.open(port, { ...proxied, first: header(7) })
  await first.talk("EHLO me.test", ...envelope, "DATA", MAIL)
  expect(it.sessions[1]?.address).toBe("192.0.2.7")
  await first.say("QUIT")
  await until(() => lines("smtp session").some((fields) => fields?.proxy === "127.0.0.9"))

  const binary = Buffer.from("0d0a0d0a000d0a515549540a2111000cc0000208c6336401dc040019", "hex")
  using second = await SmtpDialogue.open(port, { ...proxied, first: binary })
  await second.talk("EHLO me.test", ...envelope, "DATA", MAIL)
  expect(it.sessions[2]?.address).toBe("192.0.2.8")

  using health_check = await SmtpDialogue.open(port, { ...proxied, first: "PROXY UNKNOWN\r\n" })
  expect(await health_check.say("NOOP")).toStartWith("250 ")

  using wrong = SmtpDialogue.connect(port, { ...proxied, first: "EHLO me.test\r\n" })
  expect(await wrong.end()).toBe("")
  using smuggler = SmtpDialogue.connect(port, { ...proxied, first: `${header(1)}EHLO x\r\n` })
  expect((await smuggler.reply()).text).toStartWith("421 4.7.0 ")
})

test("clients behind a proxy have their own limits", async () => {
  await using it = await openTestMailServer({
    kind: "inbound",
    trusted_proxies: () => ["127.0.0.0/8"],
    limits: { per_address: 1 },
  })
  const dial = (n: number) =>
    SmtpDialogue.connect(it.server.port, { first: `PROXY TCP4 192.0.2.${n} 10.0.0.1 1 25\r\n` })
  using one = dial(1)
  using two = dial(2)
  expect([(await one.reply()).code, (await two.reply()).code]).toEqual([220, 220])
  using again = dial(1)
  expect((await again.reply()).text).toStartWith("421 4.7.0 rate_limit_exceeded: ")
})

test("a drain ends what is idle, lets a mail arrive, and refuses new clients", async () => {
  const gate = Promise.withResolvers<string>()
  await using it = await openTestMailServer({ onMail: () => gate.promise })
  using idle = await SmtpDialogue.open(it.server.port)
  using sending = await loggedIn(it)
  await sending.talk(...envelope, "DATA")
  it.server.drain()
  expect((await idle.reply()).text).toStartWith("421 4.3.2 service_unavailable: ")
  await idle.end()
  using late = SmtpDialogue.connect(it.server.port)
  expect((await late.reply()).text).toStartWith("421 4.3.2 ")
  const closed = it.server.close(10_000)
  sending.write(`${MAIL}\r\n`)
  gate.resolve("2.0.0 Ok: queued as 1")
  expect((await sending.reply()).text).toStartWith("250 2.0.0 ")
  expect((await sending.reply()).text).toStartWith("421 4.3.2 ") // it asked for nothing more
  await sending.end()
  await closed
  expect(it.server.isListening()).toBe(false)
})

test("a close waits only so long", async () => {
  await using it = await openTestMailServer({ onMail: () => new Promise<string>(() => {}) })
  using sending = await loggedIn(it)
  await sending.talk(...envelope, "DATA")
  sending.write(`${MAIL}\r\n`)
  await it.server.close(50)
  await sending.end()
})

test("while the storage is away nothing is accepted", async () => {
  let not_ready: SmtpReplyError | undefined
  await using it = await openTestMailServer({ isReady: () => not_ready })
  using client = await loggedIn(it)
  not_ready = new SmtpReplyError(452, "4.3.1", "service_unavailable: full (req_1)")
  expect(await client.say(envelope[0] ?? "")).toBe("452 4.3.1 service_unavailable: full (req_1)")
  not_ready = undefined
  await client.talk(...envelope)
  not_ready = new SmtpReplyError(452, "4.3.1", "service_unavailable: full (req_1)")
  expect(await client.say("DATA")).toStartWith("452 4.3.1 ")
  not_ready = new SmtpReplyError(421, "4.3.2", "service_unavailable: away (req_1)")
  using other = SmtpDialogue.connect(it.server.port)
  expect((await other.reply()).text).toBe("421 4.3.2 service_unavailable: away (req_1)")
  expect(await client.say("DATA")).toStartWith("421 4.3.2 ")
  await client.end()
})

test("a mail that fails because the disk is full is told so, and the session goes on", async () => {
  let is_full = false
  await using it = await openTestMailServer({
    isReady: () => (is_full ? new SmtpReplyError(452, "4.3.1", "full") : undefined),
    onMail: async () => {
      is_full = true
      throw new Error("SQLITE_FULL")
    },
  })
  using client = await loggedIn(it)
  expect(await client.talk(...envelope, "DATA", MAIL)).toBe("452 4.3.1 full")
  is_full = false
  expect(await client.say("NOOP")).toStartWith("250 ")
})

test("without a certificate there is no TLS, and thus no login", async () => {
  await using it = await openTestMailServer({ pair: undefined })
  using client = SmtpDialogue.connect(it.server.port)
  await client.reply()
  client.write("EHLO me.test\r\n")
  expect((await client.reply()).lines).not.toContain("STARTTLS")
  expect(await client.say("STARTTLS")).toStartWith("454 4.7.0 service_unavailable: ")
  expect(await client.say("AUTH PLAIN AAAA")).toStartWith("538 5.7.11 unauthorized: ")
})

test("a new certificate serves the next handshakes, and open sessions go on", async () => {
  await using it = await openTestMailServer({ implicit: { host: "127.0.0.1", port: 0 } })
  const nameOf = async (implicit: boolean) => {
    const port = implicit ? (it.server.implicit_port ?? 0) : it.server.port
    using client = await SmtpDialogue.open(port, { implicit })
    if (!implicit) await client.talk("EHLO me.test").then(() => client.starttls())
    return (client.socket as ReturnType<typeof connectTls>).getPeerCertificate().subject.CN
  }
  expect([await nameOf(false), await nameOf(true)]).toEqual(["hooks.test", "hooks.test"])
  using open = await loggedIn(it)
  it.replaceCertificate(selfSigned("new.test"))
  expect([await nameOf(false), await nameOf(true)]).toEqual(["new.test", "new.test"])
  expect(await open.talk(...envelope, "DATA", MAIL)).toStartWith("250 2.0.0 ")
})

test("TLS older than 1.2 is refused, and so is garbage in the handshake", async () => {
  await using it = await openTestMailServer({ implicit: { host: "127.0.0.1", port: 0 } })
  const old = Promise.withResolvers<string>()
  const socket = connectTls({
    port: it.server.implicit_port ?? 0,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    maxVersion: "TLSv1.1",
    minVersion: "TLSv1",
  })
  socket.on("secureConnect", () => old.resolve("connected"))
  socket.on("error", () => old.resolve("refused"))
  socket.on("close", () => old.resolve("refused"))
  expect(await old.promise).toBe("refused")

  using garbage = await SmtpDialogue.open(it.server.port)
  await garbage.talk("EHLO me.test", "STARTTLS")
  garbage.write("this is no handshake\r\n".repeat(20))
  await garbage.end()
  using plain = SmtpDialogue.connect(it.server.implicit_port ?? 0)
  plain.write("EHLO me.test\r\n".repeat(20))
  await plain.end()
  await until(() => it.server.counts().open_connections === 0)
  expect(it.server.counts().failed_handshakes).toBeGreaterThanOrEqual(2)
})

test("a client that leaves in the middle of a message leaves nothing behind", async () => {
  await using it = await openTestMailServer()
  for (let i = 0; i < 5; i += 1) {
    using client = await loggedIn(it)
    await client.talk(...envelope, "DATA")
    client.write("a\r\n".repeat(10_000))
    await until(() => it.server.counts().buffered_bytes > 0)
    client.socket.destroy()
    await until(() => it.server.counts().buffered_bytes === 0)
  }
  await until(() => it.server.counts().open_connections === 0)
  expect(it.mails).toEqual([])
})

test("a session is one line in the log, and says no secret", async () => {
  await using it = await openTestMailServer()
  using client = await loggedIn(it)
  await client.talk(...envelope, "RCPT TO:<nobody@example.test>", "DATA", MAIL, "QUIT")
  await client.end()
  await until(() => lines("smtp session").length === 1)
  const [line] = lines("smtp session")
  expect(line).toMatchObject({
    server: "submission",
    address: "127.0.0.1",
    helo: "me.test",
    authenticated: true,
    mails: 1,
    recipients: 1,
    bytes: 18,
    refusals: 1,
    verdict: "accepted",
  })
  expect(line?.last_refusal).toMatch(/^550 5\.1\.1 .*\(req_[0-9a-f]{32}\)$/)
  expect(JSON.stringify(line)).not.toContain("right")
  expect(it.server.counts()).toMatchObject({
    sessions: 1,
    accepted_mails: 1,
    accepted_recipients: 1,
    refused_recipients: 1,
    received_bytes: 18,
    open_connections: 0,
    ended: { accepted: 1 },
  })
  using idle = await SmtpDialogue.open(it.server.port)
  await idle.talk("MAIL FROM:<a@example.test>", "QUIT")
  await until(() => it.server.counts().open_connections === 0)
  expect(it.server.counts().ended).toEqual({ accepted: 1, refused: 1 })
})

test("a port that is taken is an error, and nothing stays open", async () => {
  await using it = await openTestMailServer()
  const listen = { host: "127.0.0.1", port: it.server.port }
  expect(openTestMailServer({ listen })).rejects.toMatchObject({ code: "EADDRINUSE" })
  expect(openTestMailServer({ implicit: listen })).rejects.toMatchObject({ code: "EADDRINUSE" })
})
