import { afterAll, expect, spyOn, test } from "bun:test"
import { log } from "../../src/core/log"
import { SmtpReplyError } from "../../src/smtp/mail-session"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { loggedIn, openTestMailServer, until } from "./open-mail-server"

const LOGIN = plainLogin("svc", "right")
const REQUEST_ID = /\(req_[0-9a-f]{32}\)$/

const envelope = ["MAIL FROM:<a@b.test>", "RCPT TO:<ann@example.test>"]

const written = spyOn(log, "info").mockImplementation(() => {})
afterAll(() => written.mockRestore())

test("a client sends a mail through STARTTLS and a login", async () => {
  await using it = await openTestMailServer()
  using client = SmtpDialogue.connect(it.server.port)
  expect((await client.reply()).text).toBe("220 mail.test ESMTP")
  client.write("EHLO me.test\r\n")
  const offered = ["mail.test", "PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"]
  expect((await client.reply()).lines).toEqual([...offered, "STARTTLS", "SIZE 1000000"])
  await client.starttls()
  client.write("EHLO me.test\r\n")
  expect((await client.reply()).lines).toEqual([...offered, "AUTH PLAIN LOGIN", "SIZE 1000000"])
  expect(await client.say(LOGIN)).toStartWith("235 2.7.0 ")
  expect(await client.say("MAIL FROM:<Ann@B.test> BODY=8BITMIME SIZE=40")).toStartWith("250 2.1.0 ")
  expect(await client.say("RCPT TO:<Bob@xn--mnchen-3ya.test>")).toStartWith("250 2.1.5 ")
  expect(await client.say("DATA")).toStartWith("354 ")
  expect(await client.say("Subject: x\r\n\r\n..dot\r\n.")).toBe("250 2.0.0 Ok: queued as 1")
  expect(await client.say("QUIT")).toStartWith("221 2.0.0 ")
  await client.end()

  const [mail] = it.mails
  expect(mail).toMatchObject({
    from: "Ann@B.test",
    to: ["Bob@xn--mnchen-3ya.test"],
    smtputf8: false,
    eight_bit: true,
  })
  expect(Buffer.from(mail?.raw ?? []).toString()).toBe("Subject: x\r\n\r\n.dot\r\n")
  const tls = { version: expect.stringMatching(/^TLSv1\.[23]$/), cipher: expect.any(String) }
  expect(it.sessions[0]).toMatchObject({
    address: "127.0.0.1",
    helo: "me.test",
    tls,
    identity: "svc",
  })
})

test("the second port begins with TLS", async () => {
  await using it = await openTestMailServer({ implicit: { host: "127.0.0.1", port: 0 } })
  using client = await SmtpDialogue.open(it.server.implicit_port ?? 0, { implicit: true })
  expect(await client.talk("EHLO me.test", LOGIN, ...envelope, "DATA")).toStartWith("354")
  expect(await client.say("Subject: x\r\n\r\nhi\r\n.")).toBe("250 2.0.0 Ok: queued as 1")
  expect(it.sessions[0]?.tls?.version).toMatch(/^TLSv1\.[23]$/)
  expect(await client.say("STARTTLS")).toStartWith("503 5.5.1 ")
})

test("nothing is accepted before TLS and a login, and no login before TLS", async () => {
  await using it = await openTestMailServer()
  using client = await SmtpDialogue.open(it.server.port)
  await client.say("EHLO me.test")
  for (const line of [...envelope, "DATA"]) {
    const reply = await client.say(line)
    expect(reply).toStartWith("530 5.7.0 unauthorized: ")
    expect(reply).toMatch(REQUEST_ID)
  }
  for (const line of [LOGIN, "AUTH LOGIN", "AUTH PLAIN", "AUTH XOAUTH2 abc"]) {
    expect(await client.say(line)).toStartWith("538 5.7.11 unauthorized: ")
  }
  await client.starttls()
  expect(await client.talk("EHLO me.test", envelope[0]!)).toStartWith("530 5.7.0 unauthorized: ")
  expect(await client.say(plainLogin("svc", "wrong"))).toStartWith("535 5.7.8 unauthorized: ")
  expect(await client.say("AUTH CRAM-MD5")).toStartWith("504 ")
  expect(await client.say("AUTH LOGIN")).toBe("334 VXNlcm5hbWU6")
  expect(await client.say(Buffer.from("svc").toString("base64"))).toBe("334 UGFzc3dvcmQ6")
  expect(await client.say(Buffer.from("right").toString("base64"))).toStartWith("235 2.7.0 ")
  expect(it.server.counts()).toMatchObject({ failed_logins: 1 })
})

