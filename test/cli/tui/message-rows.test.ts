import { expect, test } from "bun:test"
import { isHeld } from "../../../cli/lib/email-text"
import { painter } from "../../../cli/lib/terminal"
import { bodyLines } from "../../../cli/tui/frame"
import {
  MOST_ROWS,
  mergeUpdates,
  updateOfActivity,
  updateOfEmail,
  updateOfEvent,
} from "../../../cli/tui/message-rows"
import type { State } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import { email } from "../fake-api"
import { fact, idAt, monitorWith, NOW } from "./rows"

const statuses = (...list: string[]) =>
  list.reduce(
    (rows, status) => mergeUpdates(rows, [fact(1, status)]).rows,
    mergeUpdates([], []).rows,
  )

test("a message takes its way, and what comes late does not throw it back", () => {
  expect(statuses("queued", "sending", "sent", "delivered")[0]?.status).toBe("delivered")
  expect(statuses("delivered", "sent", "queued")[0]?.status).toBe("delivered")
  expect(statuses("delivered", "complained", "delivered")[0]?.status).toBe("complained")
})

test("a deferred message waits again, and each taking of it is a try", () => {
  const [waiting] = statuses("queued", "sending", "queued")
  expect([waiting?.status, waiting?.attempts]).toEqual(["queued", 1])
  const [again] = statuses("queued", "sending", "sending", "queued", "sending", "sent")
  expect([again?.status, again?.attempts]).toEqual(["sent", 2])
})

test("rows are sorted by when they were accepted, whatever the order they were told of", () => {
  const { rows } = mergeUpdates([], [fact(2, "queued"), fact(1, "queued")])
  const later = mergeUpdates(rows, [fact(0, "queued"), fact(3, "queued")]).rows
  expect(later.map(({ subject }) => subject)).toEqual([3, 2, 1, 0].map((n) => `Number ${n}`))
})

test("an event that somebody triggered is no message", () => {
  const data = { message_id: idAt(NOW), recipient_email: "kim@example.test", subject: "Hi" }
  const created_at = new Date(NOW).toISOString()
  const event = { id: "evt_1", type: "email.bounced", api_version: "2026-02-01", created_at }
  expect(updateOfEvent({ ...event, data })?.status).toBe("bounced")
  expect(updateOfEvent({ ...event, data: { ...data, simulated: true } })).toBeUndefined()
})

test("of more rows than are kept the oldest go", () => {
  const many = Array.from({ length: MOST_ROWS + 10 }, (_, n) => fact(n, "queued"))
  const { rows } = mergeUpdates([], many)
  expect([rows.length, rows[0]?.subject, rows.at(-1)?.subject]).toEqual([
    MOST_ROWS,
    `Number ${MOST_ROWS + 9}`,
    "Number 10",
  ])
})

test("a message is counted once, however often it is said", () => {
  const first = mergeUpdates([], [fact(1, "queued"), fact(1, "queued"), fact(2, "queued")])
  expect(first.counts).toEqual({ added: 2, settled: 0, bounced: 0, complained: 0 })
  const next = mergeUpdates(first.rows, [fact(1, "sent"), fact(1, "delivered"), fact(2, "bounced")])
  expect(next.counts).toEqual({ added: 0, settled: 2, bounced: 1, complained: 0 })
  const twice = mergeUpdates(next.rows, [fact(2, "bounced"), fact(1, "complained")])
  expect(twice.counts).toEqual({ added: 0, settled: 0, bounced: 0, complained: 1 })
})

test("messages of before do not count, whatever becomes of them now", () => {
  const old = mergeUpdates([], [fact(1, "delivered")], false)
  expect(mergeUpdates(old.rows, [fact(1, "complained")]).counts.complained).toBe(0)
  const late = mergeUpdates([], [fact(1, "complained", { at: NOW + 3_600_000 })])
  expect(late.counts).toEqual({ added: 0, settled: 0, bounced: 0, complained: 0 })
})

