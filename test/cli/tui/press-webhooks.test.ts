import { expect, test } from "bun:test"
import { painter } from "../../../cli/lib/terminal"
import { bodyLines, infoLine, keyLine } from "../../../cli/tui/frame"
import { press } from "../../../cli/tui/press"
import type { Intent, State } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import type { Components } from "../../../src/client/components"
import { endpoint, monitorWith, readOf } from "./rows"

type Webhook = Components["Webhook"]
type Delivery = Components["Delivery"]

const ONE = "POST /v1/webhooks/{webhook_id}"

/** The chosen endpoint. */
const A = { webhook_id: "a" }

const PROBLEM = { is: "problem", screen: "webhooks" } as const

const delivery = (id: string, webhook_id: string): Delivery => ({
  id,
  webhook_id,
  msg_id: id,
  event_id: `evt_${id}`,
  event_type: "email.sent",
  status: "failed",
  attempts: 1,
  max_attempts: 6,
  next_attempt_at: null,
  last_response_status: 500,
  last_error: "http_status",
  latency_ms: 12,
  trigger: "event",
  first_attempted_at: null,
  last_attempted_at: null,
  completed_at: null,
  created_at: "2026-11-21T12:00:00.000Z",
})

/** The webhooks screen with endpoints a and b, and two deliveries of a. */
function screen(): State {
  const on = press(monitorWith(0), "2").state
  const endpoints = [endpoint("a"), endpoint("b")]
  const there = applyNews(on, { is: "rows", list: "endpoints", rows: endpoints })
  expect(there.intents).toEqual([{ do: "load_list", list: "deliveries", of: "a" }])
  const deliveries = [delivery("d2", "a"), delivery("d1", "a")]
  return applyNews(there.state, { is: "rows", list: "deliveries", of: "a", rows: deliveries }).state
}

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

test("another endpoint brings its own deliveries, and late ones of the other are not taken", () => {
  const { state, intents } = pressed(screen(), "j")
  expect(intents).toEqual([{ do: "load_list", list: "deliveries", of: "b" }])
  const late = {
    is: "rows" as const,
    list: "deliveries" as const,
    of: "a",
    rows: [delivery("d3", "a")],
  }
  expect(applyNews(state, late).state.lists.deliveries.rows).toBeNull()
})

test("the chosen endpoint stays chosen when others are made before it", () => {
  const { state } = pressed(screen(), "j")
  const endpoints = [endpoint("c"), endpoint("a"), endpoint("b")]
  expect(
    applyNews(state, { is: "rows", list: "endpoints", rows: endpoints }).state.lists.endpoints
      .position.selected,
  ).toBe("b")
})

test("deliveries show the end of their event's id, which tells them apart", () => {
  const [first, second] = ["11112222", "33334444"].map((end) => ({
    ...delivery("x", "a"),
    event_id: `evt_0199a1c2-0000-7000-8000-0000${end}`,
  }))
  const deliveries = [first as Delivery, second as Delivery]
  const { state } = applyNews(screen(), {
    is: "rows",
    list: "deliveries",
    of: "a",
    rows: deliveries,
  })
  for (const columns of [104, 142]) {
    const text = bodyLines({ ...state, columns }, painter(false), false).join("\n")
    expect(text).toMatch(/11112222 +email\.sent .*\n.*33334444 +email\.sent /)
    expect(text).not.toContain("evt_")
  }
})

test("a delivery is opened from below, and Esc goes back step by step", () => {
  const opened = pressed(screen(), "<enter>", "j", "<enter>")
  expect(opened.intents).toEqual([readOf("webhooks", "d1", "a")])
  const back = pressed(opened.state, "<escape>").state
  expect([back.details.webhooks, back.lower.webhooks]).toEqual([undefined, true])
  expect(pressed(opened.state, "<escape>", "<escape>").state.lower.webhooks).toBe(false)
})

test("a retry needs a delivery, and a yes", () => {
  expect(pressed(screen(), "r").state.question).toBeNull()
  const asked = pressed(screen(), "<tab>", "r")
  expect([asked.state.question?.text, asked.intents]).toEqual([
    "Attempt the delivery of email.sent again?",
    [],
  ])
  expect(pressed(asked.state, "y").intents).toMatchObject([
    {
      name: `${ONE}/deliveries/{delivery_id}/retry`,
      input: { params: { webhook_id: "a", delivery_id: "d2" } },
    },
  ])
})

test("a replay asks since when, then whether", () => {
  const asked = pressed(screen(), "R", "<enter>")
  expect(asked.state.question?.text).toBe("Send held events since 1h to https://a.test/hook again?")
  expect(pressed(asked.state, "y").intents).toMatchObject([
    { name: `${ONE}/replay`, input: { params: A, body: { status: "held" } } },
  ])
  const [other] = pressed(screen(), "R", "<ctrl-u>", ..."2d all", "<enter>", "y").intents
  const body =
    other?.do === "change" ? (other.input.body as { since: string; status: string }) : null
  expect(body?.status).toBe("all")
  const days = (Date.now() - Date.parse(body?.since ?? "")) / 86_400_000
  expect(days).toBeCloseTo(2, 2)
  const wrong = pressed(screen(), "R", "<ctrl-u>", ..."soon", "<enter>").state
  expect(wrong.prompt?.problem).toContain("not a time")
  const odd = pressed(screen(), "R", "<ctrl-u>", ..."1h some", "<enter>").state
  expect(odd.prompt?.problem).toContain("held, failed, all")
})

