import { useInput } from "ink"
import { useLayoutEffect, useSyncExternalStore } from "react"
import { painter } from "../lib/terminal"
import { bodyLines, bordered, infoLine, keyLine, statusLine, tabLine } from "./frame"
import { keysFrom } from "./keys"
import { LEAST } from "./layout"
import type { State } from "./state"
import type { MonitorStore } from "./store"

interface Parts {
  store: MonitorStore
  colour: boolean
  draw(lines: readonly string[]): void
}

/**
 * Reads the keys, and draws what the store tells it, at most as often as the store allows. The lines go
 * to `draw` and not through the layout of ink, which measures text and would shift lines where a
 * terminal measures otherwise.
 */
export function Monitor({ store, colour, draw }: Parts) {
  const state = useSyncExternalStore(store.subscribe, store.drawn)
  useInput((input, key) => {
    for (const name of keysFrom(input, key)) store.press(name)
  })
  useLayoutEffect(() => draw(screenLines(state, colour)), [state, colour, draw])
  return null
}

/** The whole screen: one string a line, each as wide as the terminal. */
export function screenLines(state: State, colour: boolean): string[] {
  if (state.columns < LEAST.columns || state.lines < LEAST.lines) return TOO_SMALL
  const paint = painter(colour)
  const inside = [tabLine(state, paint), ...bodyLines(state, paint, colour), infoLine(state, paint)]
  return [
    statusLine(state, paint),
    ...inside.map((line) => bordered(line, paint)),
    keyLine(state, paint),
  ]
}

const TOO_SMALL = [
  "The terminal is too small.",
  `It needs ${LEAST.columns} columns and ${LEAST.lines} lines.`,
  "q ends the monitor.",
]
