import { expect, test } from "bun:test"
import { painter } from "../../../cli/lib/terminal"
import { messageText } from "../../../cli/tui/messages-screen"
import type { MessageParts, Tab } from "../../../cli/tui/state"

const ID = "0199a1c2-0000-7000-8000-000000000001"
const AT = "2026-11-21T10:30:00.000Z"

const linesOf = (tab: Tab, parts: object) =>
  messageText(parts as MessageParts, painter(false), 110, tab) ?? ""

test("the timeline tells openings and clicks, and how often", () => {
  const email = {
    ...{ id: ID, from: { email: "me@acme.test", name: null } },
    ...{ to: { email: "ann@acme.test", name: null }, status: "delivered", status_reason: null },
    ...{ open_count: 2, opened_at: AT, click_count: 0, clicked_at: null },
    timeline: [{ type: "email.opened", timestamp: AT, recipient_email: "ann@acme.test" }],
  }
  const lines = linesOf("Timeline", { email, attempts: [] })
  expect(lines).toMatch(/opened\s+2 × since /)
  expect(lines).toContain("email.opened")
  expect(lines).not.toContain("clicked")
})

test("an event names the link and the program, and no escape of theirs reaches the terminal", () => {
  const url = "https://shop.test/\u001b[31m"
  const event = {
    ...{ id: "evt_1", type: "email.clicked", timestamp: AT, recipient_email: null },
    ...{ url, actor: "human", user_agent: "Evil\u001b]0;x\u0007" },
  }
  const lines = linesOf("Events", { events: { events: [event] } })
  expect(lines).toContain("https://shop.test/")
  expect(lines).toContain("human, Evil")
  expect(lines).not.toContain("\u001b")
})

test("the tab Tracking shows what emails tracking shows", () => {
  const hits = { total: 3, unique: 1, human: 1, machine: 2, first_at: AT, last_at: AT }
  const url = "https://shop.test/a\u001b[2J"
  const tracking = {
    ...{ email_id: ID, track_opens: true, track_clicks: false, opens: hits, clicks: hits },
    links: [{ url, total: 1, unique: 1, human: 1, last_at: AT }],
    recent: [],
  }
  const lines = linesOf("Tracking", { tracking })
  expect(lines).toContain("1 by 1 person, 2 by machines, 3 in all")
  expect(lines).toContain("https://shop.test/a")
  expect(lines).not.toContain("\u001b")
})
