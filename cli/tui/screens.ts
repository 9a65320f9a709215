import { reputationText } from "../commands/reputation"
import { percent } from "../lib/cells"
import { audienceScreen } from "./audience-screen"
import { boxScreen } from "./box-screen"
import { inboundScreen } from "./inbound-screen"
import { key, scrolling } from "./keys"
import { messagesScreen } from "./messages-screen"
import { queueScreen } from "./queue-screen"
import { type Key, type Screen, type ScreenName, type State, screens } from "./state"
import { webhooksScreen } from "./webhooks-screen"

const reputationScreen: Screen = {
  load: () => [{ do: "load_reputation" }],
  info({ pages: { reputation } }) {
    if (reputation.found === null) return ""
    const { status, bounce_rate, complaint_rate, held } = reputation.found
    const some = held.length > 0 ? `   ${held.length} held: belfry reputation release` : ""
    return `${status}: bounces ${percent(bounce_rate)}, complaints ${percent(complaint_rate)}${some}`
  },
  page: reputationText,
  keys: () => [scrolling],
  actions: [],
}

/** Every screen of the monitor. */
export const SCREENS: Readonly<Record<ScreenName, Screen>> = {
  messages: messagesScreen,
  webhooks: webhooksScreen,
  queue: queueScreen,
  inbound: inboundScreen,
  reputation: reputationScreen,
  audience: audienceScreen,
  box: boxScreen,
}

export const screenOf = ({ screen }: State): Screen => SCREENS[screen]

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
  key("1 to 7", "", "open the screen with this number"),
  key(":", "", `type ${commands.join(" ")}. Or: ${[...new Set(actions)].join(" ")}`),
  key("Esc", "", "go back; in the list: remove the filter. Ctrl-L redraws the screen"),
  key("? q", "", "show this help; quit, as Ctrl-C does"),
]