test("what a client pipelines behind STARTTLS is dropped, and what it said before is forgotten", async () => {
  await using it = await openTestMailServer({ kind: "inbound" })
  using client = await SmtpDialogue.open(it.server.port)
  await client.talk("EHLO before.test", ...envelope)
  client.write("STARTTLS\r\nMAIL FROM:<evil@b.test>\r\nRCPT TO:<evil@b.test>\r\nDATA\r\n")
  expect((await client.reply()).text).toStartWith("220 ")
  await client.secure()
  expect(await client.say("RCPT TO:<ann@example.test>")).toStartWith("503 ")
  expect(await client.say("MAIL FROM:<a@b.test>")).toStartWith("503 ")
  expect(await client.say("EHLO after.test")).toStartWith("250 ")
  expect(await client.say("DATA")).toStartWith("503 ")
  await client.talk(...envelope, "DATA", "Subject: x\r\n\r\nhi\r\n.")
  expect(it.sessions[0]?.helo).toBe("after.test")
  expect(it.mails).toHaveLength(1)
})

const END_VARIANTS = [
  "\n.\n",
  "\n.\r\n",
  "\r\n.\n",
  "\r.\r",
  "\r.\r\n",
  "\r\n.\r",
  "\r\r.\r\r",
  "\n\n.\r\n",
  "\n\r.\r\n",
  "\r\r\n.\r\n",
]

for (const tls of [false, true]) {
  test(`no other end of a message is one, ${tls ? "with" : "without"} TLS`, async () => {
    await using it = await openTestMailServer({ kind: "inbound", limits: { per_address: 100 } })
    await using strict = await openTestMailServer({ limits: { per_address: 100 } })
    const smuggled = "MAIL FROM:<evil@b.test>\r\nRCPT TO:<evil@b.test>\r\nDATA\r\nx\r\n.\r\n"
    for (const end of END_VARIANTS) {
      using client = await SmtpDialogue.open(it.server.port)
      await client.say("EHLO me.test")
      if (tls) {
        await client.starttls()
        await client.say("EHLO me.test")
      }
      await client.talk(...envelope, "DATA")
      client.write(`Subject: x\r\n\r\nhi${end}${smuggled}`)
      expect([end, (await client.reply()).text]).toEqual([end, expect.stringMatching(/^250 /)])
      expect(await client.say("NOOP")).toStartWith("250 ")
      const raw = Buffer.from(it.mails.at(-1)?.raw ?? []).toString()
      expect(raw).toEndWith("MAIL FROM:<evil@b.test>\r\nRCPT TO:<evil@b.test>\r\nDATA\r\nx\r\n")
      expect(raw.replaceAll("\r\n", "")).not.toMatch(/[\r\n\0]/)

      using program = await loggedIn(strict)
      await program.talk(...envelope, "DATA")
      program.write(`Subject: x\r\n\r\nhi${end}${smuggled}`)
      const reply = (await program.reply()).text
      expect([end, reply]).toEqual([end, expect.stringMatching(/^550 5\.5\.2 validation_error: /)])
      await program.end()
    }
    expect(it.mails).toHaveLength(END_VARIANTS.length)
    expect(strict.mails).toEqual([])
  })
}

test("a bare LF, a NUL or an endless line ends a session in commands as well", async () => {
  await using it = await openTestMailServer()
  for (const bytes of ["NOOP\n", "NO\0OP\r\n", "NOOP\rNOOP\r\n", "A".repeat(3000)]) {
    using client = await SmtpDialogue.open(it.server.port)
    client.write(bytes)
    expect((await client.reply()).text).toStartWith("550 5.5.2 validation_error: ")
    await client.end()
  }
})

test("a fault does not overtake the answer to what came before it", async () => {
  const gate = Promise.withResolvers<string>()
  const arrived = Promise.withResolvers<void>()
  await using it = await openTestMailServer({
    onMail: () => {
      arrived.resolve()
      return gate.promise
    },
  })
  using client = await loggedIn(it)
  await client.talk(...envelope, "DATA")
  client.write("Subject: x\r\n\r\nhi\r\n.\r\n")
  await arrived.promise
  client.write("NOOP\n")
  await Bun.sleep(50)
  gate.resolve("2.0.0 Ok: queued as 1")
  expect((await client.reply()).text).toStartWith("250 2.0.0 ")
  expect((await client.reply()).text).toStartWith("550 5.5.2 ")
})

