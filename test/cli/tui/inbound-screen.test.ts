import { describe, expect, test } from "bun:test"
import { painter } from "../../../cli/lib/terminal"
import { bodyLines, detailLines, infoLine } from "../../../cli/tui/frame"
import { messageText } from "../../../cli/tui/messages-screen"
import { screenLines } from "../../../cli/tui/monitor"
import { press } from "../../../cli/tui/press"
import type { Intent, State } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import type { Components } from "../../../src/client/components"
import { idAt, inboundMail, monitorWith, NOW, readOf } from "./rows"

const MESSAGE = idAt(NOW, 7)
const plain = painter(false)

const DSN = {
  reporting_mta: "mx.elsewhere.test",
  recipients: [
    {
      email: "ann@elsewhere.test",
      action: "failed",
      status: "5.1.1",
      diagnostic: "550 5.1.1 No such user here",
      remote_mta: "mx2.elsewhere.test",
    },
  ],
}

const mails = [
  inboundMail("m3", { kind: "bounce", replied_to_message_id: MESSAGE, report: DSN }),
  inboundMail("m2", { verified: false, spf_verdict: "fail", dmarc_verdict: "fail" }),
  inboundMail("m1"),
]

const OPENED = { is: "detail", screen: "inbound", id: "m3", tab: "Timeline" } as const

/** The inbound screen with three mails; the newest is chosen. */
const screen = (columns = 130): State =>
  applyNews(press(monitorWith(0, columns), "4").state, { is: "rows", list: "inbound", rows: mails })
    .state

function pressed(state: State, ...keys: string[]): { state: State; intents: Intent[] } {
  const intents: Intent[] = []
  let now = state
  for (const key of keys) {
    const step = press(now, key)
    now = step.state
    intents.push(...step.intents)
  }
  return { state: now, intents }
}

describe("the screen of received mail", () => {
  test("shows verdicts, kind and the message that a mail answers", () => {
    const text = bodyLines(screen(), plain, false).join("\n")
    expect(text).toMatch(/TIME +ID +FROM +TO +SUBJECT +KIND +VERIFIED +SPAM +ANSWERS/)
    expect(text).toMatch(new RegExp(`bounce +yes +0 +${MESSAGE.slice(-8)}`))
    expect(text).toMatch(/new +spf dmarc ✗/)
    expect(infoLine(screen(), plain)).toContain("3 newest mails   1 not verified")
  })

  test("says that it loads, that there is none, and why it cannot be read", () => {
    const empty = press(monitorWith(0), "4").state
    expect(bodyLines(empty, plain, false).join("")).toContain("loading…")
    const none = applyNews(empty, { is: "rows", list: "inbound", rows: [] }).state
    expect(bodyLines(none, plain, false).join("")).toContain("no mail came in yet")
    const problem = "this needs a key with the scope inbound:read"
    const refused = applyNews(empty, { is: "problem", screen: "inbound", problem }).state
    expect(bodyLines(refused, plain, false).join("")).toContain(problem)
  })

  test("stays at the newest mail until another one is chosen", () => {
    const newer = [inboundMail("m4"), ...mails]
    const followed = applyNews(screen(), { is: "rows", list: "inbound", rows: newer }).state
    expect(followed.lists.inbound.position.selected).toBe("m4")
    const { state } = pressed(screen(), "j")
    const kept = applyNews(state, { is: "rows", list: "inbound", rows: newer }).state
    expect(kept.lists.inbound.position.selected).toBe("m2")
  })

  test("opens a mail, shows what it reports, and goes on to its neighbours", () => {
    const opened = pressed(screen(), "<enter>")
    expect(opened.intents).toEqual([readOf("inbound", "m3")])
    const found = mails[0] ?? null
    const { state } = applyNews(opened.state, { ...OPENED, found })
    const lines = detailLines(state, 90, false).map((line) => line.trim())
    expect(lines).toContain("ann@elsewhere.test  failed  5.1.1")
    expect(lines).toContain("550 5.1.1 No such user here")
    expect(lines).toContain("at mx2.elsewhere.test")
    expect(lines).toContain("checked   spf pass  dkim pass  dmarc pass  arc none")
    expect(lines).toContain("Where is my order?")
    expect(pressed(state, "n").intents).toEqual([readOf("inbound", "m2")])
    expect(pressed(state, "<escape>").state.details.inbound).toBeUndefined()
    const late = applyNews(pressed(state, "n").state, { ...OPENED, found }).state
    expect(late.details.inbound?.found).toBeNull()
  })

  test("m opens the message that the mail answers, and says so where there is none", () => {
    const { state, intents } = pressed(screen(), "m")
    expect(intents).toEqual([readOf("messages", MESSAGE)])
    expect([state.screen, state.details.messages?.id]).toEqual(["messages", MESSAGE])
    const none = pressed(screen(), "j", "m")
    expect(none.intents).toEqual([])
    expect(none.state.notice?.text).toContain("answers no message")
  })

  test("sends an event again only after a yes, and copies an id", () => {
    const asked = pressed(screen(), "R")
    expect([asked.intents, asked.state.question?.text]).toEqual([
      [],
      "Send the event of the mail from Ann <ann@elsewhere.test> again?",
    ])
    expect(pressed(asked.state, "n").intents).toEqual([])
    expect(pressed(asked.state, "y").intents).toMatchObject([
      { input: { params: { inbound_id: "m3" } } },
    ])
    expect(pressed(screen(), ":", ..."redeliver", "<enter>").state.question).not.toBeNull()
    expect(pressed(screen(), "y").intents).toEqual([{ do: "copy", text: "m3" }])
  })

  test("is opened by its word, too, and asks for its mails", () => {
    const { state, intents } = pressed(monitorWith(1), ":", ..."inbound", "<enter>")
    expect([state.screen, intents]).toEqual(["inbound", [{ do: "load_list", list: "inbound" }]])
  })
})

