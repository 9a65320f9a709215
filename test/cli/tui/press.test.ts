import { expect, test } from "bun:test"
import { keysFrom } from "../../../cli/tui/keys"
import { press } from "../../../cli/tui/press"
import { command_words, everywhere } from "../../../cli/tui/screens"
import type { Intent, State } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import { fact, idAt, monitorWith, NOW, readOf } from "./rows"

/** Presses keys one after the other; gives where that leads and everything that was asked for. */
function pressed(state: State, ...keys: string[]): { state: State; intents: Intent[] } {
  let now = state
  const intents: Intent[] = []
  for (const key of keys) {
    const step = press(now, key)
    now = step.state
    intents.push(...step.intents)
  }
  return { state: now, intents }
}

const typed = (text: string) => [...text]
const rowsOf = ({ lists }: State) => lists.messages.rows ?? []
const shownOf = (state: State) => rowsOf(state).map(({ subject }) => subject)

test("number keys are the screens that exist, and the others do nothing", () => {
  const start = monitorWith(1)
  expect(pressed(start, "2").state.screen).toBe("webhooks")
  expect(pressed(start, "2").intents).toEqual([{ do: "load_list", list: "endpoints" }])
  expect(pressed(start, "3").state.screen).toBe("queue")
  expect(pressed(start, "3", "1").state.screen).toBe("messages")
  expect(pressed(start, "4").state.screen).toBe("inbound")
  expect(pressed(start, "4").intents).toEqual([{ do: "load_list", list: "inbound" }])
  expect(pressed(start, "5").state.screen).toBe("reputation")
  expect(pressed(start, "5").intents).toEqual([{ do: "load_page", screen: "reputation" }])
  expect(pressed(start, "6").state.screen).toBe("audience")
  expect(pressed(start, "6").intents).toEqual([{ do: "load_list", list: "topics" }])
  expect(pressed(start, "7").state.screen).toBe("box")
  expect(pressed(start, "7").intents).toEqual([{ do: "load_page", screen: "box" }])
  expect(pressed(start, "8").state.screen).toBe("users")
  expect(pressed(start, "8").intents).toEqual([{ do: "load_list", list: "users" }])
  for (const key of ["9", "0"]) expect(pressed(start, key).state).toEqual(start)
})

test("q ends it, and so does Ctrl-C, also from within a prompt", () => {
  expect(pressed(monitorWith(1), "q").intents).toEqual([{ do: "quit" }])
  expect(pressed(monitorWith(1), "/", "<ctrl-c>").intents).toEqual([{ do: "quit" }])
  expect(pressed(monitorWith(1), "/", "q").intents).toEqual([])
})

test("Esc and a key right behind it are two keys, which a terminal cannot tell from one with Alt", () => {
  expect(keysFrom("q", { meta: true })).toEqual(["<alt-q>"])
  expect(keysFrom("", { escape: true })).toEqual(["<escape>"])
  expect(keysFrom("", { escape: true, meta: true })).toEqual(["<escape>", "<escape>"])
  expect(keysFrom("", { meta: true })).toEqual([])
  const opened = pressed(monitorWith(3), "<enter>").state
  const { state, intents } = pressed(opened, "<alt-q>")
  expect([state.details.messages, intents]).toEqual([undefined, [{ do: "quit" }]])
  const typing = pressed(monitorWith(3), "/", "a").state
  expect(pressed(typing, "<alt-b>").state.prompt?.text).toBe("a")
})

test("a filter is typed, mended, applied and taken away", () => {
  const start = monitorWith(20)
  const wrong = pressed(start, "/", ..."subject:*12x", "<enter>")
  expect(rowsOf(wrong.state)).toEqual([])
  const right = pressed(wrong.state, "/", "<backspace>", "<enter>")
  expect(shownOf(right.state)).toEqual(["Number 12"])
  expect(right.intents.map((intent) => intent.do)).toEqual(["load_older"])
  expect(rowsOf(pressed(right.state, "<escape>").state)).toHaveLength(20)
})

test("a filter that cannot be understood stays in the prompt with its problem", () => {
  const { state, intents } = pressed(monitorWith(3), "/", ...typed("status:lost"), "<enter>")
  expect(state.prompt?.problem).toContain("there is no status lost")
  expect([rowsOf(state).length, intents]).toEqual([3, []])
  expect(pressed(state, "<escape>").state.prompt).toBeNull()
})

