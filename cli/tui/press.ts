import { Failure } from "../lib/errors"
import { moment } from "../lib/time"
import { loadTopics, searchTopics } from "./audience-news"
import { askTopics, openSubscriber, pressOnAudience } from "./audience-screen"
import { pressOnBox } from "./box-screen"
import { withoutLast } from "./cells"
import { type MessageFilter, parseFilter } from "./filter"
import { pressOnInbound } from "./inbound-screen"
import { chosen } from "./layout"
import { pressOnMessages } from "./messages-screen"
import { reputationLength } from "./reputation-screen"
import {
  type PromptState,
  replay_portions,
  type State,
  type StateStep,
  screens,
  scrolled,
  step,
  whether,
} from "./state"
import { withFilter, withShown } from "./update"
import { pressOnEither, pressOnWebhooks } from "./webhooks-screen"

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
  return pressAnywhere(state, key) ?? pressOnScreen(state, key)
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
  const chosen = state.question?.choices.find((choice) => choice.key === key.toLowerCase())
  if (chosen) return step(next, chosen.action)
  return step({ ...next, notice: { text: "nothing was done", at: state.now } })
}

function pressAnywhere(state: State, key: string): StateStep | undefined {
  const screen = screens[Number(key) - 1]
  if (/^[1-9]$/.test(key)) return screen ? opened(state, screen) : step(state)
  switch (key) {
    case "q":
      return step(state, { do: "quit" })
    case "?":
      return step({ ...state, help: true })
    case "/": {
      if (state.screen === "audience") return askTopics(state)
      const { filter: before } = state.messages
      const prompt = { asks: "filter" as const, text: before.text, problem: null, before }
      return step({ ...opened(state, "messages").state, prompt })
    }
    case ":":
      return step({ ...state, prompt: { asks: "command", text: "", problem: null } })
    default:
      return undefined
  }
}

function opened(state: State, screen: State["screen"]): StateStep {
  const next = { ...state, screen }
  switch (screen) {
    case "webhooks":
      return step(next, { do: "load_endpoints" })
    case "queue":
      return step(next, { do: "load_queue" })
    case "inbound":
      return step(next, { do: "load_inbound" })
    case "reputation":
      return step(next, { do: "load_reputation" })
    case "audience":
      return step(next, loadTopics(state.audience))
    case "box":
      return step(next, { do: "load_box" })
    case "messages":
      return step(next)
  }
}

function pressOnScreen(state: State, key: string): StateStep {
  switch (state.screen) {
    case "messages":
      return pressOnMessages(state, key)
    case "webhooks":
      return pressOnWebhooks(state, key)
    case "inbound":
      return pressOnInbound(state, key)
    case "audience":
      return pressOnAudience(state, key)
    case "box":
      return pressOnBox(state, key)
    case "queue":
      return step({ ...state, queue: { ...state.queue, top: queueTop(state, key) } })
    case "reputation": {
      const { found, top } = state.reputation
      const next = scrolled(top, reputationLength(found), key)
      return step({ ...state, reputation: { ...state.reputation, top: next } })
    }
  }
}

function queueTop({ queue: { top, work } }: State, key: string): number {
  const lines = (work?.by_state.length ?? 0) + (work?.by_domain.length ?? 0)
  return scrolled(top, lines, key)
}

/** A key while a line is being typed. Esc leaves everything as it was. */
function pressInPrompt(state: State, prompt: PromptState, key: string): StateStep {
  const typed = (text: string) =>
    step(filteredSoFar({ ...state, prompt: { ...prompt, text, problem: null } }, prompt, text))
  switch (key) {
    case "<escape>":
      return step(withTypedFilter({ ...state, prompt: null }, prompt.before))
    case "<enter>":
      return finish({ ...state, prompt: null }, prompt)
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
  return { ...state, messages: withShown({ ...messages, filter }, state) }
}

function finish(state: State, prompt: PromptState): StateStep {
  const refused = (problem: string) => step({ ...state, prompt: { ...prompt, problem } })
  switch (prompt.asks) {
    case "filter":
      return applyFilter(state, prompt.text, refused)
    case "replay":
      return askReplay(state, prompt.text, refused)
    case "command":
      return command(state, prompt.text.trim(), refused)
    case "subscriber":
      return openSubscriber(state, prompt.text.trim())
    case "topics":
      return searchTopics(state, prompt.text.trim())
  }
}

type Refuse = (problem: string) => StateStep

function applyFilter(state: State, text: string, refused: Refuse): StateStep {
  const filter = parseFilter(text)
  return "problem" in filter ? refused(filter.problem) : withFilter(state, filter)
}

function askReplay(state: State, text: string, refused: Refuse): StateStep {
  const endpoint = chosen(state.webhooks.endpoints ?? [], state.webhooks.position)
  if (!endpoint) return step(state)
  const { read_only } = state.webhooks
  if (read_only !== null) return refused(read_only)
  const [since = "", word = "held", ...more] = text.trim().split(/\s+/)
  const status = replay_portions.find((one) => one === word)
  if (!status || more.length > 0) {
    return refused(`write a time, then ${replay_portions.join(", ")}, as: 1h held`)
  }
  try {
    moment(since, "since")
  } catch (error) {
    if (error instanceof Failure) return refused(error.message)
    throw error
  }
  const what = `${status} events`
  const asking = `Send ${what} since ${since} to ${endpoint.url} again?`
  const question = whether(asking, { do: "replay", webhook_id: endpoint.id, since, status })
  return step({ ...state, question })
}

const on_both = { copy: "y", resend: "r", retry: "r" }
const on_messages = { ...on_both, follow: "f", pause: " " }
const on_webhooks = { ...on_both, disable: "d", enable: "e", pause: "p", test: "t" }

const on_inbound = { copy: "y", redeliver: "R", answered: "m" }

const on_audience = { copy: "y", cancel: "c" }

const on_box = { release: "r", drop: "D", backup: "b" }

/** Words behind `:`, and the key that does the same, by the screen where they mean something. */
const as_keys = {
  messages: new Map(Object.entries(on_messages)),
  webhooks: new Map(Object.entries(on_webhooks)),
  queue: new Map<string, string>(),
  reputation: new Map<string, string>(),
  inbound: new Map(Object.entries(on_inbound)),
  audience: new Map(Object.entries(on_audience)),
  box: new Map(Object.entries(on_box)),
}

export const command_words = [
  ...new Set([
    ...[...screens, "filter", "clear", "replay", "help", "quit"],
    ...Object.keys({ ...on_messages, ...on_webhooks, ...on_inbound, ...on_audience, ...on_box }),
  ]),
].sort()

function asKey(state: State, word: string, places: string[], refused: Refuse): StateStep {
  const key = as_keys[state.screen].get(word)
  if (key === undefined) return refused(`${word} works in ${places.join(" and ")}: open it first`)
  if (state.screen === "inbound") return pressOnInbound(state, key)
  if (state.screen === "audience") return pressOnAudience(state, key)
  if (state.screen === "box") return pressOnBox(state, key)
  return state.screen === "webhooks" ? pressOnEither(state, key) : pressOnMessages(state, key)
}

function command(state: State, text: string, refused: Refuse): StateStep {
  const [word = "", ...rest] = text.split(/\s+/)
  const screen = screens.find((name) => name === word)
  if (screen) return opened(state, screen)
  const places = screens.filter((name) => as_keys[name].has(word))
  if (places.length > 0) return asKey(state, word, places, refused)
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
    default:
      return refused(`there is no command ${word}; the commands are ${command_words.join(", ")}`)
  }
}