test("a message over the limit is refused, and the session goes on", async () => {
  await using it = await openTestMailServer({ limits: { size: 1000 } })
  using client = await loggedIn(it)
  expect(await client.say("MAIL FROM:<a@b.test> SIZE=1001")).toStartWith(
    "552 5.3.4 payload_too_large: ",
  )
  await client.talk(...envelope, "DATA")
  expect(await client.say(`${"a".repeat(998)}\r\n.`)).toStartWith("250 2.0.0 ")
  await client.talk(...envelope, "DATA")
  expect(await client.say(`${"a".repeat(999)}\r\n.`)).toStartWith("552 5.3.4 payload_too_large: ")
  expect(await client.say("NOOP")).toStartWith("250 ")
  await client.talk(...envelope, "DATA")
  client.write("aaaaaaaaaaaaaaaa\r\n".repeat(10_000))
  expect((await client.reply()).text).toStartWith("552 5.3.4 ")
  await client.end()
  expect(it.mails).toHaveLength(1)
})

test("mails that arrive together share the memory", async () => {
  await using it = await openTestMailServer({ memory: 40_000 })
  using first = await loggedIn(it)
  using second = await loggedIn(it)
  await first.talk(...envelope, "DATA")
  first.write("a\r\n".repeat(9000))
  await until(() => it.server.counts().buffered_bytes >= 26_998)
  expect(await second.say("MAIL FROM:<a@b.test> SIZE=30000")).toStartWith(
    "452 4.3.1 service_unavailable: ",
  )
  await second.talk(...envelope, "DATA")
  expect(await second.say(`${"a\r\n".repeat(9000)}.`)).toStartWith(
    "452 4.3.1 service_unavailable: ",
  )
  expect(await first.say(".")).toStartWith("250 ")
  await second.talk(...envelope, "DATA")
  expect(await second.say(`${"a\r\n".repeat(9000)}.`)).toStartWith("250 ")
  expect(it.server.counts().buffered_bytes).toBe(0)
})

test("a stranger fills a part of the memory, and the mail of others goes on", async () => {
  await using it = await openTestMailServer({
    kind: "inbound",
    memory: 400_000,
    limits: { size: 100_000 },
  })
  const inData = async (local: string) => {
    const client = await SmtpDialogue.open(it.server.port, { local })
    await client.say("EHLO me.test")
    await client.talk(...envelope, "DATA")
    return client
  }
  using holding = await inData("127.0.0.1")
  holding.write("a\r\n".repeat(30_000))
  await until(() => it.server.counts().buffered_bytes >= 89_998)
  for (let at = 0; at < 5; at += 1) {
    using more = await inData("127.0.0.1")
    expect(await more.say(`${"a\r\n".repeat(9000)}.`)).toStartWith(
      "452 4.3.1 service_unavailable: ",
    )
    expect(await more.say("MAIL FROM:<a@b.test> SIZE=90000")).toStartWith("452 4.3.1 ")
  }
  using other = await inData("127.0.0.2")
  expect(await other.say(`${"a\r\n".repeat(30_000)}.`)).toStartWith("250 ")
  expect(await holding.say(".")).toStartWith("250 ")
  expect(it.server.counts().buffered_bytes).toBe(0)
})

test("a mail that passed more than 100 servers is refused", async () => {
  await using it = await openTestMailServer({ kind: "inbound" })
  using client = await SmtpDialogue.open(it.server.port)
  await client.say("EHLO me.test")
  await client.talk(...envelope, "DATA")
  expect(await client.say(`${"Received: from a\r\n".repeat(100)}\r\nx\r\n.`)).toStartWith("250 ")
  await client.talk(...envelope, "DATA")
  const reply = await client.say(`${"Received: from a\r\n".repeat(101)}\r\nx\r\n.`)
  expect(reply).toStartWith("554 5.4.6 validation_error: ")
})

test("recipients have a limit, and a flood of them costs the session nothing but replies", async () => {
  await using it = await openTestMailServer({ limits: { recipients: 3 } })
  using client = await loggedIn(it)
  await client.say("MAIL FROM:<a@b.test>")
  client.write(Array.from({ length: 500 }, (_, i) => `RCPT TO:<u${i}@example.test>\r\n`).join(""))
  const replies = []
  for (let i = 0; i < 500; i += 1) replies.push((await client.reply()).text)
  expect(replies.slice(0, 3).every((reply) => reply.startsWith("250 2.1.5 "))).toBe(true)
  expect(replies.slice(3).every((reply) => reply.startsWith("452 4.5.3 validation_error: "))).toBe(
    true,
  )
  expect(await client.talk("DATA", "Subject: x\r\n\r\nhi\r\n.")).toStartWith("250 ")
  expect(it.mails[0]?.to).toEqual(["u0@example.test", "u1@example.test", "u2@example.test"])
})

