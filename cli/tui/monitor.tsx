import { Box, Text, useInput, useWindowSize } from "ink"
import { memo, useEffect, useSyncExternalStore } from "react"
import { type Paint, painter } from "../terminal"
import { bodyLines } from "./body-lines"
import { bordered, infoLine, keyLine, statusLine, tabLine } from "./frame-lines"
import { keysFrom } from "./key-names"
import { LEAST } from "./layout"
import type { State } from "./state"
import type { Store } from "./store"

interface Parts {
  store: Store
  colour: boolean
}

/** The whole screen. It draws what the store tells it, at most as often as that one allows. */
export function Monitor({ store, colour }: Parts) {
  const state = useSyncExternalStore(store.subscribe, store.drawn)
  const { columns, rows } = useWindowSize()
  useEffect(() => store.hear({ is: "resized", columns, lines: rows }), [store, columns, rows])
  useInput((input, key) => {
    for (const name of keysFrom(input, key)) store.press(name)
  })
  const paint = painter(colour)
  if (state.columns < LEAST.columns || state.lines < LEAST.lines) return <TooSmall />
  return (
    <Box flexDirection="column">
      <Line text={statusLine(state, paint)} />
      <Framed lines={[tabLine(state, paint)]} paint={paint} />
      <Framed lines={bodyLines(state, paint, colour)} paint={paint} />
      <Foot state={state} paint={paint} />
    </Box>
  )
}

function Foot({ state, paint }: { state: State; paint: Paint }) {
  return (
    <>
      <Framed lines={[infoLine(state, paint)]} paint={paint} />
      <Line text={keyLine(state, paint)} />
    </>
  )
}

/** Lines keep their places, so a place is what identifies one. */
function Framed({ lines, paint }: { lines: readonly string[]; paint: Paint }) {
  const places = lines.map((text, place) => ({ place, text: bordered(text, paint) }))
  return places.map(({ place, text }) => <Line key={place} text={text} />)
}

/** A line that says the same as before costs nothing. */
const Line = memo(({ text }: { text: string }) => <Text wrap="truncate-end">{text}</Text>)

const TooSmall = () => (
  <Text>
    The terminal is too small: it takes {LEAST.columns} columns and {LEAST.lines} lines. q ends it.
  </Text>
)