describe("the detail of a bounced message", () => {
  const timestamp = "2026-11-21T12:00:00.000Z"
  const detail = {
    smtp_code: 550,
    enhanced_code: "5.1.1",
    mx: "mx.elsewhere.test",
    tls: null,
    response: "550 5.1.1 No such user",
  }
  const entry = (type: string, own: object | null = null) => ({
    type,
    timestamp,
    recipient_email: "ann@elsewhere.test",
    detail: own,
  })
  const email = {
    id: MESSAGE,
    status: "bounced",
    status_reason: "NoEmail",
    from: { email: "me@acme.test", name: null },
    to: { email: "ann@elsewhere.test", name: null },
    timeline: [
      entry("email.sent", { ...detail, response: "250 queued" }),
      entry("email.bounced", detail),
    ],
  } as unknown as Components["Email"]

  const linesOf = (reports: (typeof mails)[number][]) => {
    const parts = { email, attempts: [], reports }
    const text = messageText(parts, plain, 100, "Timeline") ?? ""
    return text.split("\n").map((line) => line.trim())
  }

  test("has the words of the server that refused it", () => {
    const lines = linesOf([])
    expect(lines).toContain("mx.elsewhere.test: 550 5.1.1 No such user")
    expect(lines.join("\n")).not.toContain("250 queued")
    expect(lines.join("\n")).not.toContain("DSN")
  })

  test("shows the report that came afterwards: diagnostic words and reporting server", () => {
    const text = linesOf(mails.slice(0, 1)).join("\n")
    expect(text).toMatch(/DSN {2}\d\d:\d\d:\d\d.* m3/)
    expect(text).toContain("reporting mta: mx.elsewhere.test")
    expect(text).toContain("550 5.1.1 No such user here")
    expect(text).toContain("at mx2.elsewhere.test")
  })
})

test("the whole screen beside an opened mail", () => {
  const opened = pressed(screen(130), "<enter>").state
  const found = mails[0] ?? null
  const { state } = applyNews(opened, { ...OPENED, found })
  const drawn = screenLines(state, false).join("\n")
  expect(drawn).toContain("[4 Inbound]")
  expect(drawn).toContain("received mail m3")
  expect(drawn).toContain("reporting mta: mx.elsewhere.test")
})
