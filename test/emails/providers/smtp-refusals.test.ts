import { describe, expect, test } from "bun:test"
import { smtp } from "../../../src/emails/providers/smtp"
import { mailTo } from "../../contracts/email-provider"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { waitsFor } from "../../harness/waits"

async function sendTo(script: Script, mail = mailTo("ann@example.test"), login = {}) {
  using sink = smtpSink(script)
  const server = { host: "127.0.0.1", port: sink.port, tls: "none" as const }
  const provider = smtp({ ...server, ...login, timeouts: waitsFor(script) })
  const outcome = await provider.send(mail)
  await provider.close()
  return { ...outcome, received: sink.received, lines: sink.lines }
}

describe("a relay that", () => {
  test.each<[what: string, script: Script, status: string]>([
    ["never greets", { greeting: "stall" }, "retry"],
    ["drops after connect", { greeting: "drop" }, "retry"],
    ["closes its half after connect", { greeting: "half-close" }, "retry"],
    ["greets with 421", { greeting: "421 4.3.2 busy" }, "retry"],
    ["greets with 554", { greeting: "554 5.7.1 not you" }, "failed"],
    ["greets in another language", { greeting: "HTTP/1.1 400 Bad Request" }, "retry"],
    ["stalls at EHLO", { EHLO: "stall" }, "retry"],
    ["refuses EHLO", { EHLO: "550 5.7.1 no" }, "failed"],
    ["defers at MAIL", { MAIL: "451 4.7.1 slow down" }, "retry"],
    ["refuses us at MAIL", { MAIL: "550 5.7.1 quota used up" }, "failed"],
    ["finds the size too large at MAIL", { MAIL: "552 5.3.4 too large" }, "bounced"],
    ["drops at MAIL", { MAIL: "drop" }, "retry"],
    ["stalls at RCPT", { RCPT: "stall" }, "retry"],
    ["drops at RCPT", { RCPT: "drop" }, "retry"],
    ["says 421 at RCPT", { RCPT: "421 4.3.2 closing" }, "retry"],
    ["says 451 at RCPT", { RCPT: "451 4.3.0 later" }, "retry"],
    ["says 550 at RCPT", { RCPT: "550 5.1.1 nobody" }, "bounced"],
    ["wants a login at RCPT", { RCPT: "530 5.7.0 authenticate first" }, "failed"],
    ["says 451 at DATA", { DATA: "451 4.3.0 later" }, "retry"],
    ["says 554 at DATA", { DATA: "554 5.6.0 no" }, "bounced"],
    ["says 250 at DATA", { DATA: "250 what?" }, "retry"],
    ["drops after DATA", { DATA: "drop" }, "retry"],
    ["closes its half after DATA", { DATA: "half-close" }, "retry"],
    ["stalls after DATA", { DATA: "stall" }, "retry"],
    ["accepts before it has the message", { DATA: "354 go\r\n250 2.0.0 kept" }, "retry"],
    ["drops after the message", { end: "drop" }, "retry"],
    ["closes its half after the message", { end: "half-close" }, "retry"],
    ["stalls after the message", { end: "stall" }, "retry"],
    ["says 421 after the message", { end: "421 4.3.2 closing" }, "retry"],
    ["says 452 after the message", { end: "452 4.3.1 full" }, "retry"],
    ["says 550 after the message", { end: "550 5.7.1 no" }, "bounced"],
    ["says 552 after the message", { end: "552 5.2.2 full" }, "bounced"],
    ["says half a reply after the message", { end: "250-kept" }, "retry"],
    ["says 354 after the message", { end: "354 more" }, "retry"],
  ])("%s", async (_, script, status) => {
    const outcome = await sendTo(script)
    expect(outcome).toMatchObject({ status, others: [] })
    expect(outcome.reason).toBeTruthy()
    expect(outcome.code).toBe(status === "failed" ? "provider_error" : null)
    expect(outcome.received).toEqual([])
  })

  test("nobody listens on is asked again", async () => {
    const sink = smtpSink()
    sink[Symbol.dispose]()
    const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none" })
    const outcome = await provider.send(mailTo("ann@example.test"))
    expect(outcome).toMatchObject({ status: "retry", reason: expect.stringContaining("connect") })
  })

  test("loses the connection in the middle keeps the refusals that it spoke", async () => {
    const RCPT = (line: string) => (line.includes("no@") ? "550 5.1.1 nobody" : undefined)
    const mail = mailTo("no@example.test", "ann@example.test")
    const outcome = await sendTo({ RCPT, end: "drop" }, mail)
    expect(outcome).toMatchObject({ status: "bounced", bounce_subtype: "NoEmail" })
    expect(outcome.others).toMatchObject([{ address: "ann@example.test", status: "retry" }])
  })

  test("closes at one recipient has said so to all without an answer, and may be asked again", async () => {
    const RCPT = (line: string) => (line.includes("no@") ? "421 4.3.2 closing" : undefined)
    const outcome = await sendTo({ RCPT }, mailTo("ann@example.test", "no@example.test"))
    const closing = { status: "retry", reason: "421 4.3.2 closing", fault: "infrastructure" }
    expect(outcome).toMatchObject({ address: "ann@example.test", ...closing })
    expect(outcome.others).toMatchObject([{ address: "no@example.test", ...closing }])
    expect(outcome.received).toEqual([])
  })

  test("asks for a message when every recipient was refused gets none", async () => {
    const outcome = await sendTo({ RCPT: "550 5.1.1 nobody", DATA: "354 go on" })
    expect(outcome).toMatchObject({ status: "bounced", bounce_subtype: "NoEmail" })
    expect(outcome.received).toEqual([])
  })
})

