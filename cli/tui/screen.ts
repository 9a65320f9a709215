import { widthOf } from "../lib/cells"

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
export const RESTORED = `${SYNCHRONIZED}l${AUTOWRAP}h${ALTERNATE_SCREEN}l${CURSOR}h${PLAIN}`

interface TerminalScreen {
  /** Shows these lines. Only lines that changed since the last call are written. */
  draw(lines: readonly string[]): void
  /** Draws everything again: another program may have written to the terminal. */
  redraw(): void
  /** Erases everything, because the terminal has another size. The next `draw` fills it. */
  clear(): void
  /** Gives the terminal back. */
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

/** Escapes of colour stand between texts and take no room. */
const COLOUR = /(\u001b\[[0-9;]*m)/

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