test("a client that only tries addresses is sent away", async () => {
  await using it = await openTestMailServer({ kind: "inbound" })
  using client = await SmtpDialogue.open(it.server.port)
  await client.talk("EHLO me.test", "MAIL FROM:<>")
  for (let i = 0; i < 100; i += 1) {
    expect(await client.say(`RCPT TO:<nobody@d${i}.test>`)).toStartWith("550 5.1.1 ")
  }
  client.write("RCPT TO:<nobody@example.test>\r\n")
  await client.end()
  expect(client.said).toContain("421 4.7.0 rate_limit_exceeded: ")
})

test("addresses that would be relayed or read in two ways are refused", async () => {
  await using inbound = await openTestMailServer({ kind: "inbound" })
  await using submission = await openTestMailServer()
  const forms = [
    "<@relay.test:ann@example.test>",
    "<@a.test,@b.test:ann@example.test>",
    "<ann@b.test@example.test>",
    "<ann>",
    "<ann@>",
    "<@example.test>",
    "<>",
    "<j\u00f6rg@example.test>",
  ]
  using outside = await SmtpDialogue.open(inbound.server.port)
  await outside.talk("EHLO me.test", "MAIL FROM:<a@b.test>")
  using inside = await loggedIn(submission)
  await inside.say("MAIL FROM:<a@b.test>")
  for (const form of forms) {
    expect([form, await outside.say(`RCPT TO:${form}`)]).toEqual([
      form,
      expect.stringMatching(/^550 5\.7\.1 forbidden: /),
    ])
    expect([form, await inside.say(`RCPT TO:${form}`)]).toEqual([
      form,
      expect.stringMatching(/^501 5\.1\.3 validation_error: /),
    ])
  }
  expect(await inside.talk("RSET", "MAIL FROM:a@b.test")).toStartWith(
    "501 5.1.3 validation_error: ",
  )
})

test("a path is taken as other servers write it, and a parameter only where it is offered", async () => {
  await using it = await openTestMailServer({ kind: "inbound" })
  using client = await SmtpDialogue.open(it.server.port)
  await client.say("EHLO me.test")
  const senders = {
    "MAIL FROM:<ann@b.test>": "ann@b.test",
    "mail from: <ann@b.test>  SIZE=10": "ann@b.test",
    "MAIL FROM:ann@b.test": "ann@b.test",
    "MAIL FROM:  ann@b.test BODY=8BITMIME SIZE=10 ": "ann@b.test",
    "MAIL FROM:< ann@b.test >": "ann@b.test",
    "MAIL FROM:<a..b@b.test>": "a..b@b.test",
    "MAIL FROM:<.a@b.test>": ".a@b.test",
    "MAIL FROM:<a.@b.test> SIZE=1": "a.@b.test",
    'MAIL FROM:<"a b"@b.test>': '"a b"@b.test',
    'MAIL FROM:<"a\\"b>@c"@b.test>': '"a\\"b>@c"@b.test',
    "MAIL FROM:<@relay.test,@two.test:ann@b.test>": "ann@b.test",
    "MAIL FROM:<ann@[192.0.2.1]>": "ann@[192.0.2.1]",
    [`MAIL FROM:<${"v".repeat(200)}@b.test>`]: `${"v".repeat(200)}@b.test`,
    "MAIL FROM:<>": "",
    "MAIL FROM: <> SIZE=10": "",
  }
  for (const [line, from] of Object.entries(senders)) {
    expect([line, await client.say(line)]).toEqual([line, expect.stringMatching(/^250 /)])
    await client.talk("RCPT TO:ann@example.test", "DATA", "Subject: x\r\n\r\nhi\r\n.")
    expect(it.mails.at(-1)).toMatchObject({ from, to: ["ann@example.test"] })
  }
  for (const line of [
    ...["MAIL FROM:", "MAIL FROM:<a@b.test", "MAIL FROM:a@b.test>", "MAIL FROM:<a@b.test>SIZE=1"],
    ...["MAIL FROM:a b@c.test", 'MAIL FROM:<"a@b.test>', "MAIL FROM:<a@b@c.test>"],
    `MAIL FROM:<${" ".repeat(2_000)}x`,
    ...["MAIL FROM:<postmaster>", "MAIL FROM:<a\u200b@b.test> SMTPUTF8"],
  ])
    expect([line, await client.say(line)]).toEqual([line, expect.stringMatching(/^501 /)])
  for (const parameter of [
    "AUTH=<>",
    "RET=HDRS",
    "ENVID=1",
    "XYZ",
    "CONSTRUCTOR=1",
    "REQUIRETLS",
  ]) {
    const reply = await client.say(`MAIL FROM:<a@b.test> ${parameter}`)
    expect(reply).toStartWith(
      `555 5.5.4 validation_error: ${parameter.split("=")[0]} is no parameter`,
    )
  }
  await client.say("MAIL FROM:<a@b.test>")
  for (const parameter of ["NOTIFY=NEVER", "ORCPT=rfc822;a@b.test", "SIZE=1", "X"]) {
    const reply = await client.say(`RCPT TO:<ann@example.test> ${parameter}`)
    expect(reply).toStartWith("555 5.5.4 validation_error: ")
  }

  await using strict = await openTestMailServer()
  using program = await loggedIn(strict)
  expect(await program.say("MAIL FROM:<a@b.test> AUTH=<>")).toStartWith("250 ")
  expect(await program.say('RCPT TO:<"a b"@example.test>')).toStartWith("250 ")
})

