import { expect, test } from "bun:test"
import { createElement } from "react"
import { widthOf } from "../../../cli/lib/cells"
import { painter } from "../../../cli/lib/terminal"
import { infoLine, tabLine } from "../../../cli/tui/frame"
import { withList } from "../../../cli/tui/lists"
import { screenLines as linesOf, Monitor } from "../../../cli/tui/monitor"
import { press } from "../../../cli/tui/press"
import type { State } from "../../../cli/tui/state"
import { applyNews, openStore } from "../../../cli/tui/store"
import {
  boxFacts,
  endpoint,
  fact,
  inboundMail,
  monitorWith,
  publishRow,
  topicRow,
  troubled,
} from "./rows"

const after = (state: State, ...keys: string[]) =>
  keys.reduce((now, key) => press(now, key).state, state)

/** On the screen of webhooks, with one that is off, holds much, and has a long address. */
function withEndpoint(state: State): State {
  const off = { status: "disabled", disabled_reason: "paused", held_count: 1_234_567 } as const
  const url = `https://例え.test/${"hook/".repeat(30)}`
  const endpoints = [endpoint("a", { url, ...off })]
  return applyNews(after(state, "2"), { is: "rows", list: "endpoints", rows: endpoints }).state
}

const HARD = inboundMail("m1", {
  from: { email: "ビジネス@例え.test", name: "漢字 🎉" },
  subject: "👩‍👩‍👧 é \u001b[2J",
  verified: false,
  spam: { score: 9.9, flagged: true, rules: [{ rule: "too_much", points: 9.9 }] },
  report: { recipients: [{ email: "例え@x.test", diagnostic: "550 連接 ".repeat(40) }] },
})

/** On the screen of received mail, with some that is hard to measure. */
const withMail = (state: State): State =>
  applyNews(after(state, "4"), { is: "rows", list: "inbound", rows: [HARD, inboundMail("m2")] })
    .state

/** On the screen of the audience, with a name that is hard to measure and a publish that runs. */
function withAudience(state: State): State {
  const topics = [
    topicRow("news", { name: "漢字 🎉 👩‍👩‍👧 é", subscriber_count: 1_234_567 }),
    topicRow("b"),
  ]
  const known = applyNews(after(state, "6"), {
    ...{ is: "rows", list: "topics" },
    rows: topics,
    more: false,
  }).state
  const running = publishRow("p1", { status: "fanning_out", completed_at: null })
  const publishes = [running, publishRow("p2", { status: "failed", status_reason: "expired" })]
  return applyNews(known, { is: "rows", list: "publishes", of: "news", rows: publishes }).state
}

/** A monitor in every posture, with text that is hard to measure. */
function postures(columns: number, lines: number): State[] {
  const hard = { subject: "漢字 🎉 👩‍👩‍👧 receipt é", to: "ビジネス@例え.test" }
  const news = { is: "facts" as const, facts: [fact(200, "bounced", hard)] }
  const start = applyNews(monitorWith(100, columns, lines), news).state
  const empty = { by_state: [], by_domain: [] }
  const row = { queue: "email", state: "retrying", reason: "連接 refused" } as const
  const work = {
    ...row,
    count: 12_345,
    oldest_seconds: 90,
    next_attempt_at: null,
    lease_until: null,
  }
  const domain = { domain: "例え.test", waiting: 3, running: 1, paused_until: null, reason: null }
  const busy = { by_state: [work], by_domain: [domain] }
  return [
    start,
    monitorWith(0, columns, lines),
    after(start, "<enter>"),
    after(start, "?"),
    after(start, "/", "漢", "字"),
    after(start, "r"),
    after(start, "2"),
    after(withEndpoint(start), "?"),
    after(withEndpoint(start), "e"),
    applyNews(after(start, "3"), { is: "page", screen: "queue", found: empty }).state,
    applyNews(after(start, "3"), { is: "page", screen: "queue", found: busy }).state,
    after(start, "4"),
    after(start, "5"),
    applyNews(after(start, "5"), { is: "page", screen: "reputation", found: troubled() }).state,
    after(start, "6"),
    withAudience(start),
    after(start, "7"),
    applyNews(after(start, "7"), { is: "page", screen: "box", found: boxFacts() }).state,
    after(withAudience(start), "<tab>", "c"),
    after(withAudience(start), "?"),
    after(withMail(start), "?"),
    withMail(start),
    after(withMail(start), "<enter>"),
    applyNews(after(withMail(start), "<enter>"), {
      ...{ is: "detail", screen: "inbound", id: HARD.id, tab: "Timeline", found: HARD },
    }).state,
    after(withMail(start), "R"),
  ]
}

