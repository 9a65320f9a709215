import { describe, expect, test } from "bun:test"
import type { AddressInfo } from "node:net"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { directProvider } from "../../../src/emails/providers/direct"
import { mailTo } from "../../contracts/email-provider"
import { providerContract } from "../../contracts/provider"
import { nameServer, type Say } from "../../core/name-server"
import { selfSigned } from "../../fakes/smtp-certificate"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { movableClock } from "../../harness/clock"
import { testContext } from "../../harness/providers"
import { IMPATIENT, waitsFor } from "../../harness/waits"
import { a, directOn, mx, type Names, policyMemory } from "./direct-fixture"

const clockwork = movableClock()

const ANN = "ann@b.test"
const NAMES: Names = { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": a("127.0.0.1") }

async function sendTo(script: Script) {
  using sink = smtpSink(script)
  await using it = await directOn(NAMES, { port: sink.port, timeouts: waitsFor(script) })
  const outcome = await it.send(ANN)
  return { ...outcome, received: sink.received, lines: sink.lines, opened: sink.connections() }
}

describe("a mail server that", () => {
  test.each<[what: string, script: Script, status: string, subtype: string | null]>([
    ["never greets", { greeting: "stall" }, "retry", null],
    ["drops after connect", { greeting: "drop" }, "retry", null],
    ["greets with 421", { greeting: "421 4.3.2 busy" }, "retry", null],
    ["greets with 450", { greeting: "450 4.7.1 greylisted" }, "retry", null],
    [
      "greets with 554",
      { greeting: "554 5.7.1 no mail from you" },
      "bounced",
      "InfrastructureRejected",
    ],
    ["greets with 521", { greeting: "521 5.7.1 blocked" }, "bounced", "InfrastructureRejected"],
    ["speaks HTTP", { greeting: "HTTP/1.1 400 Bad Request" }, "retry", null],
    ["stalls at EHLO", { EHLO: "stall" }, "retry", null],
    ["refuses EHLO", { EHLO: "550 5.7.1 no PTR" }, "bounced", "InfrastructureRejected"],
    ["defers at MAIL", { MAIL: "451 4.7.1 slow down" }, "retry", null],
    ["says 421 at MAIL", { MAIL: "421 4.7.0 closing" }, "retry", null],
    [
      "refuses us at MAIL",
      { MAIL: "550 5.7.1 your IP is listed" },
      "bounced",
      "InfrastructureRejected",
    ],
    ["refuses the sender at MAIL", { MAIL: "550 5.1.8 bad sender" }, "bounced", "PolicyRejected"],
    ["finds it too large at MAIL", { MAIL: "552 5.3.4 too large" }, "bounced", "MessageTooLarge"],
    ["drops at MAIL", { MAIL: "drop" }, "retry", null],
    ["wants TLS at MAIL", { MAIL: "530 5.7.0 STARTTLS first" }, "bounced", "PolicyRejected"],
    ["says 450 at RCPT", { RCPT: "450 4.2.1 busy" }, "retry", null],
    ["says 550 5.1.1 at RCPT", { RCPT: "550 5.1.1 nobody" }, "bounced", "NoEmail"],
    ["says 550 5.7.1 at RCPT", { RCPT: "550 5.7.1 policy" }, "bounced", "PolicyRejected"],
    ["says 552 at RCPT", { RCPT: "552 5.2.2 full" }, "bounced", "MailboxFull"],
    ["drops at RCPT", { RCPT: "drop" }, "retry", null],
    ["says 421 at RCPT", { RCPT: "421 4.3.2 closing" }, "retry", null],
    ["says 451 at DATA", { DATA: "451 4.3.0 later" }, "retry", null],
    ["says 554 at DATA", { DATA: "554 5.6.0 no" }, "bounced", "ContentRejected"],
    ["drops after DATA", { DATA: "drop" }, "retry", null],
    ["accepts before it has it", { DATA: "354 go\r\n250 2.0.0 kept" }, "retry", null],
    ["drops after the message", { end: "drop" }, "retry", null],
    ["closes its half after the message", { end: "half-close" }, "retry", null],
    ["stalls after the message", { end: "stall" }, "retry", null],
    ["says half a reply after the message", { end: "250-kept" }, "retry", null],
    ["says 421 after the message", { end: "421 4.3.2 closing" }, "retry", null],
    ["says 552 after the message", { end: "552 5.3.4 too large" }, "bounced", "MessageTooLarge"],
    [
      "says 550 5.7.26 after it",
      { end: "550 5.7.26 no DKIM" },
      "bounced",
      "InfrastructureRejected",
    ],
  ])("%s", async (_, script, status, bounce_subtype) => {
    const outcome = await sendTo(script)
    expect(outcome).toMatchObject({ status, bounce_subtype, code: null, others: [] })
    expect(outcome.reason).toBeTruthy()
    expect(outcome.reply.mx).toBe("mx.b.test")
    expect(outcome.received).toEqual([])
    const wire = outcome.lines.filter((line) => line === "DATA")
    expect(wire.length).toBeLessThanOrEqual(1) // nothing was handed over a second time
  })

  test("knows no EHLO is greeted with HELO", async () => {
    const outcome = await sendTo({ EHLO: "502 5.5.1 not implemented" })
    expect(outcome.status).toBe("delivered")
    expect(outcome.lines.slice(0, 2)).toEqual(["EHLO mail.belfry.test", "HELO mail.belfry.test"])
  })

  test("drips its greeting byte by byte is given up like one that is silent", async () => {
    const drips = new Set<Timer>()
    using server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => void drips.add(setInterval(() => socket.write("2"), 20)),
        close: () => drips.forEach((drip) => void clearInterval(drip)),
        data() {},
      },
    })
    await using it = await directOn(NAMES, { port: server.port, timeouts: IMPATIENT })
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({ status: "retry", reply: { smtp_code: null } })
    expect(outcome.reason).toContain("timed out after 0.1 s for the greeting")
  })

  test("loses the connection between RCPT and the end keeps the refusals that it spoke", async () => {
    using sink = smtpSink({
      RCPT: (line) => (line.includes("no@") ? "550 5.1.1 nobody" : undefined),
      end: "drop",
    })
    await using it = await directOn(NAMES, { port: sink.port })
    const outcome = await it.send("no@b.test", ANN)
    expect(outcome).toMatchObject({ status: "bounced", bounce_subtype: "NoEmail" })
    expect(outcome.others).toMatchObject([{ address: ANN, status: "retry" }])
  })

  test("has hung up between two messages gets the second over a new connection", async () => {
    using sink = smtpSink()
    await using it = await directOn(NAMES, { port: sink.port })
    await it.send(ANN)
    sink.hangUp()
    expect((await it.send(ANN)).status).toBe("delivered")
    expect(sink.received).toHaveLength(2)
    expect(sink.connections()).toBe(2)
  })
})

