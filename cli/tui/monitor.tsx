import { writeSync } from "node:fs"
import { PassThrough } from "node:stream"
import { render, useInput } from "ink"
import { useLayoutEffect, useSyncExternalStore } from "react"
import { COLOUR, widthOf } from "../lib/cells"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { environment } from "../lib/environment"
import { exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { painter } from "../lib/terminal"
import { millis } from "../lib/time"
import { openActions } from "./actions"
import { NO_FILTER } from "./filter"
import { firstCursor, followNews } from "./follow"
import { bodyLines, bordered, infoLine, keyLine, statusLine, tabLine } from "./frame"
import { keysFrom } from "./keys"
import { LEAST } from "./lists"
import { readable } from "./reading"
import { loadsOf } from "./screens"
import { initialState, type State } from "./state"
import { FRAME_MILLISECONDS, type MonitorStore, openStore } from "./store"

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

const POLL_MILLISECONDS = 2000

/** Shows what happens until a key ends it. Without a terminal exit 2; on a dumb one as plain lines. */
export const open: Action<object> = async (context) => {
  const { terminal } = context
  if (!terminal.in || !terminal.out) {
    throw usage("the monitor needs a terminal", "use `belfry emails tail --ndjson`")
  }
  if (environment.TERM === "dumb") {
    const { tail } = await import("../commands/events")
    return await tail(context, { event: ["email.*", "sms.*"] })
  }
  let onHeaders = (_: Headers) => {}
  const client = context.client(undefined, {}, (headers) => onHeaders(headers))
  // What is wrong with address or key is told as by every other command, before the screen is taken.
  const [newest] = (await client.call("GET /v1/emails", { query: { per_page: 1 } })).data
  const begin = await firstCursor(client, newest)
  process.once("exit", restore)
  const screen = openScreen((text) => void process.stdout.write(text))
  const { promise: over, resolve: end } = Promise.withResolvers<number>()
  const act = openActions({
    client,
    dispatch(news) {
      store.dispatch(news)
      if (news.is === "notice") ask() // a change is to be seen at once
    },
    copy: (text) => void process.stdout.write(copying(text)),
    redraw: screen.redraw,
    quit: () => end(exits.done),
  })
  const size = [process.stdout.columns || 80, process.stdout.rows || 24] as const
  const store = openStore(initialState(...size, millis(), titleOf(context)), act)
  /** What is not told by the stream is asked for, as far as it is on the screen. */
  const ask = () => {
    const state = store.state()
    if (state.screen !== "queue") act({ do: "load_page", screen: "queue" })
    for (const load of loadsOf(state)) act(load)
  }
  onHeaders = (headers) => hearSending(store, headers)
  act({ do: "load_older", filter: NO_FILTER })
  void nameProject(client, newest, store)
  const polling = setInterval(ask, POLL_MILLISECONDS)
  const stop = new AbortController()
  const drawing = draw(store, terminal.colour, screen, end)
  try {
    ask()
    const news = followNews(client, store, begin, stop.signal).then(() => over)
    return await Promise.race([over, news, drawing.gone])
  } finally {
    stop.abort()
    clearInterval(polling)
    store.close()
    drawing.close()
    screen.close()
    process.off("exit", restore)
  }
}

/** OSC 52: a terminal that allows it puts the text into its clipboard, also through ssh. */
const copying = (text: string) => `\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`

const titleOf = (context: Context) => {
  const { profile, url } = context.connection()
  return profile ?? new URL(url).host
}

/** `acme/prod`, as far as the key may know it. */
async function nameProject(
  client: Client,
  email: { project_id: string } | undefined,
  store: MonitorStore,
) {
  const slugOf = async (reading: Promise<{ data: { slug: string } }>) =>
    (await readable(reading, () => true))?.data.slug
  const account = await slugOf(client.call("GET /v1/accounts/me"))
  const { project_id } = email ?? {}
  const project =
    project_id &&
    (await slugOf(client.call("GET /v1/projects/{project_id}", { params: { project_id } })))
  const title = [account, project].filter(Boolean).join("/")
  if (title) store.dispatch({ is: "known", of: { title } })
}

/** Every answer says it, so only another one than before is news. */
export function hearSending(store: Pick<MonitorStore, "state" | "dispatch">, headers: Headers) {
  const status = headers.get("x-account-sending-status")
  const reason = headers.get("x-account-sending-status-reason") ?? ""
  const { sending } = store.state()
  if (status === null || (sending.status === status && sending.reason === reason)) return
  store.dispatch({ is: "known", of: { sending: { status, reason } } })
}

function restore(): void {
  try {
    writeSync(1, RESTORED)
  } catch {
    // The terminal is gone, so there is nothing to restore.
  }
}

/** Ink reads the keys and keeps the life of the components; it writes nothing to the terminal. */
function silentOutput(): NodeJS.WriteStream {
  const { columns, rows } = process.stdout
  const stream = new PassThrough().resume()
  return Object.assign(stream, { columns, rows, isTTY: true }) as unknown as NodeJS.WriteStream
}

/** Draws until `close`, and calls `end` when a signal comes. `gone` rejects with what nobody caught. */
function draw(
  store: MonitorStore,
  colour: boolean,
  screen: TerminalScreen,
  end: (exit: number) => void,
) {
  const ink = render(<Monitor store={store} colour={colour} draw={screen.draw} />, {
    stdout: silentOutput(),
    exitOnCtrlC: false,
    interactive: true, // known to be a terminal; a CI job may well drive one
    maxFps: 1000 / FRAME_MILLISECONDS,
    patchConsole: false,
  })
  process.removeAllListeners("warning") // the runtime would print them across the screen
  const resized = () => {
    const { columns, rows } = process.stdout
    screen.clear()
    store.dispatch({ is: "resized", columns, lines: rows })
  }
  process.stdout.on("resize", resized)
  onInterrupt(() => end(exits.interrupted))
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.once(signal, () => end(exits.done))
  const { promise: broken, reject } = Promise.withResolvers<never>()
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    process.once(event, reject)
  return {
    gone: Promise.race([broken, ink.waitUntilExit().then(() => exits.done)]),
    close() {
      process.stdout.off("resize", resized)
      ink.unmount()
    },
  }
}

/** Control sequences of ECMA-48 and of xterm. Terminals ignore private modes that they do not know. */
const ESC = "\u001b["
const ALTERNATE_SCREEN = `${ESC}?1049`
const CURSOR = `${ESC}?25`
const AUTOWRAP = `${ESC}?7`
const SYNCHRONIZED = `${ESC}?2026`
const HOME = `${ESC}H`
const ERASE_ALL = `${ESC}2J`
const ERASE_LINE = `${ESC}2K`
const PLAIN = `${ESC}0m`

/** Gives the terminal back as it was. Safe to write at any moment, also after a crash. */
const RESTORED = `${SYNCHRONIZED}l${AUTOWRAP}h${ALTERNATE_SCREEN}l${CURSOR}h${PLAIN}`

interface TerminalScreen {
  /** Shows these lines. Only lines that changed since the last call are written. */
  draw(lines: readonly string[]): void
  /** Draws everything again: another program may have written to the terminal. */
  redraw(): void
  /** Erases everything, because the terminal has another size. The next `draw` fills it. */
  clear(): void
  close(): void
}

/**
 * Draws on a terminal by absolute places: each line begins at its own row, is erased first, and
 * never wraps. So no text can shift another one, however wide the terminal draws its characters.
 */
export function openScreen(write: (text: string) => void): TerminalScreen {
  let shown: readonly string[] = []
  const together = (text: string) => write(`${SYNCHRONIZED}h${text}${HOME}${SYNCHRONIZED}l`)
  const rowsOf = (lines: readonly string[]) =>
    lines
      .map((line, row) =>
        line === shown[row] ? "" : `${ESC}${row + 1};1H${ERASE_LINE}${placed(line)}`,
      )
      .join("")
  const clear = () => {
    shown = []
    write(`${PLAIN}${ERASE_ALL}`)
  }
  write(`${ALTERNATE_SCREEN}h${CURSOR}l${AUTOWRAP}l${ERASE_ALL}`)
  return {
    draw(lines) {
      const changes = rowsOf(lines)
      shown = lines
      if (changes !== "") together(changes)
    },
    redraw() {
      const lines = shown
      shown = []
      together(`${PLAIN}${ERASE_ALL}${rowsOf(lines)}`)
      shown = lines
    },
    clear,
    close: () => write(RESTORED),
  }
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })

const ASCII = /^[ -~]*$/

/** One code point that takes one cell on every terminal: Latin, Greek, Cyrillic, frames and marks of ours. */
const STEADY =
  /^[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2190-\u2193\u23ce\u2500-\u25cf\u2717]$/u

/**
 * The line with the column said again behind every character whose width terminals do not agree on:
 * emoji that are joined, flags, marks that combine, scripts with clusters.
 */
function placed(line: string): string {
  let column = 0
  const placedText = (text: string) => {
    if (ASCII.test(text)) {
      column += text.length
      return text
    }
    return [...graphemes.segment(text)].map(({ segment }) => placedCharacter(segment)).join("")
  }
  const placedCharacter = (character: string) => {
    column += widthOf(character)
    return STEADY.test(character) ? character : `${character}${ESC}${column + 1}G`
  }
  return line
    .split(COLOUR)
    .map((part, at) => (at % 2 === 1 ? part : placedText(part)))
    .join("")
}
