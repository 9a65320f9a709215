/** What text takes on a terminal, in cells: a CJK character or an emoji takes two, an escape of colour none. */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })
const ASCII = /^[\x20-\x7e]*$/

/** Escapes of colour, as `painter` writes them. */
export const COLOUR = /(\u001b\[[0-9;]*m)/

const PLAIN = "\u001b[0m"

export const widthOf = (text: string): number =>
  ASCII.test(text) ? text.length : Bun.stringWidth(text)

/** At most `width` cells: cut with an ellipsis where something is missing. */
export const shortened = (text: string, width: number): string =>
  widthOf(text) <= width ? text : width <= 0 ? "" : `${head(text, width - 1)}…`

/** Exactly `width` cells: cut, or padded on the right. */
export function fitted(text: string, width: number): string {
  const short = shortened(text, width)
  return short + " ".repeat(Math.max(0, width - widthOf(short)))
}

/** The same with the text at the right edge, for numbers. */
export function rightAligned(text: string, width: number): string {
  const short = shortened(text, width)
  return " ".repeat(Math.max(0, width - widthOf(short))) + short
}

/** As many whole characters as go into `width` cells; a wide one never hangs over. Colours stay. */
export function head(text: string, width: number): string {
  if (ASCII.test(text)) return text.slice(0, Math.max(0, width))
  let taken = ""
  let left = width
  for (const { segment, cells } of pieces(text)) {
    left -= cells
    if (left >= 0 || cells === 0) taken += segment
  }
  return taken
}

interface Piece {
  segment: string
  index: number
  cells: number
}

function* pieces(text: string): Generator<Piece> {
  let begin = 0
  for (const [at, part] of text.split(COLOUR).entries()) {
    if (at % 2 === 1) yield { segment: part, index: begin, cells: 0 }
    else
      for (const { segment, index } of graphemes.segment(part)) {
        yield { segment, index: begin + index, cells: widthOf(segment) }
      }
    begin += part.length
  }
}

/** Without its last character as people count them: what Backspace leaves. */
export function withoutLast(text: string): string {
  const last = [...graphemes.segment(text)].at(-1)
  return last ? text.slice(0, last.index) : ""
}

const TAB = "    "

/** Lines of at most `width` cells, broken between words where that is possible. */
export function wrapped(text: string, width: number): string[] {
  const size = Math.max(1, width)
  return text.split("\n").flatMap((line) => brokenLine(line.replaceAll("\t", TAB), size))
}

/** Looks at each character once, because a line may be a megabyte long. */
function brokenLine(line: string, width: number): string[] {
  if (widthOf(line) <= width) return [line]
  const lines: string[] = []
  let begin = 0
  let size = 0
  let space = -1
  for (const { segment, index, cells } of pieces(line)) {
    if (size + cells > width && index > begin) {
      const is_late = space > begin + (index - begin) / 2
      lines.push(line.slice(begin, is_late ? space : index))
      begin = is_late ? space + 1 : index
      size = is_late ? widthOf(line.slice(begin, index)) : 0
      space = -1
    }
    if (segment === " ") space = index
    size += cells
  }
  return repainted([...lines, line.slice(begin)])
}

/** A colour that a break interrupts ends with the line, and goes on in the next one. */
function repainted(lines: string[]): string[] {
  let open = ""
  return lines.map((line) => {
    const begun = open + line
    const last = line.split(COLOUR).at(-2)
    if (last !== undefined) open = last === PLAIN ? "" : last
    return open === "" ? begun : begun + PLAIN
  })
}

const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

/** One bar a number, the highest of them full; nothing at all is the lowest bar. */
export function sparkline(values: readonly number[]): string {
  const top = Math.max(1, ...values)
  return values.map((value) => BARS[Math.round((value / top) * (BARS.length - 1))]).join("")
}

/** `▓▓▓▓▓▓▓░░░`: a bar of `cells` characters. `share` (0 to 1) of them are full. */
export function bar(share: number, cells: number): string {
  const filled = Math.max(0, Math.min(cells, Math.round(share * cells)))
  return "▓".repeat(filled) + "░".repeat(cells - filled)
}

/** `1,234`. */
export const number = (value: number): string => Math.round(value).toLocaleString("en")

/** `1 mail`, `1,234 mails`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${number(count)} ${count === 1 ? noun : plural}`

/** A share as a percentage: `6.1 %`, `0.12 %`. */
export function percent(share: number): string {
  const value = share * 100
  return `${value >= 1 ? Math.round(value * 10) / 10 : Number(value.toPrecision(2))} %`
}

const UNITS = ["B", "KB", "MB", "GB", "TB"]

/** A number of bytes for people: `412 B`, `1.5 MB`. One KB is 1024 bytes, as in the settings. */
export function byteSize(bytes: number): string {
  const steps = Math.floor(Math.log2(Math.max(1, Math.abs(bytes))) / 10)
  const at = Math.min(steps, UNITS.length - 1)
  const value = bytes / 1024 ** at
  return `${at === 0 || Math.abs(value) >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[at]}`
}