test("a test goes to the chosen endpoint at once", () => {
  expect(pressed(screen(), "t").intents).toMatchObject([
    { name: `${ONE}/test`, input: { params: A } },
  ])
})

test("what is held goes out or waits, as whoever enables it says", () => {
  const off = { status: "disabled", disabled_reason: "paused", held_count: 1204 } as const
  const on = (more: Partial<Webhook>) =>
    applyNews(screen(), { is: "rows", list: "endpoints", rows: [endpoint("a", more)] }).state
  const asked = pressed(on(off), "e")
  expect(asked.state.question?.text).toBe(
    "Enable it and send 1,204 held events? https://a.test/hook",
  )
  expect(infoLine(asked.state, painter(false))).toContain("  y send them / o only enable / n")
  const enabling = (replay: string) => [
    { name: `${ONE}/enable`, input: { params: A, body: { replay } } },
  ]
  expect(pressed(asked.state, "y").intents).toMatchObject(enabling("held"))
  expect(pressed(asked.state, "o").intents).toMatchObject(enabling("none"))
  for (const key of ["n", "<enter>", "<escape>", "e"]) {
    expect(pressed(asked.state, key).intents).toEqual([])
  }
  const empty = pressed(on({ ...off, held_count: 0 }), "e", "y")
  expect(empty.intents).toMatchObject(enabling("none"))
})

test("pausing and disabling ask first, and what is so already is said", () => {
  expect(pressed(screen(), "p").state.question?.text).toStartWith("Pause it, and hold its events")
  expect(pressed(screen(), "p", "y").intents).toMatchObject([
    { name: `${ONE}/pause`, input: { params: A } },
  ])
  expect(pressed(screen(), "d", "y").intents).toMatchObject([
    { name: `${ONE}/disable`, input: { params: A } },
  ])
  const active = pressed(screen(), "e").state
  expect([active.question, active.notice?.text]).toEqual([
    null,
    "the endpoint is active: p pauses it, d disables it",
  ])
  const endpoints = [endpoint("a", { status: "disabled", disabled_reason: "gone" })]
  const off = applyNews(screen(), { is: "rows", list: "endpoints", rows: endpoints }).state
  expect(pressed(off, "p").state.notice?.text).toBe("the endpoint is off: e enables it")
})

test("commands switch an endpoint also where its delivery is opened", () => {
  const opened = pressed(screen(), "<enter>", "<enter>").state
  expect(pressed(opened, ":", ..."pause", "<enter>", "y").intents).toMatchObject([
    { name: `${ONE}/pause`, input: { params: A } },
  ])
  const elsewhere = pressed(screen(), "1", ":", ..."enable", "<enter>").state
  expect(elsewhere.prompt?.problem).toBe("enable works in webhooks: open it first")
})

test("the line of keys names what may be done with the endpoint now", () => {
  const line = (state: State) => keyLine(state, painter(false))
  expect(line(screen())).toContain("p pause")
  const endpoints = [endpoint("a", { status: "disabled", disabled_reason: "manual" })]
  const off = applyNews(screen(), { is: "rows", list: "endpoints", rows: endpoints }).state
  expect(line(off)).toContain("e enable")
  expect(line(off)).not.toContain("pause")
})

test("the line of keys names none that does nothing before an endpoint is there", () => {
  const opened = press(monitorWith(0), "2").state
  const none = applyNews(opened, { is: "rows", list: "endpoints", rows: [] }).state
  for (const state of [opened, none]) {
    const keys = keyLine(state, painter(false)).replace(/[└┘─]/g, "").trim()
    expect(keys).toBe("? help  q quit")
    expect(press(state, "p").state.question).toBeNull()
  }
})

test("a key that may only read is told so once, and is offered no change any more", () => {
  const why = "this needs a key with the scope webhooks:write"
  const refused = applyNews(screen(), { is: "read_only", why }).state
  expect(refused.notice?.text).toBe(why)
  for (const key of ["t", "R", "r", "e", "p", "d"]) {
    const { state, intents } = pressed(refused, key)
    expect([state.question, state.prompt, state.notice?.text, intents]).toEqual([
      null,
      null,
      why,
      [],
    ])
  }
  expect(keyLine(refused, painter(false))).toMatch(
    /^└ ↑↓ move {2}Tab deliveries {2}y copy id {2}\?/,
  )
  expect(pressed(refused, "y").intents).toEqual([{ do: "copy", text: "a" }])
})

test("a problem is said where the list would stand, and the list stays when it comes later", () => {
  const on = press(monitorWith(0), "2").state
  const refused = applyNews(on, { ...PROBLEM, problem: "this needs a key" }).state
  expect(refused.lists.endpoints.rows).toBeNull()
  expect(bodyLines(refused, painter(false), false).join("\n")).toContain("this needs a key")
  const later = applyNews(screen(), { ...PROBLEM, problem: "gone" }).state
  expect(later.lists.endpoints.rows).toHaveLength(2)
})