test("addresses outside ASCII need SMTPUTF8", async () => {
  await using it = await openTestMailServer()
  using client = await loggedIn(it)
  expect(await client.say("MAIL FROM:<j\u00f6rg@m\u00fcnchen.test>")).toStartWith("501 5.1.3 ")
  expect(await client.say("MAIL FROM:<j\u00f6rg@m\u00fcnchen.test> SMTPUTF8")).toStartWith("250 ")
  expect(await client.say("RCPT TO:<\u0434\u043e\u043c@m\u00fcnchen.test>")).toStartWith("250 ")
  await client.talk("DATA", "Subject: x\r\n\r\nhi\r\n.")
  expect(it.mails[0]).toMatchObject({
    from: "j\u00f6rg@m\u00fcnchen.test",
    to: ["\u0434\u043e\u043c@m\u00fcnchen.test"],
    smtputf8: true,
  })
})

test("nothing is verified, and jokes of old servers are unknown", async () => {
  await using it = await openTestMailServer({ kind: "inbound" })
  using client = await SmtpDialogue.open(it.server.port)
  await client.say("EHLO me.test")
  for (const line of ["VRFY", "VRFY ann", "EXPN", "EXPN list"]) {
    expect(await client.say(line)).toStartWith("252 ")
  }
  for (const line of [
    "WIZ x",
    "KILL",
    "XCLIENT ADDR=1.2.3.4",
    "XFORWARD ADDR=1.2.3.4",
    "AUTH PLAIN x",
  ]) {
    expect(await client.say(line)).toStartWith("500 5.5.2 ")
  }
})

test("handlers refuse with their own reply, and a bug is 451", async () => {
  let close = false
  await using it = await openTestMailServer({
    onRecipient: async (address) => {
      if (address.startsWith("bug")) throw new Error("secret detail")
      throw new SmtpReplyError(550, "5.7.1", "forbidden: no (req_1)", { close })
    },
  })
  using client = await loggedIn(it)
  await client.say("MAIL FROM:<a@b.test>")
  expect(await client.say("RCPT TO:<ann@b.test>")).toBe("550 5.7.1 forbidden: no (req_1)")
  const reply = await client.say("RCPT TO:<bug@b.test>")
  expect(reply).toStartWith("451 4.3.0 internal_error: ")
  expect(client.said).not.toContain("secret detail")
  close = true
  expect(await client.say("RCPT TO:<ann@b.test>")).toStartWith("550 5.7.1 ")
  await client.end()
})

test("a long answer becomes several lines of at most 512 bytes", async () => {
  const ids = Array.from(
    { length: 100 },
    (_, i) => `0199a1c2-0000-7000-8000-${String(i).padStart(12, "0")}`,
  )
  await using it = await openTestMailServer({
    onMail: async () => `2.0.0 Ok: queued as ${ids.join(" ")}`,
  })
  using client = await loggedIn(it)
  await client.talk(...envelope, "DATA")
  client.write("Subject: x\r\n\r\nhi\r\n.\r\n")
  const { code, lines } = await client.reply()
  expect(code).toBe(250)
  expect(lines.every((line) => line.length < 508 && line.startsWith("2.0.0 "))).toBe(true)
  expect(lines.map((line) => line.slice(6)).join(" ")).toBe(`Ok: queued as ${ids.join(" ")}`)
})