test("email, event and activity say the same in their own words", () => {
  const id = idAt(NOW)
  const at = new Date(NOW).toISOString()
  const of_email = updateOfEmail({
    ...email({ id, created_at: at }),
    sent_at: null,
    delivered_at: null,
  } as never)
  const data = { message_id: id, recipient_email: "ann@mailbox.test", subject: "Hi", tags: ["a"] }
  const envelope = { id: "evt_1", api_version: "1", created_at: at }
  const of_event = updateOfEvent({ ...envelope, type: "email.delivered", data })
  const told = { id, channel: "email", status: "delivered", status_reason: null, event_type: null }
  const recipient = "ann@mailbox.test"
  const of_activity = updateOfActivity({ ...told, recipient, next_attempt_at: null, at })
  for (const one of [of_email, of_event, of_activity]) {
    expect(one).toMatchObject({ id, at: NOW, to: "ann@mailbox.test", status: "delivered" })
  }
  expect(of_event).toMatchObject({ subject: "Hi", tags: ["a"] })
  const template = { id: "019a", name: "receipt\u001b[2J", version: 2 }
  const rendered = updateOfEmail({ ...email({ id, created_at: at }), template } as never)
  expect(rendered.template).toEqual(["receipt", "019a"])
  const known = mergeUpdates([], [rendered]).rows
  expect(mergeUpdates(known, [{ ...of_activity, at: NOW + 1 }]).rows[0]?.template).toEqual(
    rendered.template,
  )
  const opened = updateOfEvent({ ...envelope, type: "email.opened", data })
  expect(opened?.status).toBeUndefined()
  for (const type of ["email.received", "webhook.test"]) {
    expect(updateOfEvent({ ...envelope, type, data })).toBeUndefined()
  }
})

test("a message that waits for its time shows when it is due, until it has an event", () => {
  const scheduled_at = new Date(NOW + 9 * 86_400_000).toISOString()
  const queued = { id: idAt(NOW), created_at: new Date(NOW).toISOString(), status: "queued" }
  const shown = (more: object) => {
    const one = email({ ...queued, scheduled_at, last_event: null, ...more })
    const facts = [updateOfEmail(one as never)]
    const { state } = applyNews(monitorWith(0, 120, 30), { is: "facts", facts })
    return bodyLines({ ...state, now: NOW }, painter(false), false).join("\n")
  }
  expect(shown({})).toContain("in 9 d")
  expect(shown({ last_event: { type: "email.queued", timestamp: scheduled_at } })).not.toContain(
    "in 9",
  )
  expect(shown({ scheduled_at: null })).not.toContain("in 9")
})

test("a message that arrives while the monitor runs is known to be scheduled", () => {
  const next_attempt_at = new Date(NOW + 9 * 86_400_000).toISOString()
  const at = new Date(NOW).toISOString()
  const arrived = { id: idAt(NOW), channel: "email", recipient: "a@x.test", event_type: null, at }
  const told = (more: object) =>
    updateOfActivity({
      ...{ ...arrived, status: "queued", status_reason: null, next_attempt_at, ...more },
    }).scheduled_at
  expect(told({})).toBe(NOW + 9 * 86_400_000)
  expect(told({ next_attempt_at: null })).toBeUndefined()
  expect(told({ status_reason: "The relay refused it." })).toBeUndefined()
})

test("a message that waits since a restore is shown as held, until it moves or nothing is held", () => {
  const id = idAt(NOW)
  const status_reason = "It waits until an operator resumes or drops held_after_restore."
  const waits = { status: "queued", status_reason, attempts: 0 }
  const mail = email({ id, created_at: new Date(NOW).toISOString(), ...waits })
  const held = applyNews(monitorWith(0, 120, 30), {
    is: "facts",
    facts: [updateOfEmail(mail as never)],
  }).state
  const shown = (state: State) => bodyLines(state, painter(false), false).join("\n")
  expect(shown(held)).toMatch(/ held +0 /)
  const moved = (status: string) =>
    applyNews(held, { is: "facts", facts: [{ id, at: NOW + 1, status }] }).state
  expect(shown(moved("queued"))).toMatch(/ held +0 /)
  expect(shown(moved("sending"))).toMatch(/ sending +1 /)
  const late = mergeUpdates(moved("sent").messages.rows, [updateOfEmail(mail as never)])
  expect(isHeld(late.rows[0]?.status_reason)).toBe(false)
  const read = { is: "page", screen: "box" } as const
  const box = { checks: [], backups: [] }
  const queue = { queue: "held_after_restore", depth: 1, oldest_seconds: 1, running: 0 }
  const some = { ...box, held: { ...queue, failed_24h: 0, paused: true } }
  expect(shown(applyNews(held, { ...read, found: some }).state)).toMatch(/ held +0 /)
  expect(shown(applyNews(held, { ...read, found: { ...box, held: null } }).state)).toMatch(
    / queued +0 /,
  )
})

test("nothing in a row can command a terminal, nor fill the memory", () => {
  const data = {
    message_id: idAt(NOW),
    recipient_email: "a\u001b[2Jb@c.test",
    subject: `\u001b]0;owned\u0007${"x".repeat(5000)}\u009b31m\n\u202e`,
  }
  const told = updateOfEvent({
    id: "e",
    type: "email.queued",
    api_version: "1",
    created_at: "",
    data,
  })
  expect(told?.to).toBe("ab@c.test")
  expect(told?.subject).toMatch(/^x{100,300}$/)
})
