import { millis } from "../lib/time"
import type { RowUpdate } from "./message-rows"
import { press } from "./press"
import type { Intent, State, StateStep } from "./state"
import { applyNews, type News } from "./update"

/** However fast keys come: a screen is drawn at most ten times a second. */
export const FRAME_MILLISECONDS = 100

/** What only scrolls by is read no better at ten times a second than at five. */
const NEWS_MILLISECONDS = 200

/**
 * The collector looks at young objects after each group of news, and at all objects after this many
 * groups.
 */
const WHOLE_LOOK = 15

export interface MonitorStore {
  /** The state as it was when it was last told to draw. */
  drawn(): State
  state(): State
  subscribe(listener: () => void): () => void
  dispatch(news: News): void
  press(key: string): void
  /** Collected, and looked at together with the next frame. */
  facts(facts: readonly RowUpdate[]): void
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
  let batches = 0
  const listeners = new Set<() => void>()

  const apply = ({ state: next, intents }: StateStep) => {
    state = next
    for (const intent of intents) act(intent)
  }
  const draw = () => {
    timer = undefined
    last_draw = millis()
    if (collected.length > 0) {
      const facts = collected
      collected = []
      apply(applyNews(state, { is: "facts", facts }))
      // Thousands of frames a second make much garbage. The runtime alone would let a hundred
      // megabytes gather first.
      batches += 1
      Bun.gc(batches % WHOLE_LOOK === 0)
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
    apply(applyNews(state, { is: "tick", now: millis() }))
    soon(NEWS_MILLISECONDS)
  }, 1000)

  return {
    drawn: () => drawn,
    state: () => state,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    dispatch(news) {
      apply(applyNews(state, news))
      soon(NEWS_MILLISECONDS)
    },
    press(key) {
      apply(press(state, key))
      soon(FRAME_MILLISECONDS)
    },
    facts(facts) {
      collected.push(...facts)
      soon(NEWS_MILLISECONDS)
    },
    close() {
      clearTimeout(timer)
      clearInterval(second)
    },
  }
}
