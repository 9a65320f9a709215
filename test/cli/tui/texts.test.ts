import { expect, test } from "bun:test"
import type { Client } from "../../../cli/lib/client"
import { statusMark } from "../../../cli/lib/email-text"
import { painter } from "../../../cli/lib/terminal"
import { emailQuery, type MessageFilter, parseFilter, textQuery } from "../../../cli/tui/filter"
import {
  type ActivityFrame,
  mergeUpdates,
  type RowUpdate,
  updateOfActivity,
  updateOfEvent,
  updateOfText,
} from "../../../cli/tui/message-rows"
import { messagesScreen, messageText } from "../../../cli/tui/messages-screen"
import { screenLines } from "../../../cli/tui/monitor"
import { olderMessages } from "../../../cli/tui/older-messages"
import { press } from "../../../cli/tui/press"
import type { MessageParts, Tab } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import { idAt, monitorWith, NOW } from "./rows"

const at = (milliseconds: number) => new Date(milliseconds).toISOString()
const ID = idAt(NOW, 1)

const listed = (n: number, more: object = {}) => ({
  ...{ id: idAt(NOW + n, n), to: "+14155550100", from: "+14155550101", body: `Text ${n}` },
  ...{ segments: 1, status: "delivered" as const, direction: "outbound" as const },
  ...{ sent_at: at(NOW + n), created_at: at(NOW + n) },
  ...more,
})

const event = (type: string, data: object) => ({
  ...{ id: "evt_1", type, version: "1", project_id: idAt(0), created_at: at(NOW) },
  data: { sms_message_id: ID, to: "+14155550100", from: "+14155550101", ...data },
})

test("events tell the way of a text, and of an answer who wrote what", () => {
  const types = ["sms.queued", "sms.sent", "sms.undelivered"]
  const facts = types.map((type) => updateOfEvent(event(type, {}) as never))
  const [text] = mergeUpdates([], facts as never).rows
  expect(text).toMatchObject({ channel: "sms", to: "+14155550100", status: "undelivered" })
  const answer = updateOfEvent(event("sms.received", { body: "STOP" }) as never)
  expect(answer).toMatchObject({ to: "← +14155550101", subject: "STOP", status: "received" })
  expect(mergeUpdates([], [answer as never]).counts).toMatchObject({ added: 0, settled: 0 })
  expect(updateOfEvent(event("sms.sent", { simulated: true }) as never)).toBeUndefined()
})

const screenOf = (columns: number) => {
  const facts = [
    updateOfText(listed(1, { body: "Your table is ready" })),
    updateOfText(listed(2, { direction: "inbound", body: "STOP\u001b[2J", status: "received" })),
    { ...updateOfText(listed(3, { status: "sent" })), status_reason: "unconfirmed" },
  ]
  return applyNews(monitorWith(1, columns), { is: "facts", facts }).state
}

test.each([80, 130])("texts stand beside emails, at %i columns", (columns) => {
  const screen = screenLines(screenOf(columns), false).join("\n")
  expect(screen).toMatch(/\+14155550100 +Your table is .+delivered/)
  expect(screen).toMatch(/← \+14155550101 +STOP +received/)
  expect(screen).toMatch(/Text 3 +unconfirmed/)
  expect(screen).toMatch(/u0@mailbox\.test +Number 0 +delivered/)
  expect(screen).not.toContain("\u001b")
})

test("a text is opened, cancelled and not sent again as what it is", () => {
  const opened = press(screenOf(130), "<enter>")
  const load = { do: "load_detail", screen: "messages", of: "sms", tab: "Timeline" }
  expect(opened.intents).toMatchObject([load])
  expect(press(opened.state, "<right>").intents).toMatchObject([{ ...load, tab: "Headers" }])
  expect(press(screenOf(80), "r").state.notice?.text).toBe("only an email can be sent again")
  const queued = updateOfText(listed(4, { status: "queued" }))
  const waiting = applyNews(screenOf(80), { is: "facts", facts: [queued] }).state
  expect(press(waiting, "c").state.question?.choices[0]?.action).toMatchObject({
    name: "POST /v1/sms/{sms_id}/cancel",
    input: { params: { sms_id: queued.id } },
  })
})

test("an opened text shows its body, segments, price and timeline, without its escapes", () => {
  const sms = {
    ...{
      ...listed(1),
      status: "sent",
      body: "Hi\u001b[31m",
      encoding: "gsm7",
      segments: 2,
      tags: ["t"],
    },
    ...{ provider: "twilio", provider_message_id: "SM1", status_reason: "unconfirmed" },
    ...{ price: { amount: "0.0075", currency: "USD" }, error: null, is_test: false },
    timeline: [{ type: "sms.sent", timestamp: at(NOW), detail: null }],
  }
  const linesOf = (tab: Tab) =>
    messageText({ sms } as unknown as MessageParts, painter(false), 110, tab) ?? ""
  expect(linesOf("Timeline")).toMatch(/… sent \(unconfirmed\)[\s\S]+2 \(gsm7\)[\s\S]+twilio/)
  expect(linesOf("Timeline")).toMatch(/0\.0075 USD[\s\S]+Hi[\s\S]+sms\.sent/)
  expect(linesOf("Timeline")).not.toContain("\u001b")
  expect(linesOf("Text")).toContain("Hi")
  expect(linesOf("Headers")).toBe("a text has none")
  const cancelled = { status: "cancelled", status_reason: null }
  expect(statusMark(cancelled, painter(false))).toBe("– cancelled")
})

