/** What text takes on a terminal, in cells: a CJK character or an emoji takes two. */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })
const ASCII = /^[\x20-\x7e]*$/

/** How many cells a text takes. */
export const widthOf = (text: string): number =>
  ASCII.test(text) ? text.length : Bun.stringWidth(text)

/** Exactly `width` cells: padded on the right, or cut with an ellipsis where something is missing. */
export function fitted(text: string, width: number): string {
  if (width <= 0) return ""
  const size = widthOf(text)
  if (size <= width) return text + " ".repeat(width - size)
  const short = `${head(text, width - 1)}…`
  return short + " ".repeat(Math.max(0, width - widthOf(short)))
}

/** The same with the text at the right edge, for numbers. */
export function rightAligned(text: string, width: number): string {
  const size = widthOf(text)
  return size > width ? fitted(text, width) : " ".repeat(width - size) + text
}

/** As many whole characters as go into `width` cells; a wide one never hangs over. */
export function head(text: string, width: number): string {
  if (ASCII.test(text)) return text.slice(0, Math.max(0, width))
  let taken = ""
  let size = 0
  for (const { segment } of graphemes.segment(text)) {
    size += Bun.stringWidth(segment)
    if (size > width) break
    taken += segment
  }
  return taken
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
  for (const { segment, index } of graphemes.segment(line)) {
    const cells = widthOf(segment)
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
  return [...lines, line.slice(begin)]
}

const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

/** One bar a number, the highest of them full; nothing at all is the lowest bar. */
export function sparkline(values: readonly number[]): string {
  const top = Math.max(1, ...values)
  return values.map((value) => BARS[Math.round((value / top) * (BARS.length - 1))]).join("")
}

/** `▓▓▓▓▓▓▓░░░ 7/10`: the number says the same as the bar. */
export function meter(value: number, full: number): string {
  const filled = Math.max(0, Math.min(full, value))
  return `${"▓".repeat(filled)}${"░".repeat(full - filled)} ${value}/${full}`
}

/** `38 ms`, `2.4 s`, `3 min`, `2 h`, `4 d`. */
export function spanText(milliseconds: number): string {
  const size = Math.max(0, milliseconds)
  if (size < 1000) return `${Math.round(size)} ms`
  if (size < 10_000) return `${(size / 1000).toFixed(1)} s`
  if (size < 60_000) return `${Math.floor(size / 1000)} s`
  if (size < 3_600_000) return `${Math.floor(size / 60_000)} min`
  if (size < 86_400_000) return `${Math.floor(size / 3_600_000)} h`
  return `${Math.floor(size / 86_400_000)} d`
}

/** `3 s`, `12 min`: an age need not be as exact as what something took. */
export const ageText = (seconds: number): string =>
  seconds < 60 ? `${Math.round(seconds)} s` : spanText(seconds * 1000)

/** `in 58 s`, `now`, or nothing where there is no time. */
export function until(iso: string | null | undefined, now: number): string {
  if (!iso) return ""
  const left = Date.parse(iso) - now
  return left > 0 ? `in ${ageText(Math.ceil(left / 1000))}` : "now"
}

export const number = (value: number): string => Math.round(value).toLocaleString("en")

/** Two digits that mean something: `0.7 %`, `0.01 %`, `12 %`. */
export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (100 * part) / whole
  const digits = share === 0 || share >= 10 ? 0 : share >= 0.1 ? 1 : 2
  return `${share.toFixed(digits)} %`
}

/** The same function, which answers its last call again as long as it gets the same arguments. */
export function remembered<Args extends readonly unknown[], Result>(
  make: (...args: Args) => Result,
): (...args: Args) => Result {
  let last: { args: Args; result: Result } | undefined
  return (...args) => {
    const is_same = last?.args.every((value, at) => Object.is(value, args[at]))
    if (!last || !is_same) last = { args, result: make(...args) }
    return last.result
  }
}
