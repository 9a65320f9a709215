import { millis } from "../lib/time"
import type { RowUpdate } from "./message-rows"
import { press } from "./press"
import type { Intent, State, Transition } from "./state"
import { hear, type News } from "./update"

/** However fast keys come: a screen is drawn at most ten times a second. */
export const FRAME_MILLISECONDS = 100

/** What only scrolls by is read no better at ten times a second than at five. */
const NEWS_MILLISECONDS = 200

/** The collector looks at what is young after each bunch of news, and at everything after so many. */
const WHOLE_LOOK = 15

export interface MonitorStore {
  /** The state as it was when it was last told to draw. */
  drawn(): State
  state(): State
  subscribe(listener: () => void): () => void
  hear(news: News): void
  press(key: string): void
  /** Collected, and looked at together with the next frame. */
  facts(facts: readonly RowUpdate[]): void
  /** Has the world do something that no key asked for. */
  ask(intent: Intent): void
  /** Ends its timers. */
  close(): void
}

/** Holds the state, lets `act` do what comes of it, and rations the redraws. */
export function openStore(first: State, act: (intent: Intent) => void): MonitorStore {
  let state = first
  let drawn = first
  let collected: RowUpdate[] = []
  let timer: Timer | undefined
  let last_draw = 0
  let due = 0
  let bunches = 0
  const listeners = new Set<() => void>()

  const take = ({ state: next, intents }: Transition) => {
    state = next
    for (const intent of intents) act(intent)
  }
  const draw = () => {
    timer = undefined
    last_draw = millis()
    if (collected.length > 0) {
      const facts = collected
      collected = []
      take(hear(state, { is: "facts", facts }))
      // Thousands of frames a second leave much behind; left to itself the runtime would let a hundred
      // megabytes of it gather before it looks.
      bunches += 1
      Bun.gc(bunches % WHOLE_LOOK === 0)
    }
    if (drawn === state) return
    drawn = state
    for (const listener of listeners) listener()
  }
  const soon = (milliseconds: number) => {
    const now = millis()
    const at = Math.max(now, last_draw + milliseconds)
    if (timer !== undefined && due <= at) return
    clearTimeout(timer)
    due = at
    timer = setTimeout(draw, at - now)
  }
  const second = setInterval(() => {
    take(hear(state, { is: "tick", now: millis() }))
    soon(NEWS_MILLISECONDS)
  }, 1000)

  return {
    drawn: () => drawn,
    state: () => state,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    hear(news) {
      take(hear(state, news))
      soon(NEWS_MILLISECONDS)
    },
    press(key) {
      take(press(state, key))
      soon(FRAME_MILLISECONDS)
    },
    facts(facts) {
      collected.push(...facts)
      soon(NEWS_MILLISECONDS)
    },
    ask: act,
    close() {
      clearTimeout(timer)
      clearInterval(second)
    },
  }
}
