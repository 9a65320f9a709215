import { withoutLast } from "../lib/cells"
import { openSubscriber, searchTopics } from "./audience-screen"
import { type MessageFilter, parseFilter } from "./filter"
import { detailLines } from "./frame"
import { ownKey } from "./keys"
import {
  chosen,
  detailOf,
  focusedList,
  layoutOf,
  loadOf,
  loadsBelow,
  moved,
  opened,
  rowsOf,
  scrolled,
  stepsOf,
  visibleRows,
  withDetail,
  withList,
} from "./lists"
import { withFilter, withShown } from "./messages-screen"
import { command_words, loadsOf, SCREENS, screenOf } from "./screens"
import {
  type Detail,
  listsOf,
  type Opened,
  type PageScreen,
  type PromptState,
  type ScreenName,
  type State,
  type StateStep,
  said,
  screens,
  step,
  TOP_OF_LIST,
  tabs,
} from "./state"
import { searchUsers } from "./users-screen"
import { askReplay } from "./webhooks-screen"

/** What one key does: a character, or the name of a key in angle brackets, `<up>`. */
export function press(before: State, key: string): StateStep {
  const [, late] = /^<alt-(.)>$/u.exec(key) ?? []
  if (late !== undefined) return pressedBehindEscape(before, late)
  const state = before.notice ? { ...before, notice: null } : before // it was read
  if (key === "<ctrl-c>") return step(state, { do: "quit" })
  if (key === "<ctrl-l>") return step(before, { do: "redraw" })
  if (state.question) return answered(state, key)
  if (state.prompt) return pressInPrompt(state, state.prompt, key)
  if (state.help) return key === "q" ? step(state, { do: "quit" }) : step({ ...state, help: false })
  return pressOnScreen(state, key === "<backspace>" ? "<escape>" : key)
}

/**
 * On a terminal Esc and a key soon after it look like one key with Alt held down. Where text is typed
 * it is that key, which means nothing here: what was typed is not lost by it.
 */
function pressedBehindEscape(before: State, key: string): StateStep {
  if (before.prompt) return step(before)
  const first = press(before, "<escape>")
  const second = press(first.state, key)
  return step(second.state, ...first.intents, ...second.intents)
}

/** Only a clear yes is one. */
function answered(state: State, key: string): StateStep {
  const next = { ...state, question: null }
  const choice = state.question?.choices.find((one) => one.key === key.toLowerCase())
  return choice ? step(next, choice.action) : said(next, "nothing was done")
}

/** What a screen says of a key counts before what the key does everywhere. */
function pressOnScreen(state: State, key: string): StateStep {
  const own = ownKey(screenOf(state).keys(state), key)
  if (own?.press) return own.press(state)
  const screen = screens[Number(key) - 1]
  if (screen) return shown(state, screen)
  switch (key) {
    case "q":
      return step(state, { do: "quit" })
    case "?":
      return step({ ...state, help: true })
    case "/": {
      const { filter: before } = state.messages
      const prompt = { asks: "filter" as const, text: before.text, problem: null, before }
      return step({ ...state, screen: "messages", prompt })
    }
    case ":":
      return step({ ...state, prompt: { asks: "command", text: "", problem: null } })
  }
  const detail = detailOf(state)
  if (detail) return pressInDetail(state, detail, key)
  return focusedList(state) ? pressInList(state, key) : pressOnPage(state, key)
}

function shown(state: State, screen: ScreenName): StateStep {
  const next = { ...state, screen }
  return step(next, ...loadsOf(next))
}

function pressOnPage(state: State, key: string): StateStep {
  const { height, width } = layoutOf(state)
  const by = stepsOf(key, height)
  if (by === undefined) return step(state)
  const name = state.screen as PageScreen
  const page = state.pages[name]
  const lines = detailLines(state, width, false).length
  const next = { ...page, top: scrolled(page.top, by, lines, height) }
  return step({ ...state, pages: { ...state.pages, [name]: next } })
}

function pressInList(state: State, key: string): StateStep {
  const [, lower] = listsOf[state.screen]
  const is_below = state.lower[state.screen] === true
  const focused = (below: boolean) =>
    step({ ...state, lower: { ...state.lower, [state.screen]: below } })
  if (lower) {
    if (key === "<tab>") return focused(!is_below)
    if (key === "<escape>" || key === "<left>") return focused(false)
    if (key === "<right>" || (key === "<enter>" && !is_below)) return focused(true)
  }
  return key === "<enter>" ? withOpened(state) : movedBy(state, key)
}

function movedBy(state: State, key: string): StateStep {
  const name = focusedList(state)
  const rows = name ? visibleRows(state, name) : 0
  const by = stepsOf(key, rows)
  if (name === undefined || by === undefined) return step(state)
  const { position } = state.lists[name]
  const next = withList(state, name, { position: moved(position, rowsOf(state, name), by, rows) })
  const [upper, lower] = listsOf[state.screen]
  const is_other = next.lists[name].position.selected !== position.selected
  if (!lower) return screenOf(state).moved?.(next) ?? step(next)
  if (name !== upper || !is_other) return step(next)
  // What is below the row before does not belong to this one.
  const emptied = withList(next, lower, { rows: null, of: null, position: TOP_OF_LIST })
  return step(emptied, ...loadsBelow(emptied, state.screen))
}

