import { Failure } from "../failure"
import { moment } from "../time"
import { withoutLast } from "./cells"
import { parseFilter } from "./filter"
import { chosen } from "./list"
import { pressOnMessages } from "./press-messages"
import { pressOnWebhooks } from "./press-webhooks"
import { type Prompt, type State, type Step, screens, step } from "./state"
import { withFilter } from "./update"

/** A key while a line is being typed. Esc leaves everything as it was. */
export function pressInPrompt(state: State, prompt: Prompt, key: string): Step {
  const typed = (text: string) => step({ ...state, prompt: { ...prompt, text, problem: null } })
  switch (key) {
    case "<escape>":
      return step({ ...state, prompt: null })
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

const PORTIONS = ["held", "failed", "all"]

function askReplay(state: State, text: string, refused: Refuse): Step {
  const endpoint = chosen(state.webhooks.endpoints ?? [], state.webhooks.place)
  if (!endpoint) return step(state)
  const [since = "", status = "held", ...more] = text.trim().split(/\s+/)
  if (!PORTIONS.includes(status) || more.length > 0) {
    return refused(`a time, then one of ${PORTIONS.join(", ")}: 1h held`)
  }
  try {
    moment(since, "since")
  } catch (error) {
    if (error instanceof Failure) return refused(error.message)
    throw error
  }
  const what = status === "all" ? "everything" : `what is ${status}`
  const question = {
    text: `Send ${what} since ${since} to ${endpoint.url} again?`,
    deed: { do: "replay" as const, webhook_id: endpoint.id, since, status },
  }
  return step({ ...state, question })
}

/** Words behind `:`, and the key that does the same. */
const as_key: Partial<Record<string, string>> = {
  copy: "y",
  follow: "f",
  pause: " ",
  resend: "r",
  retry: "r",
  test: "t",
}

export const command_words = [...screens, "filter", "clear", "replay", "help", "quit"]
  .concat(Object.keys(as_key))
  .sort()

function command(state: State, text: string, refused: Refuse): Step {
  const [word = "", ...rest] = text.split(/\s+/)
  const screen = screens.find((name) => name === word)
  if (screen) return step({ ...state, screen })
  const key = as_key[word]
  if (key !== undefined) {
    return state.screen === "webhooks" ? pressOnWebhooks(state, key) : pressOnMessages(state, key)
  }
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
      return refused(`no command is called ${word}: ${command_words.join(", ")}`)
  }
}
