import { expect, test } from "bun:test"
import type { OutgoingMail } from "../../../src/emails/providers/provider"
import { smtp } from "../../../src/emails/providers/smtp"
import { mailTo } from "../../contracts/email-provider"
import { type Script, smtpSink } from "../../fakes/smtp-sink"

const OURS = "b+token@bounce.acme.test"
const AUTHOR = "bell@example.test"
const HOST = "bounce.acme.test"

/** A relay that refuses our return path at this command, in these words, and names no sender otherwise. */
function refusing(phase: "MAIL" | "RCPT" | "DATA" | "end", words: string, others: Script = {}) {
  let is_ours = false
  const at = (name: string, next?: Script[string]) => (line: string) => {
    if (name === phase && is_ours) return words
    if (phase === "MAIL" && is_ours) return "503 5.5.1 MAIL first"
    return typeof next === "function" ? next(line) : next
  }
  const MAIL = (line: string) => {
    is_ours = line.includes(OURS)
    return at("MAIL")(line)
  }
  return smtpSink({
    ...others,
    MAIL,
    RCPT: at("RCPT", others.RCPT),
    DATA: at("DATA", others.DATA),
    end: at("end", others.end),
  })
}

const outgoing = (...to: string[]): OutgoingMail => ({
  ...mailTo(...to),
  reports_to: async () => OURS,
})

async function through(sink: ReturnType<typeof smtpSink>, count = 1, ...to: string[]) {
  const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none" })
  const recipients = to.length > 0 ? to : ["ann@b.test"]
  const outcomes = []
  for (let sent = 0; sent < count; sent++)
    outcomes.push(await provider.send(outgoing(...recipients)))
  await provider.close()
  const senders = sink.lines.flatMap((line) => /^MAIL FROM:<(.*?)>/.exec(line)?.[1] ?? [])
  return { outcomes, senders, connections: sink.connections() }
}

const NO_PIPELINING = { EHLO: "250-sink.test\r\n250 8BITMIME" }

test.each<[string, Parameters<typeof refusing>]>([
  ["at MAIL", ["MAIL", "553 5.7.1 <b+token@bounce.acme.test>: Sender address rejected: not owned"]],
  ["at MAIL, in words of its own", ["MAIL", "550 no"]],
  ["at MAIL, one command after another", ["MAIL", "550 5.7.1 no", NO_PIPELINING]],
  ["at RCPT, as Postfix does", ["RCPT", "553 5.7.1 <b+token@bounce.acme.test>: not owned"]],
  ["after DATA", ["DATA", "554 5.7.1 no"]],
  [
    "after the message, as SES does",
    ["end", "554 Message rejected: Email address is not verified."],
  ],
  ["for now, because it finds no such domain", ["MAIL", "450 4.1.8 Sender address rejected"]],
])(
  "a relay that refuses ours %s gets the author's in the same attempt, and only that from then on",
  async (_, how) => {
    using sink = refusing(...how)
    const { outcomes, senders, connections } = await through(sink, 3)
    expect(outcomes.map(({ status }) => status)).toEqual(["sent", "sent", "sent"])
    expect(sink.received).toHaveLength(3)
    expect([senders, connections]).toEqual([[OURS, AUTHOR, AUTHOR, AUTHOR], 1])
    expect(outcomes.map(({ return_path }) => return_path)).toEqual([
      { host: HOST, refusal: how[1] },
      undefined,
      undefined,
    ])
    expect(outcomes[0]?.transcript.join("\n")).toContain("trying the author's address")
  },
)

test("a relay that goes on after its refusal gets the author's over a new connection", async () => {
  using sink = smtpSink({ MAIL: (line) => (line.includes(OURS) ? "550 no" : undefined) })
  const { outcomes, connections } = await through(sink)
  expect([outcomes[0]?.status, sink.received.length, connections]).toEqual(["sent", 1, 2])
})

test("a relay that takes ours keeps it, and then a refusal of the recipient is asked about once", async () => {
  using sink = smtpSink({
    RCPT: (line) => (line.includes("gone@") ? "550 5.1.1 nobody" : undefined),
  })
  const { outcomes, senders } = await through(sink, 2, "ann@b.test", "gone@b.test")
  expect(senders).toEqual([OURS, OURS])
  expect(outcomes[0]?.return_path).toEqual({ host: HOST, refusal: null })
  expect(outcomes[0]?.others[0]).toMatchObject({ status: "bounced", bounce_subtype: "NoEmail" })
  const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none" })
  await provider.send(outgoing("ann@b.test"))
  const { status, return_path } = await provider.send(outgoing("gone@b.test"))
  await provider.close()
  expect([status, return_path]).toEqual(["bounced", undefined])
  expect(sink.lines.filter((line) => line.includes(AUTHOR))).toEqual([])
})

test.each<[string, Script, string]>([
  ["says no to the author's, too", { MAIL: "550 5.7.1 you are blocked" }, "failed"],
  ["does not know the recipient", { RCPT: "550 5.1.1 nobody" }, "bounced"],
  ["defers", { MAIL: "451 4.3.0 later" }, "retry"],
  ["closes", { MAIL: "421 4.3.2 closing" }, "retry"],
])("a relay that %s has not refused our return path", async (_, script, status) => {
  using sink = smtpSink(script)
  const { outcomes, senders } = await through(sink, 2)
  expect(outcomes.map((one) => one.status)).toEqual([status, status] as never)
  expect(outcomes.map(({ return_path }) => return_path)).toEqual([undefined, undefined])
  expect(senders.filter((sender) => sender === OURS)).toHaveLength(2)
})

test("reports are asked for where the relay offers them, and only to our return path", async () => {
  using sink = refusing("MAIL", "550 no", { EHLO: "250-sink.test\r\n250 DSN" })
  await through(sink)
  const commands = sink.lines.filter((line) => /^(MAIL|RCPT)/.test(line))
  expect(commands.map((line) => line.replace(/ ENVID=\S+/, ""))).toEqual([
    `MAIL FROM:<${OURS}> RET=HDRS`,
    `MAIL FROM:<${AUTHOR}>`,
    "RCPT TO:<ann@b.test>",
  ])
  using taking = smtpSink({ EHLO: "250-sink.test\r\n250 DSN" })
  await through(taking)
  expect(taking.lines).toContain("RCPT TO:<ann@b.test> NOTIFY=SUCCESS,FAILURE,DELAY")
})

test("a test of the relay asks it, and the next mail tries ours again", async () => {
  let takes = false
  using sink = smtpSink({
    ...NO_PIPELINING,
    MAIL: (line) => (line.includes(OURS) && !takes ? "550 no" : undefined),
  })
  const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none" })
  expect(await provider.checkReturnPath?.(OURS)).toEqual({ host: HOST, refusal: "550 no" })
  await provider.send(outgoing("ann@b.test"))
  takes = true
  expect((await provider.send(outgoing("ann@b.test"))).return_path).toBeUndefined()
  expect(await provider.checkReturnPath?.(OURS)).toEqual({ host: HOST, refusal: null })
  expect((await provider.send(outgoing("ann@b.test"))).return_path?.refusal).toBeNull()
  await provider.close()
})