const activity = (more: Partial<ActivityFrame>) =>
  updateOfActivity({
    ...{ id: ID, channel: "sms", status: "sent", status_reason: null, recipient: "+14155550100" },
    ...{ next_attempt_at: null, at: at(NOW), event_type: null, ...more },
  })

test("a text stays unconfirmed when its list is read, until a report comes", () => {
  const after = (...facts: RowUpdate[]) => mergeUpdates([], facts).rows[0]?.status_reason
  const left = activity({ status_reason: "unconfirmed", event_type: "sms.sent" })
  const read = updateOfText(listed(1, { id: ID, status: "sent" }))
  expect(after(left, read)).toBe("unconfirmed")
  expect(after(left, read, activity({ status: "delivered" }))).toBe("")
})

test("a text that is accepted for later shows when", () => {
  const next_attempt_at = at(NOW + 3_600_000)
  const fact = activity({ status: "queued", event_type: "sms.queued", next_attempt_at })
  expect(mergeUpdates([], [fact]).rows[0]?.scheduled_at).toBe(NOW + 3_600_000)
})

test("what no event tells is read: the body of a text that came by one", () => {
  const told = updateOfEvent(event("sms.queued", {}) as never)
  const state = applyNews(monitorWith(0), { is: "facts", facts: [told as never] }).state
  expect(messagesScreen.loads?.(state)).toMatchObject([{ do: "load_newest" }])
  const read = applyNews(state, { is: "facts", facts: [updateOfText(listed(1, { id: ID }))] }).state
  expect(messagesScreen.loads?.(read)).toEqual([])
})

test("each list is asked only for what it can have", () => {
  const queries = (text: string) => {
    const { query } = parseFilter(text) as MessageFilter
    return [emailQuery(query), textQuery(query)].map((one) => one !== undefined)
  }
  expect(queries("status:failed tag:a")).toEqual([true, true])
  expect(queries("status:bounced")).toEqual([true, false])
  expect(queries("template:receipt")).toEqual([true, false])
  expect(queries("to:ann@mailbox.test")).toEqual([true, false])
  expect(queries("status:undelivered")).toEqual([false, true])
  expect(queries("to:+14155550100")).toEqual([false, true])
})

test("texts of a tag pass its filter, though their list shows no tags", async () => {
  const client = {
    call: async (route: string) => ({ data: route === "GET /v1/sms" ? [listed(1)] : [], meta: {} }),
  } as unknown as Client
  const filter = parseFilter("tag:reminder") as MessageFilter
  const { facts } = await olderMessages(client, new Map(), filter)
  const { rows } = mergeUpdates([], facts)
  expect(rows.map((row) => filter.matches(row, NOW))).toEqual([true])
})

test("of two lists the older rows of the deeper one wait for those of the other", async () => {
  const emails = [9, 8, 7].map((n) => ({ ...email(n * 10), updated_at: at(NOW + n) }))
  const texts = [85, 2, 1].map((n) => listed(n))
  const pages: Record<string, object[][]> = {
    "GET /v1/emails": [emails, [email(15)]],
    "GET /v1/sms": [texts],
  }
  const client = {
    async call(route: string, { query }: { query: { cursor?: string } }) {
      const all = pages[route] ?? []
      const page = Number(query.cursor ?? 0)
      const next_cursor = page + 1 < all.length ? String(page + 1) : null
      return { data: all[page] ?? [], meta: { next_cursor } }
    },
  } as unknown as Client
  const walks = new Map()
  const next = async () => {
    const { facts, more } = await olderMessages(client, walks, parseFilter("") as MessageFilter)
    return {
      ids: facts
        .map(({ id }) => id)
        .sort()
        .reverse(),
      more,
    }
  }
  const ids = (...all: number[]) => all.map((n) => idAt(NOW + n, n))
  expect(await next()).toEqual({ ids: ids(90, 85, 80, 70), more: true })
  expect(await next()).toEqual({ ids: ids(15, 2, 1), more: false })
  expect(await next()).toEqual({ ids: [], more: false })
})

const email = (n: number) => ({
  ...{ id: idAt(NOW + n, n), to: { email: "a@b.c", name: null }, subject: "s", tags: [] },
  ...{ status: "delivered", status_reason: null, attempts: 1, created_at: at(NOW + n) },
  ...{ scheduled_at: null, last_event: null, template: null },
})