test("a reply lost after the message asks for another try, and the other try is the same message", async () => {
  let lost = 0
  using sink = smtpSink({ end: () => (lost++ === 0 ? "drop" : undefined) })
  await using it = await directOn(NAMES, { port: sink.port })
  const first = await it.send(ANN)
  expect(first).toMatchObject({ status: "retry", reply: { smtp_code: null } })
  expect(first.fault).toBeUndefined() // it may have been taken: nobody else may be asked instead
  clockwork.advance({ seconds: 60 })
  expect((await it.send(ANN)).status).toBe("delivered")
  expect(sink.received).toHaveLength(1)
  expect(sink.received[0]).toContain("Message-ID: <019a0000-0000-7000-8000-000000000001@")
})

test.each<[what: string, script: Script, fault: string | undefined]>([
  ["hangs up after connect", { greeting: "drop" }, "connection"],
  ["never greets", { greeting: "stall" }, "connection"],
  ["speaks HTTP", { greeting: "HTTP/1.1 400 Bad Request" }, "connection"],
  ["hangs up at MAIL", { MAIL: "drop" }, "connection"],
  ["hangs up at RCPT", { RCPT: "drop" }, "connection"],
  ["hangs up at DATA", { DATA: "drop" }, "connection"],
  ["greets with 421", { greeting: "421 4.3.2 busy" }, "infrastructure"],
  ["greets with 450", { greeting: "450 4.7.1 not now" }, "infrastructure"],
  ["says 421 at RCPT", { RCPT: "421 4.3.2 closing" }, "infrastructure"],
  ["says 421 at DATA", { DATA: "421 4.3.2 closing" }, "infrastructure"],
  ["has us on a list", { RCPT: "550 5.7.1 your IP is listed" }, "infrastructure"],
  ["defers at MAIL", { MAIL: "451 4.7.1 slow down" }, undefined],
  ["refuses the sender at MAIL", { MAIL: "550 5.1.8 bad sender" }, undefined],
  ["defers the recipient", { RCPT: "450 4.2.0 greylisted" }, undefined],
  ["does not know the recipient", { RCPT: "550 5.1.1 nobody" }, undefined],
  ["defers the message", { end: "451 4.3.0 later" }, undefined],
  ["hangs up after the message", { end: "drop" }, undefined],
  ["closes its half after the message", { end: "half-close" }, undefined],
  ["goes silent after the message", { end: "stall" }, undefined],
  ["says half a reply after the message", { end: "250-kept" }, undefined],
  ["accepts before it has it", { DATA: "354 go\r\n250 2.0.0 kept" }, undefined],
])("another way may be better where a server %s: %p", async (_, script, fault) => {
  expect((await sendTo(script)).fault).toBe(fault as "connection")
})

