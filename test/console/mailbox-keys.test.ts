import { expect, test } from "bun:test"
import { press } from "../../cli/tui/press"
import { everywhere, keysOf } from "../../cli/tui/screens"
import { actionOf, MAILBOX_KEYS } from "../../src/console/mail/mailbox-keys"
import { monitorWith } from "../cli/tui/rows"

test("a key has one meaning in each place", () => {
  for (const place of ["list", "mail"] as const) {
    const keys = MAILBOX_KEYS.filter((row) => [place, "both"].includes(row.place))
    const all = keys.flatMap((row) => row.keys)
    expect(all).toEqual([...new Set(all)])
  }
})

test("arrows move in the list, and choose a tab in a mail", () => {
  expect([actionOf("j", "list"), actionOf("ArrowDown", "list")]).toEqual(["down", "down"])
  expect(actionOf("ArrowRight", "mail")).toBe("next_tab")
  expect([actionOf("ArrowRight", "list"), actionOf("j", "mail")]).toEqual([undefined, undefined])
  expect(actionOf(" ", "list")).toBe("pause")
})

test("the keys of the monitor's messages do the same here", () => {
  const list = monitorWith(1)
  const lists = [keysOf(list), keysOf(press(list, "<enter>").state)]
  const named = [...lists.flat(), ...everywhere].flatMap(({ key }) => key.split(" "))
  for (const key of ["⏎", "/", "Space", "f", "r", "y", "Esc", "n", "p", "?"]) {
    expect(named).toContain(key)
    const ours = { "⏎": "Enter", Esc: "Escape", Space: " " }[key] ?? key
    expect([key, actionOf(ours, "list") ?? actionOf(ours, "mail")]).not.toContain(undefined)
  }
})