describe("the message itself", () => {
  test("is not sent where SIZE says it is too large", async () => {
    const outcome = await sendTo({ EHLO: "250-sink.test\r\n250 SIZE 100" })
    expect(outcome).toMatchObject({ status: "bounced", bounce_subtype: "MessageTooLarge" })
    expect(outcome.lines.some((line) => line.startsWith("MAIL"))).toBe(false)
  })

  test("is not sent to an address that the server cannot write", async () => {
    const outcome = await sendTo({}, mailTo("jörg@example.test"))
    expect(outcome).toMatchObject({ status: "bounced", reply: { enhanced_code: "5.6.7" } })
  })

  test("goes to everybody else where only one address cannot be written", async () => {
    const mail = mailTo("jörg@example.test", "ann@example.test")
    for (const EHLO of ["250 sink.test", "250-sink.test\r\n250 PIPELINING"]) {
      const outcome = await sendTo({ EHLO }, mail)
      expect(outcome).toMatchObject({ status: "bounced", reply: { enhanced_code: "5.6.7" } })
      expect(outcome.others).toMatchObject([{ address: "ann@example.test", status: "sent" }])
      expect(outcome.lines.filter((line) => line.startsWith("RCPT"))).toHaveLength(1)
    }
    const whole = await sendTo({}, { ...mail, smtputf8: true })
    expect(whole.others).toMatchObject([{ status: "bounced" }])
  })

  test("is named by its id where the server knows of ENVID", async () => {
    const { lines } = await sendTo({ EHLO: "250-sink.test\r\n250 DSN" })
    const { message_id } = mailTo("ann@example.test")
    expect(lines).toContain(`MAIL FROM:<bell@example.test> ENVID=${message_id}`)
  })

  test("says SMTPUTF8 where it is needed and offered, and gives domains as A-labels", async () => {
    const EHLO = "250-sink.test\r\n250-8BITMIME\r\n250 SMTPUTF8"
    const wide = await sendTo({ EHLO }, mailTo("jörg@münchen.de"))
    expect(wide).toMatchObject({ status: "sent", address: "jörg@münchen.de" })
    expect(wide.lines).toContain("MAIL FROM:<bell@example.test> BODY=8BITMIME SMTPUTF8")
    expect(wide.lines).toContain("RCPT TO:<jörg@xn--mnchen-3ya.de>")

    const narrow = await sendTo({ EHLO }, mailTo("ann@münchen.de"))
    expect(narrow.lines).toContain("MAIL FROM:<bell@example.test>")
  })

  test("gets mail in 8 bits where it takes that, and else the same in 7 bits", async () => {
    const raw = Buffer.from("From: bell@example.test\r\n\r\nGrüße\r\n")
    const signing = { dkim: [], created_at: new Date(0).toISOString() }
    const mail = { ...mailTo("ann@example.test"), raw, signing }
    const wide = await sendTo({ EHLO: "250-sink.test\r\n250 8BITMIME" }, mail)
    expect(wide.lines).toContain("MAIL FROM:<bell@example.test> BODY=8BITMIME")
    expect(wide.received.map(String)).toEqual([raw.toString().trimEnd()])
    const old = await sendTo({ EHLO: "250 sink.test" }, mail)
    expect(old.lines).toContain("MAIL FROM:<bell@example.test>")
    const encoded = "Content-Transfer-Encoding: base64\r\nMIME-Version: 1.0\r\n\r\nR3LDvMOfZQ0K"
    expect(old.received.map(String)).toEqual([`From: bell@example.test\r\n${encoded}`])
    expect(old.transcript.join("\n")).toContain("does not offer 8BITMIME")
  })

  test("of megabytes arrives whole, and a refusal in the middle of it is heard", async () => {
    const body = `${".line\r\n".repeat(150_000)}`
    const mail = { ...mailTo("ann@example.test"), raw: Buffer.from(body) }
    const EHLO = "250 sink.test"
    const whole = await sendTo({ EHLO }, mail)
    expect(whole.status).toBe("sent")
    expect(whole.received[0]?.length).toBe(body.length - 2)
  })
})

