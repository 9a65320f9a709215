import { expect, test } from "bun:test"
import type { Client } from "../../../cli/lib/client"
import { painter } from "../../../cli/lib/terminal"
import { inboxQuery, type MessageFilter, parseFilter } from "../../../cli/tui/filter"
import {
  type ActivityFrame,
  mergeUpdates,
  type RowUpdate,
  updateOfActivity,
  updateOfEvent,
  updateOfInbox,
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
  ...{ id: idAt(NOW + n, n), seq: n, subscriber_id: idAt(0, 0xabcdef), title: `Note ${n}` },
  ...{ body: "Hi\u001b[31m", action_url: "/7", action_label: "Show", icon: null, image_url: null },
  ...{ actions: [], category: "billing", priority: "normal" as const, data: {}, tags: ["a"] },
  ...{ metadata: {}, collapse_key: null, seen_at: null, read_at: null, archived_at: null },
  ...{ snoozed_until: null, expires_at: null, created_at: at(NOW + n), updated_at: at(NOW + n) },
  ...more,
})

const event = (type: string, n: number, after = 0, more: object = {}) =>
  updateOfEvent({
    ...{ id: "evt_1", type, version: "1", project_id: idAt(0), created_at: at(NOW) },
    data: {
      ...{ inbox_message_id: idAt(NOW + n, n), external_id: "user-42" },
      ...{ timestamp: at(NOW + n + after), ...more },
    },
  } as never) as RowUpdate

const rowsAfter = (...facts: RowUpdate[]) => mergeUpdates([], facts).rows
const statusAfter = (...facts: RowUpdate[]) => rowsAfter(...facts)[0]?.status

test("events and the activity tell whose message it is, and how far it is", () => {
  const [row] = rowsAfter(event("inbox.created", 1), event("inbox.seen", 1, 5))
  expect(row).toMatchObject({ channel: "in_app", to: "user-42", status: "seen" })
  expect(statusAfter(event("inbox.seen", 1, 5), event("inbox.created", 1))).toBe("seen")
  expect(statusAfter(event("inbox.read", 1, 5), event("inbox.action", 1, 6))).toBe("read")
  const activity: ActivityFrame = {
    ...{ id: idAt(NOW + 1, 1), channel: "in_app", status: "delivered", status_reason: null },
    ...{ recipient: idAt(0, 0xabcdef), next_attempt_at: null, at: at(NOW + 2) },
    event_type: "inbox.archived",
  }
  expect(updateOfActivity(activity)).toMatchObject({ to: "…00abcdef", status: "archived" })
  expect(updateOfActivity({ ...activity, event_type: "inbox.action" }).status).toBeUndefined()
  expect(event("inbox.read", 1, 0, { simulated: true })).toBeUndefined()
})

test("what is unread again is shown so, and a list that was read before does not undo an event", () => {
  const read = event("inbox.read", 1, 5)
  expect(statusAfter(read, updateOfInbox(listed(1)))).toBe("read")
  const seen = { seen_at: at(NOW + 5), updated_at: at(NOW + 9) }
  expect(statusAfter(read, updateOfInbox(listed(1, seen)))).toBe("seen")
})

test("the list has no external ids, and takes none away", () => {
  expect(rowsAfter(updateOfInbox(listed(1)))[0]?.to).toBe("…00abcdef")
  const facts = [event("inbox.created", 1), updateOfInbox(listed(1))]
  expect(rowsAfter(...facts)[0]).toMatchObject({ to: "user-42", subject: "Note 1" })
})

const screenOf = (columns: number) => {
  const facts = [
    { ...updateOfInbox(listed(1, { title: "Ready\u001b[2J" })), to: "user-42" },
    updateOfInbox(listed(2, { archived_at: at(NOW) })),
  ]
  return applyNews(monitorWith(1, columns), { is: "facts", facts }).state
}

test.each([80, 130])("messages in inboxes stand beside emails, at %i columns", (columns) => {
  const screen = screenLines(screenOf(columns), false).join("\n")
  expect(screen).toMatch(/user-42 +Ready +unseen/)
  expect(screen).toMatch(/…00abcdef +Note 2 +archived/)
  expect(screen).toMatch(/u0@mailbox\.test +Number 0 +delivered/)
  if (columns > 100) expect(screen).toMatch(/ inbox +/)
  expect(screen).not.toContain("\u001b")
})

test("a message is opened as what it is, with its states and actions", () => {
  const opened = press(screenOf(130), "<enter>")
  expect(opened.intents).toMatchObject([{ do: "load_detail", of: "in_app", tab: "Timeline" }])
  expect(press(screenOf(80), "r").state.notice?.text).toBe("only an email can be sent again")
  const actions = [
    { key: "accept", label: "Accept", url: null, style: null, completed_at: at(NOW + 60_000) },
    { key: "decline", label: "Decline", url: "/no", style: null, completed_at: null },
  ]
  const inbox = listed(1, { actions, seen_at: at(NOW + 1), read_at: at(NOW + 2) })
  const linesOf = (tab: Tab) =>
    messageText({ inbox } as unknown as MessageParts, painter(false), 110, tab) ?? ""
  expect(linesOf("Timeline")).toMatch(/Note 1\n[\s\S]+state +read\n[\s\S]+seen +2026-11-21T12/)
  expect(linesOf("Timeline")).toMatch(/✓ accept {2}Accept used \d\d:01:00[\s\S]+– decline .+\/no/)
  expect(linesOf("Timeline")).not.toContain("\u001b")
  expect(linesOf("Text")).toContain("Hi")
  expect(linesOf("Raw")).toBe("a message in an inbox has none")
})

test("what no event tells is read: the title of a new message", () => {
  const facts = [event("inbox.created", 1)]
  const state = applyNews(monitorWith(0), { is: "facts", facts }).state
  expect(messagesScreen.loads?.(state)).toMatchObject([{ do: "load_newest" }])
  const later = applyNews(state, { is: "tick", now: NOW + 61_000 }).state
  expect(messagesScreen.loads?.(later)).toEqual([]) // it was removed meanwhile
  const told = [updateOfInbox(listed(1))]
  expect(messagesScreen.loads?.(applyNews(state, { is: "facts", facts: told }).state)).toEqual([])
})

test("the list is asked for what it can have, and its rows end with the time of the filter", async () => {
  const query = (text: string) => inboxQuery((parseFilter(text) as MessageFilter).query)
  expect(query("status:unseen tag:a")).toEqual({ state: "unseen", tag: "a" })
  for (const text of ["status:bounced", "template:x", "to:ann@mailbox.test", "subject:x"])
    expect(query(text)).toBeUndefined()
  const asked: string[] = []
  const now = Date.now()
  const client = {
    async call(route: string) {
      asked.push(route)
      const fresh = listed(1, { created_at: at(now) })
      const meta = { next_cursor: "older" }
      return route === "GET /v1/inbox" ? { data: [fresh, listed(2)], meta } : { data: [], meta: {} }
    },
  } as unknown as Client
  const filter = parseFilter("ch:inbox status:unseen since:1h") as MessageFilter
  const { facts, more } = await olderMessages(client, new Map(), filter)
  expect([asked, more]).toEqual([["GET /v1/inbox"], false])
  expect(facts.map(({ subject }) => subject)).toEqual(["Note 1"])
  expect(rowsAfter(...facts).map((row) => filter.matches(row, now))).toEqual([true])
})
