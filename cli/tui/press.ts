import { pressOnMessages } from "./press-messages"
import { pressOnWebhooks } from "./press-webhooks"
import { pressInPrompt } from "./prompt"
import { type State, type Step, screens, step } from "./state"

/** What one key does: a character, or the name of a key in angle brackets, `<up>`. */
export function press(before: State, key: string): Step {
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
function pressedBehindEscape(before: State, key: string): Step {
  if (before.prompt) return step(before)
  const first = press(before, "<escape>")
  const second = press(first.state, key)
  return step(second.state, ...first.intents, ...second.intents)
}

/** Only a clear yes is one. */
function answered(state: State, key: string): Step {
  const next = { ...state, question: null }
  const chosen = state.question?.choices.find((choice) => choice.key === key.toLowerCase())
  if (chosen) return step(next, chosen.deed)
  return step({ ...next, notice: { text: "nothing was done", at: state.now } })
}

function pressAnywhere(state: State, key: string): Step | undefined {
  const screen = screens[Number(key) - 1]
  if (/^[1-9]$/.test(key)) return screen ? opened(state, screen) : step(state)
  switch (key) {
    case "q":
      return step(state, { do: "quit" })
    case "?":
      return step({ ...state, help: true })
    case "/": {
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

function opened(state: State, screen: State["screen"]): Step {
  const next = { ...state, screen }
  if (screen === "webhooks") return step(next, { do: "load_endpoints" })
  return screen === "queue" ? step(next, { do: "load_queue" }) : step(next)
}

function pressOnScreen(state: State, key: string): Step {
  switch (state.screen) {
    case "messages":
      return pressOnMessages(state, key)
    case "webhooks":
      return pressOnWebhooks(state, key)
    case "queue":
      return step({ ...state, queue: { ...state.queue, top: queueTop(state, key) } })
  }
}

function queueTop({ queue: { top, work } }: State, key: string): number {
  const lines = (work?.by_state.length ?? 0) + (work?.by_domain.length ?? 0)
  if (key === "j" || key === "<down>") return Math.min(Math.max(0, lines - 1), top + 1)
  return key === "k" || key === "<up>" ? Math.max(0, top - 1) : top
}