test("Esc leaves a prompt with everything as it was", () => {
  const { state } = pressed(monitorWith(3), "/", ...typed("bob"), "<escape>")
  expect([state.prompt, state.messages.filter.text]).toEqual([null, ""])
})

test("a filter acts while it is typed, by part of the text, and Esc brings the one before back", () => {
  const start = monitorWith(20)
  const half = pressed(start, "/", ..."mber 12")
  expect(half.intents).toEqual([])
  expect(shownOf(half.state)).toEqual(["Number 12"])
  const less = pressed(half.state, "<backspace>", "<backspace>", "<backspace>")
  expect(shownOf(less.state)).toHaveLength(20)
  const named = pressed(start, "/", ..."subject:er status:")
  expect(shownOf(named.state)).toHaveLength(20) // of a half typed word nothing is asked
  expect(shownOf(pressed(half.state, "<escape>").state)).toHaveLength(20)
})

test("a paused list stands still while a filter is typed", () => {
  const paused = pressed(monitorWith(20), " ", "/", ..."12").state
  expect(shownOf(paused)).toHaveLength(20)
  expect(shownOf(pressed(paused, "<enter>").state)).toEqual(["Number 12"])
})

test("Ctrl-L draws again, wherever the reader is", () => {
  for (const keys of [[], ["/", "a"], ["<enter>"], ["?"], ["2"]]) {
    const { state } = pressed(monitorWith(3), ...keys)
    const again = pressed(state, "<ctrl-l>")
    expect(again.intents).toEqual([{ do: "redraw" }])
    expect(again.state).toBe(state)
  }
})

test("paused, the list stands still and counts what came; then it goes on", () => {
  const paused = pressed(monitorWith(3), " ").state
  const news = { is: "facts" as const, facts: [fact(10, "queued"), fact(11, "queued")] }
  const later = applyNews(paused, news).state
  expect(shownOf(later)).toEqual(shownOf(paused))
  expect(later.messages.unseen).toBe(2)
  const going = pressed(later, " ").state
  expect(shownOf(going).slice(0, 2)).toEqual(["Number 11", "Number 10"])
  expect(going.messages.unseen).toBe(0)
})

test("who moves does not follow any more, and f follows again", () => {
  const moved = pressed(monitorWith(30), "j", "j").state
  expect([moved.lists.messages.position.selected, moved.lists.messages.position.follows]).toEqual([
    idAt(NOW + 27, 27),
    false,
  ])
  const later = applyNews(moved, { is: "facts", facts: [fact(50, "queued")] }).state
  expect(later.lists.messages.position.selected).toBe(idAt(NOW + 27, 27))
  const { position } = pressed(later, "f").state.lists.messages
  expect([position.selected, position.follows, position.top]).toEqual([idAt(NOW + 50, 50), true, 0])
})

test("near the end of the list older messages are asked for, once", () => {
  const some = { is: "older" as const, facts: [], more: true, filter: "" }
  const start = applyNews(monitorWith(100), some).state
  expect(pressed(start, "j").intents).toEqual([])
  const { state, intents } = pressed(start, "G", "k", "j")
  expect(intents.map((intent) => intent.do)).toEqual(["load_older"])
  expect(state.messages.older).toBe("loading")
})

test("a message is opened, its tabs are walked in a circle, and Esc goes back", () => {
  const opened = pressed(monitorWith(3), "<enter>")
  expect(opened.intents).toEqual([readOf("messages", idAt(NOW + 2, 2))])
  const walked = pressed(opened.state, "<left>", "<right>", "<tab>", "l", "<right>", "<right>")
  expect(walked.state.details.messages?.tab).toBe("Events")
  expect(pressed(walked.state, "<escape>").state.details.messages).toBeUndefined()
  const { details, lists } = pressed(opened.state, "n").state
  expect([details.messages?.id, lists.messages.position.selected]).toEqual([
    idAt(NOW + 1, 1),
    idAt(NOW + 1, 1),
  ])
})

test("what happens to an opened message has it read again", () => {
  const { state } = pressed(monitorWith(3), "<enter>")
  const heard = (n: number) =>
    applyNews(state, { is: "facts", facts: [fact(n, "complained")] }).intents
  expect(heard(2)).toEqual([readOf("messages", idAt(NOW + 2, 2))])
  expect(heard(1)).toEqual([])
})

