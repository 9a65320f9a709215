const CONTEXT = 3

/** Above this, lines are compared as one block: the table of all pairs would be too large. */
const MOST_CELLS = 4_000_000

/** The differences of two texts in the unified format of diff(1); empty where there are none. */
export function unifiedDiff(file: string, before: string, after: string): string {
  if (before === after) return ""
  const lines = markedLines(split(before), split(after))
  const hunks = hunksOf(lines).map((hunk) => hunkText(lines, hunk))
  return `--- server/${file}\n+++ files/${file}\n${hunks.join("")}`
}

const split = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"))

/** Each line behind its mark: a blank, a minus or a plus. */
function markedLines(before: string[], after: string[]): string[] {
  const most = Math.min(before.length, after.length)
  let start = 0
  while (start < most && before[start] === after[start]) start += 1
  let end = 0
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1
  const same = (lines: string[]) => lines.map((line) => ` ${line}`)
  return [
    ...same(before.slice(0, start)),
    ...changed(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ]
}

/** By the longest common subsequence, whose length from each pair of lines on stands in a table. */
function changed(before: string[], after: string[]): string[] {
  const width = after.length + 1
  const is_too_long = (before.length + 1) * width > MOST_CELLS
  const lengths = new Uint32Array(is_too_long ? 0 : (before.length + 1) * width)
  const common = (row: number, column: number) => lengths[row * width + column] ?? 0
  for (let row = is_too_long ? -1 : before.length - 1; row >= 0; row--) {
    for (let column = after.length - 1; column >= 0; column--) {
      lengths[row * width + column] =
        before[row] === after[column]
          ? common(row + 1, column + 1) + 1
          : Math.max(common(row + 1, column), common(row, column + 1))
    }
  }
  const lines: string[] = []
  let [row, column] = [0, 0]
  while (row < before.length || column < after.length) {
    const is_old = row < before.length
    const is_young = column < after.length
    if (is_old && is_young && !is_too_long && before[row] === after[column]) {
      lines.push(` ${before[row]}`)
      row += 1
      column += 1
    } else if (is_old && (!is_young || common(row + 1, column) >= common(row, column + 1))) {
      lines.push(`-${before[row]}`)
      row += 1
    } else {
      lines.push(`+${after[column]}`)
      column += 1
    }
  }
  return lines
}

type Hunk = [start: number, end: number]

/** Changes with the lines around them, as one piece where these meet: start and end among the lines. */
function hunksOf(lines: string[]): Hunk[] {
  const hunks: Hunk[] = []
  for (const [place, line] of lines.entries()) {
    if (line.startsWith(" ")) continue
    const last = hunks.at(-1)
    const end = Math.min(lines.length, place + 1 + CONTEXT)
    if (last && place - CONTEXT <= last[1]) last[1] = end
    else hunks.push([Math.max(0, place - CONTEXT), end])
  }
  return hunks
}

function hunkText(lines: string[], [start, end]: Hunk): string {
  const range = (other: "+" | "-") => {
    const count = (from: number, to: number) =>
      lines.slice(from, to).filter((line) => !line.startsWith(other)).length
    const length = count(start, end)
    return `${count(0, start) + (length === 0 ? 0 : 1)},${length}`
  }
  const shown = lines.slice(start, end).map((line) => `${line}\n`)
  return `@@ -${range("+")} +${range("-")} @@\n${shown.join("")}`
}
