import { Failure } from "../lib/errors"
import { moment } from "../lib/time"
import { withoutLast } from "./cells"
import { type Filter, parseFilter } from "./filter"
import { chosen } from "./list"
import { pressOnMessages } from "./press-messages"
import { pressOnEither } from "./press-webhooks"
import {
  type Prompt,
  replay_portions,
  type State,
  type Step,
  screens,
  step,
  whether,
} from "./state"
import { withFilter, withShown } from "./update"

/** A key while a line is being typed. Esc leaves everything as it was. */
export function pressInPrompt(state: State, prompt: Prompt, key: string): Step {
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
function filteredSoFar(state: State, { asks }: Prompt, text: string): State {
  if (asks !== "filter") return state
  const filter = parseFilter(text)
  if (!("problem" in filter)) return withTypedFilter(state, filter)
  const without = parseFilter(text.trim().replace(/\S+$/, "")) // its last word is half typed
  return "problem" in without ? state : withTypedFilter(state, without)
}

/** A paused list stands still until Enter. */
function withTypedFilter(state: State, filter: Filter | undefined): State {
  const { messages } = state
  if (!filter || messages.paused || filter.text === messages.filter.text) return state
  return { ...state, messages: withShown({ ...messages, filter }, state) }
}

function finish(state: State, prompt: Prompt): Step {
  const refused = (problem: string) => step({ ...state, prompt: { ...prompt, problem } })
  switch (prompt.asks) {
    case "filter":
      return applyFilter(state, prompt.text, refused)
    case "replay":
      return askReplay(state, prompt.text, refused)
    case "command":
      return command(state, prompt.text.trim(), refused)
  }
}

type Refuse = (problem: string) => Step

function applyFilter(state: State, text: string, refused: Refuse): Step {
  const filter = parseFilter(text)
  return "problem" in filter ? refused(filter.problem) : withFilter(state, filter)
}

function askReplay(state: State, text: string, refused: Refuse): Step {
  const endpoint = chosen(state.webhooks.endpoints ?? [], state.webhooks.place)
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

/** Words behind `:`, and the key that does the same, by the screen where they mean something. */
const as_keys = {
  messages: new Map(Object.entries(on_messages)),
  webhooks: new Map(Object.entries(on_webhooks)),
  queue: new Map<string, string>(),
}

export const command_words = [
  ...new Set([
    ...[...screens, "filter", "clear", "replay", "help", "quit"],
    ...Object.keys({ ...on_messages, ...on_webhooks }),
  ]),
].sort()

function asKey(state: State, word: string, places: string[], refused: Refuse): Step {
  const key = as_keys[state.screen].get(word)
  if (key === undefined) return refused(`${word} works in ${places.join(" and ")}: open it first`)
  return state.screen === "webhooks" ? pressOnEither(state, key) : pressOnMessages(state, key)
}

function command(state: State, text: string, refused: Refuse): Step {
  const [word = "", ...rest] = text.split(/\s+/)
  const screen = screens.find((name) => name === word)
  if (screen) return step({ ...state, screen })
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