/** Opens the chosen row. It stays selected when newer ones arrive. */
function withOpened(state: State, tab?: Detail["tab"]): StateStep {
  const name = screenOf(state).detail?.opens
  const row = name && chosen(state, name)
  if (!row) return step(state)
  const { position, of: upper } = state.lists[name]
  const of = "channel" in row && row.channel !== "email" ? row.channel : upper
  const still = withList(state, name, { position: { ...position, follows: false } })
  return opened(still, state.screen as keyof Opened, row.id, { of, ...(tab && { tab }) })
}

function pressInDetail(state: State, detail: Detail, key: string): StateStep {
  const { detail_rows: rows, detail_width } = layoutOf(state)
  const by = stepsOf(key, rows)
  if (by !== undefined) {
    const lines = detailLines(state, detail_width, false).length
    const top = scrolled(detail.top, by, lines, rows)
    return step(withDetail(state, state.screen, { ...detail, top }))
  }
  switch (key) {
    case "<escape>":
      return step(withDetail(state, state.screen, undefined))
    case "<tab>":
    case "<right>":
    case "l":
      return turned(state, detail, 1)
    case "<left>":
    case "h":
      return turned(state, detail, -1)
    case "n":
    case "p":
      return neighbour(state, detail, key === "n" ? 1 : -1)
    default:
      return step(state)
  }
}

function turned(state: State, detail: Detail, by: number): StateStep {
  if (state.screen !== "messages") return step(state)
  const tab = tabs[(tabs.indexOf(detail.tab) + by + tabs.length) % tabs.length] ?? "Timeline"
  const next = { ...detail, tab, top: 0, problem: null }
  return step(withDetail(state, state.screen, next), loadOf(state.screen, next))
}

function neighbour(state: State, { tab }: Detail, by: number): StateStep {
  const name = screenOf(state).detail?.opens
  if (!name) return step(state)
  const { position } = state.lists[name]
  const next = moved(position, rowsOf(state, name), by, visibleRows(state, name))
  return withOpened(withList(state, name, { position: next }), tab)
}

/** A key while a line is being typed. Esc leaves everything as it was. */
function pressInPrompt(state: State, prompt: PromptState, key: string): StateStep {
  const typed = (text: string) =>
    step(filteredSoFar({ ...state, prompt: { ...prompt, text, problem: null } }, prompt, text))
  switch (key) {
    case "<escape>":
      return step(withTypedFilter({ ...state, prompt: null }, prompt.before))
    case "<enter>": {
      const refused = (problem: string) => step({ ...state, prompt: { ...prompt, problem } })
      return finished[prompt.asks]({ ...state, prompt: null }, prompt.text.trim(), refused)
    }
    case "<backspace>":
    case "<delete>":
      return typed(withoutLast(prompt.text))
    case "<ctrl-u>":
      return typed("")
    case "<ctrl-w>":
      return typed(prompt.text.replace(/\S+\s*$/, ""))
    default:
      return key.startsWith("<") && key.length > 1 ? step(state) : typed(prompt.text + key)
  }
}

/** What is typed filters the rows that are here; the server is asked when Enter ends it. */
function filteredSoFar(state: State, { asks }: PromptState, text: string): State {
  if (asks !== "filter") return state
  const filter = parseFilter(text)
  if (!("problem" in filter)) return withTypedFilter(state, filter)
  const without = parseFilter(text.trim().replace(/\S+$/, "")) // its last word is half typed
  return "problem" in without ? state : withTypedFilter(state, without)
}

/** A paused list stands still until Enter. */
function withTypedFilter(state: State, filter: MessageFilter | undefined): State {
  const { messages } = state
  if (!filter || messages.paused || filter.text === messages.filter.text) return state
  return withShown({ ...state, messages: { ...messages, filter } })
}

type Refuse = (problem: string) => StateStep

const finished: Record<
  PromptState["asks"],
  (state: State, text: string, refused: Refuse) => StateStep
> = {
  filter: applyFilter,
  replay: askReplay,
  command,
  subscriber: openSubscriber,
  topics: searchTopics,
  users: searchUsers,
}

function applyFilter(state: State, text: string, refused: Refuse): StateStep {
  const filter = parseFilter(text)
  return "problem" in filter ? refused(filter.problem) : withFilter(state, filter)
}

function command(state: State, text: string, refused: Refuse): StateStep {
  const [word = "", ...rest] = text.split(/\s+/)
  const screen = screens.find((name) => name === word)
  if (screen) return shown(state, screen)
  switch (word) {
    case "":
      return step(state)
    case "q":
    case "quit":
      return step(state, { do: "quit" })
    case "help":
      return step({ ...state, help: true })
    case "filter":
      return applyFilter(state, rest.join(" "), refused)
    case "clear":
      return applyFilter(state, "", refused)
    case "replay":
      return askReplay({ ...state, screen: "webhooks" }, rest.join(" ") || "1h", refused)
  }
  const actionOn = (name: ScreenName) => SCREENS[name].actions.find((one) => one.word === word)
  const action = actionOn(state.screen)
  if (action?.press) return action.press(state)
  const places = screens.filter(actionOn)
  if (places.length > 0) return refused(`${word} works in ${places.join(" and ")}: open it first`)
  return refused(`there is no command ${word}; the commands are ${command_words.join(", ")}`)
}
