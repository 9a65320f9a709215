import type { Components } from "../../src/client/components"
import { openWorkText } from "../commands/queue"
import { number } from "../lib/cells"
import { span } from "../lib/time"
import { scrolling } from "./keys"
import type { Screen } from "./state"

type OpenWork = Components["OpenWork"]

interface Backlog {
  count: number
  oldest_seconds: number
  held: number
}

/** Waiting and running work, for the line on top. Held work does not count. */
export function backlog({ by_state }: OpenWork): Backlog {
  const open = by_state.filter(({ state }) => state !== "held")
  const sum = (rows: OpenWork["by_state"]) => rows.reduce((all, { count }) => all + count, 0)
  const oldest_seconds = Math.max(0, ...open.map(({ oldest_seconds: age }) => age ?? 0))
  return { count: sum(open), oldest_seconds, held: sum(by_state) - sum(open) }
}

export const queueScreen: Screen = {
  load: () => [{ do: "load_queue" }],
  info({ pages: { queue } }) {
    if (queue.found === null) return ""
    const { count, oldest_seconds, held } = backlog(queue.found)
    const oldest = count === 0 ? "" : `, the oldest for ${span(oldest_seconds)}`
    return `${number(count)} wait or run${oldest}${held > 0 ? `   ${number(held)} held` : ""}`
  },
  page: openWorkText,
  keys: () => [scrolling],
  actions: [],
}
