import { detailOf, focusedList, rowsOf } from "./lists"
import { type Key, type Press, type State, step } from "./state"

export const key = (name: string, short: string, long: string): Key => ({ key: name, short, long })

/** A key that does something of its own, and the command behind `:` that does the same. */
export const action = (key: string, word: string, long: string, press: Press): Key => {
  return { key, short: word, long, word, press }
}

export const moving = key(
  "↑↓",
  "move",
  "move by a row: ↑↓ or j k; by a page: PgUp PgDn; g first, G last",
)
export const scrolling = key("↑↓", "scroll", "scroll the text")
export const back = (where: string) => key("Esc", "back", `go back to ${where}`)
export const neighbours = (what: string): Key[] => [
  key("n", "next", `open the next ${what}`),
  key("p", "previous", `open the previous ${what}`),
]

/** A key that works without being told. */
export const untold = (one: Key): Key => ({ ...one, short: "", long: "" })

/** Copies what tells the chosen row or the opened record apart. */
export const copy = (textOf: (state: State) => string | undefined = chosenId): Key => ({
  ...action("y", "copy", "copy the id to the clipboard of this terminal", (state) => {
    const text = textOf(state)
    return text === undefined ? step(state) : step(state, { do: "copy", text })
  }),
  short: "copy id",
})

function chosenId(state: State): string | undefined {
  const name = focusedList(state)
  const { selected = null } = name ? state.lists[name].position : {}
  return detailOf(state)?.id ?? (name && rowsOf(state, name).find(({ id }) => id === selected)?.id)
}

/** The keys of `press` that a key table names otherwise. */
const PRESSED: Partial<Record<string, string>> = {
  "⏎": "<enter>",
  Esc: "<escape>",
  Space: " ",
  Tab: "<tab>",
}

/** The key with this name that does something of its own. */
export const ownKey = (keys: readonly Key[], pressed: string): Key | undefined =>
  keys.find((one) => one.press !== undefined && (PRESSED[one.key] ?? one.key) === pressed)

/** Keys that ink names, as `press` knows them. */
const NAMED_KEYS = {
  ...{ upArrow: "<up>", downArrow: "<down>", leftArrow: "<left>", rightArrow: "<right>" },
  ...{ pageUp: "<pageup>", pageDown: "<pagedown>", home: "<home>", end: "<end>" },
  ...{ return: "<enter>", escape: "<escape>", tab: "<tab>" },
  ...{ backspace: "<backspace>", delete: "<delete>" },
}

type InkKey = Partial<Record<keyof typeof NAMED_KEYS | "ctrl" | "meta", boolean>>

const controls: Partial<Record<string, string>> = {
  "\r": "<enter>",
  "\n": "<enter>",
  "\t": "<tab>",
  "\u001b": "<escape>",
  "\u007f": "<backspace>",
  "\b": "<backspace>",
  "\u0003": "<ctrl-c>",
  "\u000c": "<ctrl-l>",
  "\u0015": "<ctrl-u>",
  "\u0017": "<ctrl-w>",
}

/**
 * The keys of one piece of input, by the names that `press` knows. Fast typing, or a paste,
 * arrives as several characters at once; those that are no text and no key are left out.
 */
export function keysFrom(input: string, key: InkKey): string[] {
  // Esc pressed twice, which a busy machine or a slow line hands over together.
  if (key.escape && key.meta) return ["<escape>", "<escape>"]
  const name = Object.entries(NAMED_KEYS).find(([flag]) => key[flag as keyof InkKey])?.[1]
  if (name) return [name]
  if (key.ctrl) return [`<ctrl-${input}>`]
  if (key.meta) return [...input].length === 1 ? [`<alt-${input}>`] : []
  return [...input].flatMap((one) => controls[one] ?? (/\p{Cc}/u.test(one) ? [] : [one]))
}