/** A foreign SMTP server with TLS. */
async function mailServer(options: SMTPServerOptions = {}) {
  const secure: boolean[] = []
  const server = new SMTPServer({
    ...selfSigned("elsewhere.test"),
    disableReverseLookup: true,
    authOptional: true,
    onData(stream, session, done) {
      stream.resume()
      stream.on("end", () => {
        secure.push(session.secure)
        done()
      })
    },
    ...options,
  })
  server.on("error", () => {})
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const port = (server.server.address() as AddressInfo).port
  return { port, secure, [Symbol.dispose]: () => server.close(() => {}) }
}

describe("opportunistic TLS", () => {
  test("is taken where it is offered, whatever the certificate", async () => {
    using server = await mailServer()
    await using it = await directOn(NAMES, { port: server.port })
    expect(await it.send(ANN)).toMatchObject({ status: "delivered", reply: { tls: "TLSv1.3" } })
    expect(server.secure).toEqual([true])
  })

  test("is done without where it is not offered, or not now", async () => {
    for (const script of [{}, { EHLO: "250-x\r\n250 STARTTLS", STARTTLS: "454 4.7.0 not now" }]) {
      using sink = smtpSink(script)
      await using it = await directOn(NAMES, { port: sink.port })
      expect(await it.send(ANN)).toMatchObject({ status: "delivered", reply: { tls: null } })
      expect(sink.connections()).toBe(1)
    }
  })

  test("is done without where the handshake fails, and that is remembered", async () => {
    using sink = smtpSink({ EHLO: "250-x\r\n250 STARTTLS", STARTTLS: "220 go" })
    await using it = await directOn(NAMES, { port: sink.port })
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({ status: "delivered", reply: { tls: null } })
    expect(outcome.transcript.join("\n")).toContain("TLS did not work")
    expect((await it.send(ANN)).status).toBe("delivered")
    expect(sink.lines.filter((line) => line === "STARTTLS")).toHaveLength(1)
  })

  test("with words put in before it is another try, not mail in the open", async () => {
    const STARTTLS = "220 go\r\n250 injected"
    using sink = smtpSink({ EHLO: "250-x\r\n250 STARTTLS", STARTTLS })
    await using it = await directOn(NAMES, { port: sink.port })
    expect(await it.send(ANN)).toMatchObject({ status: "retry", reply: { tls: null } })
  })

  test("never is of a version before 1.2", async () => {
    using server = await mailServer({ minVersion: "TLSv1", maxVersion: "TLSv1.1" })
    await using it = await directOn(NAMES, { port: server.port })
    expect(await it.send(ANN)).toMatchObject({ status: "delivered", reply: { tls: null } })
    expect(server.secure).toEqual([false])
  })
})

providerContract(directProvider, async () => {
  const byRecipient = (line: string) => {
    if (line.includes("<no@")) return "550 5.1.1 nobody here"
    return line.includes("<later@") ? "450 4.2.0 not now" : undefined
  }
  const sink = smtpSink({ RCPT: byRecipient })
  const names: Record<string, Say> = {
    "MX b.test": mx([10, "mx.b.test"]),
    "A mx.b.test": a("127.0.0.1"),
  }
  const server = await nameServer((name, kind) => names[`${kind} ${name}`] ?? "NXDOMAIN")
  return {
    credentials: {},
    context: {
      ...testContext({
        settings: {
          "dns.servers": [server.address],
          "delivery.mx_port": sink.port,
          "delivery.allow_private": ["127.0.0.0/8"],
          "delivery.ehlo_name": "mail.belfry.test",
        },
      }),
      direct: { policies: policyMemory() },
    },
    messages: {
      accepted: mailTo(ANN),
      deferred: mailTo("later@b.test"),
      refused: mailTo("no@b.test"),
    },
    success: "delivered",
    leave: () => sink[Symbol.dispose](),
    async [Symbol.asyncDispose]() {
      sink[Symbol.dispose]()
      server.close()
    },
  }
})
