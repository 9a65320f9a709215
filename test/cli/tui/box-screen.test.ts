import { expect, test } from "bun:test"
import { widthOf } from "../../../cli/lib/cells"
import { dropCommand } from "../../../cli/tui/box-screen"
import { screenLines as linesOf } from "../../../cli/tui/monitor"
import { press } from "../../../cli/tui/press"
import { type BoxFacts, type State, whether } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import { boxFacts, monitorWith } from "./rows"

const open = (found: BoxFacts = boxFacts(), columns = 110, lines = 24) => {
  const screen = press(monitorWith(1, columns, lines), "7").state
  return applyNews(screen, { is: "page", screen: "box", found }).state
}

const drawn = (state: State) => linesOf(state, false).map((line) => line.replace(/^│ | +│$/g, ""))

const textOf = (state: State) => drawn(state).join("\n")

test("the box shows its checks with the forecast of the disk, held work and backups", () => {
  const opened = press(monitorWith(1), "7")
  expect(opened.intents).toEqual([{ do: "load_page", screen: "box" }])
  const text = textOf(open())
  expect(text).toContain("[7 Box]")
  expect(text).toMatch(/database +✓ ok/)
  expect(text).toMatch(/disk +! 900 MB free, .* enough for 9 days/)
  expect(text).toContain("Free space on the disk")
  expect(text).toMatch(/warning +! Invariant I4 is broken in 2 places/)
  expect(text).toMatch(/held +1,204 wait since a restore, the oldest for 3 h/)
  expect(text).toMatch(/AI +\$0\.0031 of \$20\.00 spent, \$0\.0044 expected for the month/)
  expect(text).toMatch(/draft_template +3 +25 +\$0\.0031/)
  expect(text).toMatch(/BACKUP +SIZE +CHECKED +AGE/)
  expect(text).toMatch(/70\.0 MB +✓ +\d+ \w+ {2,}lacks 2 files/)
  expect(text).toMatch(/12\.0 KB +✗/)
  expect(text).toMatch(/1 failed +2 warn +newest backup/)
})

test("held work is released or dropped after a question", () => {
  const asked = press(open(), "r")
  expect(asked.state.question?.text).toContain("1,204 held")
  expect(press(asked.state, "n").intents).toEqual([])
  expect(press(asked.state, "y").intents).toMatchObject([
    {
      name: "POST /v1/admin/queues/{queue}/resume",
      input: { params: { queue: "held_after_restore" } },
    },
  ])
  const { server } = boxFacts()
  if (!server) throw new Error("this box has no server")
  const wanted = press(open(), "D")
  expect(wanted.intents).toEqual([{ do: "ask_drop", server }])
  const question = whether("Drop 3 messages?", { do: "drop_held", server })
  const news = { is: "asked", screen: "box", question } as const
  const sure = applyNews(wanted.state, news).state
  expect(drawn(sure).join("\n")).toContain("Drop 3 messages?")
  expect(press(sure, "n").intents).toEqual([])
  expect(press(sure, "y").intents).toEqual([{ do: "drop_held", server }])
  expect(applyNews(press(wanted.state, "1").state, news).state.question).toBeNull()
  expect(dropCommand(server)).toBe(
    "belfry queue purge held_after_restore --data-dir '/srv/restored box'",
  )

  const none = open(boxFacts({ held: null }))
  expect(textOf(none)).toContain("nothing is held since a restore")
  expect(press(none, "r").state.notice?.text).toBe("nothing is held")
  expect(press(none, "D").intents).toEqual([])
})

test("a backup is made after a question", () => {
  const asked = press(open(), "b")
  expect(press(asked.state, "y").intents).toMatchObject([{ name: "POST /v1/admin/backups" }])
  expect(textOf(open(boxFacts({ backups: [] })))).toContain("no backup yet")
})

test("without the rights of an operator it shows the checks, and says how to see the rest", () => {
  const state = open(boxFacts({ backups: undefined, held: undefined }))
  const text = textOf(state)
  expect(text).toMatch(/database +✓ ok/)
  expect(text).not.toContain("BACKUP")
  expect(text).toContain("belfry login")
  expect(press(state, "b").state.notice?.text).toBe("only operators can make backups")
})

test("every line fits, also on a narrow terminal, and the screen scrolls to its end", () => {
  for (const columns of [60, 80, 160]) {
    for (const line of linesOf(open(boxFacts(), columns, 12), false)) {
      expect(widthOf(line)).toBe(columns)
    }
  }
  let state = open(boxFacts(), 80, 12)
  for (let n = 0; n < 50; n++) state = press(state, "j").state
  expect(textOf(state)).toContain("12.0 KB")
  for (let n = 0; n < 50; n++) state = press(state, "k").state
  expect(state.pages.box.top).toBe(0)
})