test("resending asks first, and only y is a yes", () => {
  const asked = pressed(monitorWith(1), "r")
  expect(asked.state.question?.text).toContain("u0@mailbox.test")
  expect(asked.intents).toEqual([])
  expect(pressed(asked.state, "<enter>").intents).toEqual([])
  expect(pressed(asked.state, "n", "y").intents).toEqual([{ do: "copy", text: idAt(NOW, 0) }])
  expect(pressed(asked.state, "y").intents).toMatchObject([
    { name: "POST /v1/emails/{email_id}/resend", input: { params: { email_id: idAt(NOW, 0) } } },
  ])
})

const dueIn = (hours: number): State => {
  const due = { scheduled_at: NOW + hours * 3_600_000 }
  const facts = [fact(0, "queued", due)]
  return applyNews(monitorWith(0), { is: "facts", facts }).state
}

test("a scheduled message is cancelled by :cancel, and resending it says that the first one stays", () => {
  const asked = pressed(dueIn(2), ":", ...typed("cancel"), "<enter>")
  expect(asked.state.question?.text).toContain("u0@mailbox.test? It will not be sent.")
  const { intents } = pressed(asked.state, "y")
  const input = { params: { email_id: idAt(NOW, 0) } }
  expect(intents).toMatchObject([{ name: "POST /v1/emails/{email_id}/cancel", input }])
  const again = pressed(dueIn(2), "r").state.question?.text
  expect(again).toMatch(
    /^It is due in 2 h. Send a copy to u0@mailbox.test now\? Only :cancel stops/,
  )
  expect(pressed(dueIn(-2), "r").state.question?.text).toContain("again, with its copies?")
})

test("what was sent cannot be cancelled, and the monitor says so", () => {
  const { state, intents } = pressed(monitorWith(1), "c")
  expect([state.question, intents]).toEqual([null, []])
  expect(state.notice?.text).toBe("only a queued message can be cancelled; this one is delivered")
})

test("keys that mean one message mean nothing where there is none", () => {
  for (const key of ["r", "y", "<enter>", "j", "G"]) {
    expect(pressed(monitorWith(0), key).intents).toEqual([])
  }
})

test("commands do what their keys do, and unknown ones are told", () => {
  const start = monitorWith(3)
  expect(pressed(start, ":", ...typed("queue"), "<enter>").state.screen).toBe("queue")
  expect(pressed(start, ":", ...typed("pause"), "<enter>").state.messages.paused).toBe(true)
  const filtered = pressed(start, ":", ...typed("filter Number 1"), "<enter>").state
  expect(filtered.messages.filter.text).toBe("Number 1")
  expect(rowsOf(pressed(filtered, ":", ...typed("clear"), "<enter>").state)).toHaveLength(3)
  expect(pressed(start, ":", ...typed("q"), "<enter>").intents).toEqual([{ do: "quit" }])
  expect(pressed(start, ":", ...typed("dance"), "<enter>").state.prompt?.problem).toContain("dance")
})

test("the help tells every command", () => {
  const [told = ""] = everywhere.flatMap(({ key, long }) => (key === ":" ? long : []))
  expect(command_words.filter((word) => !told.includes(word))).toEqual([])
})

test("whatever is pressed in whatever order, the state stays sound", () => {
  const keys = ["j", "k", "G", "g", " ", "f", "r", "y", "n", "p", "/", "a", ":", "<enter>", "?"]
  const more = [
    "<escape>",
    "<tab>",
    "<right>",
    "1",
    "2",
    "3",
    "R",
    "t",
    "<pagedown>",
    "<backspace>",
  ]
  const all = [...keys, ...more]
  let state = monitorWith(40)
  let seed = 7
  for (let n = 0; n < 5000; n++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    state = press(state, all[seed % all.length] ?? "j").state
    const { position } = state.lists.messages
    const shown = rowsOf(state)
    expect(position.top).toBeGreaterThanOrEqual(0)
    expect(position.top).toBeLessThanOrEqual(Math.max(0, shown.length - 1))
    if (position.selected !== null)
      expect(shown.some(({ id }) => id === position.selected)).toBe(true)
  }
})
