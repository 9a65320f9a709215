import { expect, test } from "bun:test"
import type { Client } from "../../../cli/lib/client"
import { painter } from "../../../cli/lib/terminal"
import { type MessageFilter, parseFilter, pushQuery } from "../../../cli/tui/filter"
import {
  mergeUpdates,
  type RowUpdate,
  updateOfActivity,
  updateOfEvent,
  updateOfPush,
} from "../../../cli/tui/message-rows"
import { messagesScreen, messageText } from "../../../cli/tui/messages-screen"
import { screenLines } from "../../../cli/tui/monitor"
import { olderMessages } from "../../../cli/tui/older-messages"
import { press } from "../../../cli/tui/press"
import type { MessageParts, Tab } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import { idAt, monitorWith, NOW } from "./rows"

const at = (milliseconds: number) => new Date(milliseconds).toISOString()

const listed = (n: number, more: object = {}) => ({
  ...{ id: idAt(NOW + n, n), user_id: "user-42", device_id: "pixel-7", title: `Note ${n}` },
  ...{ body: "Hi\u001b[31m", platform: "android" as const, provider: "fcm" as const, data: {} },
  ...{ tags: ["a"], status: "sent" as const, queued_at: at(NOW + n), sent_at: at(NOW + n) },
  ...{ delivered_at: null, created_at: at(NOW + n) },
  ...more,
})

const event = (type: string, n: number) =>
  updateOfEvent({
    ...{ id: "evt_1", type, version: "1", project_id: idAt(0), created_at: at(NOW) },
    data: { push_message_id: idAt(NOW + n, n), device_id: "pixel-7", timestamp: at(NOW + n) },
  } as never) as RowUpdate

const rowsAfter = (...facts: RowUpdate[]) => mergeUpdates([], facts).rows

test("events and the activity tell which device a message is for, and how far it is", () => {
  const [row] = rowsAfter(event("push.sent", 1), event("push.delivered", 1))
  expect(row).toMatchObject({ channel: "push", to: "pixel-7", status: "delivered" })
  expect(rowsAfter(event("push.expired", 1), event("push.sent", 1))[0]?.status).toBe("expired")
  const next_attempt_at = at(NOW + 3_600_000)
  const scheduled = updateOfActivity({
    ...{ id: idAt(NOW + 1, 1), channel: "push", status: "queued", status_reason: null },
    ...{ recipient: "pixel-7", next_attempt_at, at: at(NOW), event_type: null },
  })
  expect(scheduled).toMatchObject({ to: "pixel-7", scheduled_at: NOW + 3_600_000 })
})

const screenOf = (columns: number) => {
  const facts = [
    updateOfPush(listed(1, { title: "Ready\u001b[2J" })),
    updateOfPush(listed(2, { status: "expired" })),
    updateOfPush(listed(3, { title: null, body: null, status: "queued" })),
  ]
  return applyNews(monitorWith(1, columns), { is: "facts", facts }).state
}

test.each([80, 130])("push messages stand beside emails, at %i columns", (columns) => {
  const screen = screenLines(screenOf(columns), false).join("\n")
  expect(screen).toMatch(/pixel-7 +Ready +sent/)
  expect(screen).toMatch(/pixel-7 +Note 2 +expired ✗/)
  expect(screen).toMatch(/pixel-7 +\(no text\) +queued/)
  expect(screen).toMatch(/u0@mailbox\.test +Number 0 +delivered/)
  if (columns > 100) expect(screen).toMatch(/ push +/)
  expect(screen).not.toContain("\u001b")
})

test("a push message is opened, cancelled and not sent again as what it is", () => {
  const opened = press(screenOf(130), "<enter>")
  expect(opened.intents).toMatchObject([{ do: "load_detail", of: "push", tab: "Timeline" }])
  expect(press(screenOf(80), "r").state.notice?.text).toBe("only an email can be sent again")
  expect(press(screenOf(80), "c").state.question?.choices[0]?.action).toMatchObject({
    name: "POST /v1/push/{push_id}/cancel",
    input: { params: { push_id: idAt(NOW + 3, 3) } },
  })
})

test("an opened message shows its device, buttons, error and events, without its escapes", () => {
  const push = listed(1, {
    ...{ batch_id: null, action_buttons: [{ id: "yes", label: "I come", url: null }], badge: 2 },
    ...{ collapse_id: "c", url: "/7", priority: "high", data: { table: "7" }, status: "failed" },
    ...{ provider_message_id: null, status_reason: "unregistered", error_code: "unregistered" },
    ...{ provider_code: "UNREGISTERED", error_message: "It is not there.", scheduled_at: null },
    ...{ expires_at: null, events: [{ type: "push.failed", timestamp: at(NOW), detail: null }] },
  })
  const textOf = (tab: Tab) =>
    messageText({ push } as unknown as MessageParts, painter(false), 110, tab) ?? ""
  expect(textOf("Timeline")).toMatch(/✗ failed \(unregistered\)[\s\S]+pixel-7[\s\S]+fcm, android/)
  expect(textOf("Timeline")).toMatch(/yes I come[\s\S]+unregistered, UNREGISTERED: It is not there/)
  expect(textOf("Timeline")).toMatch(/Note 1\nHi[\s\S]+push\.failed/)
  expect(textOf("Timeline")).not.toContain("\u001b")
  expect(textOf("Text")).toContain("Hi")
  expect(textOf("Raw")).toBe("a push message has none")
})

test("what no event tells is read: the title of a new message, and never of one without a text", () => {
  const state = applyNews(monitorWith(0), { is: "facts", facts: [event("push.sent", 1)] }).state
  expect(messagesScreen.loads?.(state)).toMatchObject([{ do: "load_newest" }])
  const told = [updateOfPush(listed(1, { title: null, body: null }))]
  expect(messagesScreen.loads?.(applyNews(state, { is: "facts", facts: told }).state)).toEqual([])
})

test("the list is asked for what it can have", async () => {
  const query = (text: string) => pushQuery((parseFilter(text) as MessageFilter).query)
  expect(query("status:expired tag:a")).toEqual({ status: "expired", tag: "a" })
  for (const text of ["status:bounced", "template:x", "to:ann@mailbox.test", "subject:x"])
    expect(query(text)).toBeUndefined()
  const client = {
    call: async (route: string) => ({
      data: route === "GET /v1/push" ? [listed(1)] : [],
      meta: {},
    }),
  } as unknown as Client
  const filter = parseFilter("ch:push to:pixel-7") as MessageFilter
  const { facts } = await olderMessages(client, new Map(), filter)
  expect(rowsAfter(...facts).map((row) => filter.matches(row, NOW))).toEqual([true])
})
