import type { Components } from "../../src/client/components"
import { openWorkText } from "../commands/queue"
import { reputationText } from "../commands/reputation"
import { number, percent } from "../lib/cells"
import { span } from "../lib/time"
import { audienceScreen } from "./audience-screen"
import { boxScreen } from "./box-screen"
import { inboundScreen } from "./inbound-screen"
import { key, scrolling } from "./keys"
import { messagesScreen } from "./messages-screen"
import {
  type Key,
  type Load,
  listsOf,
  type PageScreen,
  type Screen,
  type ScreenName,
  type State,
  screens,
} from "./state"
import { usersScreen } from "./users-screen"
import { webhooksScreen } from "./webhooks-screen"

type OpenWork = Components["OpenWork"]

/** Waiting and running work, for the line on top. Held work does not count. */
export function backlog({ by_state }: OpenWork) {
  const open = by_state.filter(({ state }) => state !== "held")
  const sum = (rows: OpenWork["by_state"]) => rows.reduce((all, { count }) => all + count, 0)
  const oldest_seconds = Math.max(0, ...open.map(({ oldest_seconds: age }) => age ?? 0))
  return { count: sum(open), oldest_seconds, held: sum(by_state) - sum(open) }
}

const queueScreen: Screen = {
  info({ pages: { queue } }) {
    if (queue.found === null) return ""
    const { count, oldest_seconds, held } = backlog(queue.found)
    const oldest = count === 0 ? "" : `, the oldest for ${span(oldest_seconds)}`
    return `${number(count)} wait or run${oldest}${held > 0 ? `   ${number(held)} held` : ""}`
  },
  page: { read: "GET /v1/queue", text: openWorkText },
  keys: () => [scrolling],
  actions: [],
}

const reputationScreen: Screen = {
  info({ pages: { reputation } }) {
    if (reputation.found === null) return ""
    const { status, bounce_rate, complaint_rate, held, sent, thresholds } = reputation.found
    const { min_sent } = thresholds.throttled
    const few =
      sent < min_sent ? `   ${number(sent)} sent, below the minimum of ${number(min_sent)}` : ""
    const some = held.length > 0 ? `   ${held.length} held: belfry reputation release` : ""
    return `${status}: bounces ${percent(bounce_rate)}, complaints ${percent(complaint_rate)}${few}${some}`
  },
  page: { read: "GET /v1/accounts/me/reputation", text: reputationText },
  keys: () => [scrolling],
  actions: [],
}

export const SCREENS: Readonly<Record<ScreenName, Screen>> = {
  messages: messagesScreen,
  webhooks: webhooksScreen,
  queue: queueScreen,
  inbound: inboundScreen,
  reputation: reputationScreen,
  audience: audienceScreen,
  box: boxScreen,
  users: usersScreen,
}

export const screenOf = ({ screen }: State): Screen => SCREENS[screen]

/** What is asked for when the screen is opened, and again and again while it is seen. */
export function loadsOf(state: State): Load[] {
  const { loads, page } = screenOf(state)
  if (loads) return loads(state)
  if (page) return [{ do: "load_page", screen: state.screen as PageScreen }]
  return listsOf[state.screen].slice(0, 1).map((list) => ({ do: "load_list", list }))
}

/** The keys that do something on the present screen. Those that the server refuses are left out. */
export const keysOf = (state: State): Key[] =>
  screenOf(state)
    .keys(state)
    .filter(({ long, changes }) => long !== "" && !(changes && state.read_only !== null))

const actions = screens.flatMap((name) => SCREENS[name].actions.flatMap(({ word }) => word ?? []))
const commands = [...screens, ...["filter", "clear", "replay", "help", "quit"]]

/** Words behind `:`. */
export const command_words = [...new Set([...commands, ...actions])].sort()

/** Keys of every screen; the line of keys ends with the last two anyway. */
export const everywhere: Key[] = [
  key("1 to 8", "", "open the screen with this number"),
  key(":", "", `type ${commands.join(" ")}. Or: ${[...new Set(actions)].join(" ")}`),
  key("Esc", "", "go back; in the list: remove the filter. Ctrl-L redraws the screen"),
  key("? q", "", "show this help; quit, as Ctrl-C does"),
]