test("every line of every screen is as wide as the terminal, at every size", () => {
  for (const [columns, lines] of [
    [60, 12],
    [80, 24],
    [99, 30],
    [121, 33],
    [160, 48],
    [240, 70],
  ]) {
    for (const state of postures(columns ?? 0, lines ?? 0)) {
      const drawn = linesOf(state, false)
      expect(drawn).toHaveLength(lines ?? 0)
      const wrong = drawn.filter((line) => widthOf(line) !== columns)
      expect([columns, wrong]).toEqual([columns, []])
    }
  }
})

test("without colour there is no escape at all, and with it the words are the same", () => {
  for (const state of postures(100, 30)) {
    const plain = linesOf(state, false)
    expect(plain.join("")).not.toContain("\u001b")
    const painted = linesOf(state, true)
    expect(painted.join("")).toContain("\u001b[")
    expect(painted.map(Bun.stripANSI)).toEqual(plain)
  }
})

test("the chosen row is marked, and its end is told by a word and a mark", () => {
  const state = applyNews(monitorWith(3), { is: "facts", facts: [fact(9, "bounced")] }).state
  const row = linesOf(state, false).find((line) => line.includes("▸"))
  expect(row).toContain("u9@mailbox.test")
  expect(row).toContain("bounced ✗")
})

test("the help is whole, also on a small terminal", () => {
  for (const keys of ["?", "2?", "3?"]) {
    const drawn = linesOf(after(monitorWith(3), ...keys), false).slice(2, -2)
    expect([keys, drawn.filter((line) => line.includes("…"))]).toEqual([keys, []])
    expect(drawn.join("\n")).toContain("quit, as Ctrl-C does")
  }
  for (const keys of [["?"], ["<tab>", "?"]]) {
    const drawn = linesOf(after(withEndpoint(monitorWith(3)), ...keys), false).join("\n")
    expect(drawn).toContain("disable it")
    expect(drawn).toContain("quit, as Ctrl-C does")
  }
})

test("however long what is asked about, the answers are seen", () => {
  const state = after(withEndpoint(monitorWith(3)), "e")
  const asked = infoLine(state, painter(false)).trimEnd()
  expect(asked).toEndWith("…  y send them / o only enable / n")
  expect(asked).toStartWith("Enable it and send 1,234,567 held events?")
})

test("what the status line tells fits, the most important first", () => {
  const of = { sending: { status: "throttled", reason: "bounce_rate=6.1%" } }
  const sending = { is: "known" as const, of }
  const state = applyNews(monitorWith(5, 60, 12), sending).state
  const [line = ""] = linesOf(state, false)
  expect(line).toStartWith("┌ belfry · acme/prod ─ throttled (bounce_rate=6.1%) ")
  expect(linesOf(applyNews({ ...state, columns: 160 }, sending).state, false)[0]).toContain("msg/s")
})

test("ten thousand rows cost no more to draw than thirty", () => {
  const state = after(monitorWith(10_000), "G")
  let looked = 0
  const counting = new Proxy(state.lists.messages.rows ?? [], {
    get(rows, name, self) {
      if (typeof name === "string" && /^\d+$/.test(name)) looked += 1
      return Reflect.get(rows, name, self)
    },
  })
  const drawn = linesOf(withList(state, "messages", { rows: counting }), false)
  expect(drawn.join("")).toContain("Number 0 ")
  expect(looked).toBeLessThan(40)
})

test("it is drawn, keys reach it through ink, and news wait for the next frame", async () => {
  const { render } = await import("ink-testing-library")
  const store = openStore(monitorWith(3, 100, 24), () => {})
  let drawn = ""
  const draw = (lines: readonly string[]) => {
    drawn = lines.join("\n")
  }
  const monitor = createElement(Monitor, { store, colour: false, draw })
  const { stdin, unmount } = render(monitor)
  const seen = async (text: string) => {
    for (let n = 0; n < 2_000 && !drawn.includes(text); n++) await Bun.sleep(10)
    expect(drawn).toContain(text)
  }
  try {
    await seen("Number 2")
    stdin.write("2")
    await seen("[2Webhooks]")
    stdin.write("1")
    stdin.write("/")
    stdin.write("Number 1\r")
    await seen("filter: Number 1")
  } finally {
    unmount()
    store.close()
  }
})

test("eighty columns show the names of all screens and every state of the link in whole words", () => {
  const words = {
    connecting: "○ opening",
    live: "● live",
    polling: "● polling",
    lost: "○ retrying",
  } as const
  const names = ["Messages", "Hooks", "Queue", "Inbound", "Reput", "Audience", "Box", "Users"]
  for (const [at, name] of names.entries()) {
    for (const [link, word] of Object.entries(words)) {
      const state = {
        ...after(monitorWith(0, 80, 24), `${at + 1}`),
        link: link as keyof typeof words,
      }
      const line = tabLine(state, painter(false))
      expect(widthOf(line)).toBe(76)
      expect(line).toEndWith(` ${word}`)
      expect(line).toContain(`[${at + 1}${name}]`)
      for (const [place, other] of names.entries()) expect(line).toContain(`${place + 1}${other}`)
    }
  }
})