describe("a login", () => {
  const login = { username: "ann", password: "päss" }

  test("goes as PLAIN, and is in no transcript", async () => {
    const EHLO = "250-sink.test\r\n250 AUTH LOGIN PLAIN"
    const outcome = await sendTo({ EHLO }, undefined, login)
    const secret = Buffer.from("\0ann\0päss").toString("base64")
    expect(outcome.status).toBe("sent")
    expect(outcome.lines).toContain(`AUTH PLAIN ${secret}`)
    expect(outcome.transcript.join("\n")).not.toContain(secret)
  })

  test.each([
    ["the command", (secret: string) => `500 5.5.2 unrecognized: AUTH PLAIN ${secret} from you`],
    ["the password", () => "535 5.7.8 no such password: päss-wörter-0123456789"],
    ["what was too long", (secret: string) => `535 5.7.8 ${"x".repeat(970)} ${secret}`],
  ])("whose answer repeats %s is told without it", async (_, answer) => {
    const long = { username: "ann", password: `päss-wörter${"-0123456789".repeat(90)}` }
    for (const own of [{ ...login, password: "päss-wörter" }, long]) {
      const secret = Buffer.from(`\0${own.username}\0${own.password}`).toString("base64")
      const EHLO = "250-sink.test\r\n250 AUTH PLAIN"
      const outcome = await sendTo({ EHLO, AUTH: answer(secret) }, undefined, own)
      expect(outcome).toMatchObject({ status: "failed", fault: "authentication" })
      const told = JSON.stringify([outcome.reason, outcome.reply, outcome.transcript])
      expect(told).not.toContain(secret.slice(0, 16))
      expect(told).not.toContain("päss-w")
    }
  })

  test.each([
    ["no reply", "", { status: "retry", fault: "connection" }],
    ["no reply, cut within the secret", "x".repeat(70), { status: "retry", fault: "connection" }],
    [
      "a reply, cut within the secret",
      `535 5.7.8 ${"x".repeat(982)} `,
      { status: "failed", fault: "authentication" },
    ],
  ])("whose answer is %s and repeats the command is told without it", async (_, before, found) => {
    const own = { ...login, password: "päss-wörter" }
    const secret = Buffer.from(`\0${own.username}\0${own.password}`).toString("base64")
    const EHLO = "250-sink.test\r\n250 AUTH PLAIN"
    const outcome = await sendTo({ EHLO, AUTH: `${before}${secret}` }, undefined, own)
    expect(outcome).toMatchObject(found)
    const told = JSON.stringify([outcome.reason, outcome.reply, outcome.transcript])
    expect(told).not.toContain(secret.slice(0, 6))
  })

  test("goes as LOGIN where there is nothing else", async () => {
    const [user, secret] = ["ann", "päss"].map((text) => Buffer.from(text).toString("base64"))
    const script = {
      EHLO: "250-sink.test\r\n250 AUTH LOGIN",
      AUTH: "334 VXNlcm5hbWU6",
      [user?.toUpperCase() ?? ""]: "334 UGFzc3dvcmQ6",
      [secret?.toUpperCase() ?? ""]: "235 2.7.0 welcome",
    }
    const outcome = await sendTo(script, undefined, login)
    expect(outcome.status).toBe("sent")
    expect(outcome.transcript.join("\n")).not.toContain(secret)
  })

  test.each([
    ["EHLO without AUTH", { EHLO: "250-x\r\n250 PIPELINING" }, /offers no login \(AUTH\)$/],
    ["HELO only", { EHLO: "502 5.5.1 what?" }, /offers no login \(AUTH\)$/],
    [
      "AUTH after STARTTLS",
      { EHLO: "250-x\r\n250 STARTTLS" },
      / without TLS\. Set tls to starttls$/,
    ],
    [
      "other mechanisms",
      { EHLO: "250-x\r\n250 AUTH XOAUTH2" },
      /accepts only XOAUTH2 as login \(AUTH\), not PLAIN/,
    ],
  ])("goes to no server that did not ask for it: %s", async (_, script, reason) => {
    const outcome = await sendTo(script, undefined, login)
    expect(outcome).toMatchObject({ status: "failed", fault: "authentication" })
    expect(outcome.reason).toMatch(reason)
    expect(outcome.reply).toMatchObject({ smtp_code: null, response: null })
    expect(outcome.lines.some((line) => line.startsWith("AUTH"))).toBe(false)
  })

  test.each([
    ["535 5.7.8 wrong password", "failed"],
    ["454 4.7.0 try later", "retry"],
  ])("that is answered %p is %s", async (AUTH, status) => {
    expect(await sendTo({ AUTH }, undefined, login)).toMatchObject({
      status,
      reason: `AUTH: ${AUTH}`,
    })
  })
})
