import { describe, expect, test } from "bun:test"
import { type Script, smtpSink } from "../../fakes/smtp-sink"
import { waitsFor } from "../../harness/waits"
import { a, directOn, mx, type Names } from "../providers/direct-fixture"

const ANN = "ann@b.test"
const BOB = "bob@b.test"

const NAMES: Names = {
  "MX b.test": mx([10, "one.b.test"], [20, "two.b.test"]),
  "A one.b.test": a("127.0.0.2"),
  "A two.b.test": a("127.0.0.3"),
}

/** The best host of the domain follows `script`, the next one `other`. */
async function sendTo(script: Script, other: Script = {}, to = [ANN]) {
  using second = smtpSink(other, { hostname: "127.0.0.3" })
  using first = smtpSink(script, { hostname: "127.0.0.2", port: second.port })
  const timeouts = waitsFor({ ...script, ...other })
  await using it = await directOn(NAMES, { port: second.port, timeouts })
  const outcome = await it.send(...to)
  const rcpt = second.lines.filter((line) => line.startsWith("RCPT"))
  const opened = [first.connections(), second.connections()]
  return { ...outcome, received: second.received, opened, rcpt }
}

const PLAIN = "250 sink.test"

describe("the next host of a domain", () => {
  test.each<[what: string, script: Script]>([
    ["hangs up at MAIL", { MAIL: "drop" }],
    ["says 421 at MAIL", { MAIL: "421 4.3.2 closing" }],
    ["hangs up at RCPT", { RCPT: "drop" }],
    ["hangs up at RCPT, each command for itself", { EHLO: PLAIN, RCPT: "drop" }],
    ["says 421 at RCPT", { RCPT: "421 4.3.2 closing" }],
    ["says 421 at RCPT, each command for itself", { EHLO: PLAIN, RCPT: "421 4.3.2 closing" }],
    ["speaks no SMTP at RCPT", { RCPT: "999 what?" }],
    ["goes silent at RCPT", { EHLO: PLAIN, RCPT: "stall" }],
    ["says 421 at DATA", { DATA: "421 4.3.2 closing" }],
    ["says 421 at DATA, each command for itself", { EHLO: PLAIN, DATA: "421 4.3.2 closing" }],
    ["hangs up at DATA", { EHLO: PLAIN, DATA: "drop" }],
    ["takes DATA for something else", { DATA: "250 what?" }],
  ])("is asked where the best one %s", async (_, script) => {
    const outcome = await sendTo(script)
    expect(outcome).toMatchObject({ status: "delivered", reply: { mx: "two.b.test" }, others: [] })
    expect(outcome.received).toHaveLength(1)
    expect(outcome.opened).toEqual([1, 1])
  })

  test.each<[what: string, script: Script, status: string]>([
    ["hangs up after the message", { end: "drop" }, "retry"],
    ["closes its half after the message", { end: "half-close" }, "retry"],
    ["says half a reply after the message", { end: "250-kept" }, "retry"],
    ["speaks no SMTP after the message", { end: "999 what?" }, "retry"],
    ["goes silent after the message", { end: "stall" }, "retry"],
    ["accepts before it has the message", { DATA: "354 go\r\n250 2.0.0 kept" }, "retry"],
    ["says 421 after the message", { end: "421 4.3.2 closing" }, "retry"],
    ["defers the message", { end: "451 4.3.0 later" }, "retry"],
    ["defers at DATA", { DATA: "451 4.3.0 later" }, "retry"],
    ["defers the recipient", { RCPT: "450 4.2.0 greylisted" }, "retry"],
    ["defers at MAIL", { MAIL: "451 4.7.1 slow down" }, "retry"],
    ["refuses the recipient", { RCPT: "550 5.1.1 nobody" }, "bounced"],
    ["refuses the message", { end: "554 5.6.0 no" }, "bounced"],
  ])("is left alone where the best one %s", async (_, script, status) => {
    const outcome = await sendTo(script)
    expect(outcome).toMatchObject({ status, reply: { mx: "one.b.test" } })
    expect(outcome.opened).toEqual([1, 0])
  })

  test("is asked for those alone who have no word of the first", async () => {
    const RCPT = (line: string) => (line.includes("ann@") ? "550 5.1.1 nobody" : undefined)
    const outcome = await sendTo({ EHLO: PLAIN, RCPT, DATA: "421 4.3.2 bye" }, {}, [ANN, BOB])
    expect(outcome).toMatchObject({ address: ANN, status: "bounced", reply: { mx: "one.b.test" } })
    expect(outcome.others).toMatchObject([{ address: BOB, status: "delivered" }])
    expect(outcome.rcpt).toEqual([`RCPT TO:<${BOB}>`])
  })

  test("that fares no better leaves everybody with a word of his own, to be tried again", async () => {
    const RCPT = (line: string) => (line.includes("ann@") ? "550 5.1.1 nobody" : "421 4.3.2 bye")
    const outcome = await sendTo({ EHLO: PLAIN, RCPT }, { greeting: "554 no" }, [ANN, BOB])
    expect(outcome).toMatchObject({ address: ANN, status: "bounced", bounce_subtype: "NoEmail" })
    expect(outcome.others).toMatchObject([
      { address: BOB, status: "retry", reason: "421 4.3.2 bye", reply: { mx: "one.b.test" } },
    ])
  })

  test("that loses its reply to the message is the end for those it was asked for", async () => {
    const RCPT = (line: string) => (line.includes("ann@") ? "450 4.2.0 grey" : undefined)
    const outcome = await sendTo({ EHLO: PLAIN, RCPT, DATA: "drop" }, { end: "drop" }, [ANN, BOB])
    expect(outcome).toMatchObject({ address: ANN, status: "retry", reason: "450 4.2.0 grey" })
    expect(outcome.others).toMatchObject([{ address: BOB, status: "retry" }])
    expect(outcome.others[0]).not.toHaveProperty("fault")
  })
})
