import { describe, expect, test } from "bun:test"
import { failover } from "../emails/failover-setup"
import { a, directOn, mx, type Names } from "../emails/providers/direct-fixture"
import { type Script, smtpSink } from "../fakes/smtp-sink"
import { quietLog } from "../harness/quiet"
import { waitsFor } from "../harness/waits"

quietLog()

const ANN = "ann@b.test"
const NAMES: Names = {
  "MX b.test": mx([10, "mx.b.test"]),
  "A mx.b.test": a("127.0.0.1"),
  "A c.test": a("127.0.0.2"),
}

/** A project that delivers by MX first, and by a relay behind it. */
async function project(port: number, more: Names = {}, script: Script = {}) {
  const mta = await directOn({ ...NAMES, ...more }, { port, timeouts: waitsFor(script) })
  const relay = smtpSink()
  const it = await failover({ openDirect: () => mta.provider })
  await it.add("direct", {}, { priority: 1 })
  const server = { host: "127.0.0.1", port: relay.port, tls: "none" }
  await it.add("smtp", server, { priority: 2, name: "backup" })
  return {
    send: it.send,
    relay,
    async [Symbol.asyncDispose]() {
      await it[Symbol.asyncDispose]()
      await mta[Symbol.asyncDispose]()
      relay[Symbol.dispose]()
    },
  }
}

describe("a relay behind delivery by MX", () => {
  test.each<[what: string, script: Script]>([
    ["hangs up at connect", { greeting: "drop" }],
    ["never greets", { greeting: "stall" }],
    ["greets with 421", { greeting: "421 4.3.2 busy" }],
    ["greets with 554", { greeting: "554 5.7.1 not you" }],
    ["hangs up at RCPT", { RCPT: "drop" }],
    ["says 421 at DATA", { DATA: "421 4.3.2 closing" }],
    ["has us on a list", { RCPT: "550 5.7.1 your IP is listed" }],
  ])("is asked in the same attempt where the recipient's server %s", async (_, script) => {
    using host = smtpSink(script)
    await using it = await project(host.port, {}, script)
    const outcome = await it.send(ANN)
    expect(outcome).toMatchObject({ status: "sent", provider: "smtp" })
    expect(outcome.transcript.join("\n")).toContain("* trying the next provider: smtp (backup)")
    expect(it.relay.received).toHaveLength(1)
  })

  test.each<[what: string, names: Names]>([
    ["nobody listens there", { "A mx.b.test": a("127.0.0.9") }],
    ["its name cannot be asked for", { "MX b.test": "SERVFAIL" }],
  ])("is asked where %s", async (_, names) => {
    using host = smtpSink()
    await using it = await project(host.port, names)
    expect(await it.send(ANN)).toMatchObject({ status: "sent", provider: "smtp" })
    expect(host.connections()).toBe(0)
  })

  test.each<[what: string, script: Script, status: string]>([
    ["defers the recipient", { RCPT: "450 4.2.0 greylisted" }, "retry"],
    ["defers at MAIL", { MAIL: "451 4.7.1 slow down" }, "retry"],
    ["does not know the recipient", { RCPT: "550 5.1.1 nobody" }, "bounced"],
    ["dislikes the content", { end: "554 5.6.0 no" }, "bounced"],
    ["loses its reply to the message", { end: "drop" }, "retry"],
    ["goes silent after the message", { end: "stall" }, "retry"],
    ["says half a reply to the message", { end: "250-kept" }, "retry"],
  ])("is not asked where it %s", async (_, script, status) => {
    using host = smtpSink(script)
    await using it = await project(host.port, {}, script)
    expect(await it.send(ANN)).toMatchObject({ status, provider: "direct" })
    expect(it.relay.connections()).toBe(0)
  })

  test("gets the recipients of the domain that is away, and nobody else", async () => {
    using host = smtpSink()
    await using it = await project(host.port)
    const outcome = await it.send(ANN, "kim@c.test")
    expect(outcome).toMatchObject({ address: ANN, status: "delivered" })
    expect(outcome.others).toMatchObject([{ address: "kim@c.test", status: "sent" }])
    expect(it.relay.lines.filter((line) => line.startsWith("RCPT"))).toEqual([
      "RCPT TO:<kim@c.test>",
    ])
  })

  test("is asked first when five messages in a row reached nobody, and not for some of many", async () => {
    const away = Object.fromEntries(
      Array.from({ length: 10 }, (_, at) => [`A d${at}.test`, a("127.0.0.2")]),
    )
    using host = smtpSink()
    await using it = await project(host.port, away)
    for (let at = 0; at < 5; at++) await it.send(`kim@d${at}.test`, ANN)
    expect(await it.send(ANN)).toMatchObject({ status: "delivered", provider: "direct" })
    for (let at = 5; at < 10; at++) await it.send(`kim@d${at}.test`)
    expect(await it.send(ANN)).toMatchObject({ status: "sent", provider: "smtp" })
  })
})
