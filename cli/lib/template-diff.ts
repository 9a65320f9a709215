const CONTEXT = 3

/** Above this, lines are compared as one block: the table of all pairs would be too large. */
const MOST_CELLS = 4_000_000

interface Line {
  mark: " " | "-" | "+"
  text: string
}

/** The differences of two texts in the unified format of diff(1); empty where there are none. */
export function unifiedDiff(file: string, before: string, after: string): string {
  if (before === after) return ""
  const lines = linesOf(split(before), split(after))
  const hunks = hunksOf(lines).map((hunk) => hunkText(lines, hunk))
  return `--- server/${file}\n+++ files/${file}\n${hunks.join("")}`
}

function split(text: string): string[] {
  if (text === "") return []
  const lines = text.split("\n")
  return text.endsWith("\n") ? lines.slice(0, -1) : lines
}

function linesOf(before: string[], after: string[]): Line[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1
  let end = 0
  const most = Math.min(before.length, after.length) - start
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1
  const same = (texts: string[]) => texts.map((text): Line => ({ mark: " ", text }))
  return [
    ...same(before.slice(0, start)),
    ...changed(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(before.slice(before.length - end)),
  ]
}

/** By the longest common subsequence. */
function changed(before: string[], after: string[]): Line[] {
  const removed = before.map((text): Line => ({ mark: "-", text }))
  const added = after.map((text): Line => ({ mark: "+", text }))
  const width = after.length + 1
  if ((before.length + 1) * width > MOST_CELLS) return [...removed, ...added]
  const lengths = new Uint32Array((before.length + 1) * width)
  for (let row = before.length - 1; row >= 0; row--) {
    for (let column = after.length - 1; column >= 0; column--) {
      const here = row * width + column
      lengths[here] =
        before[row] === after[column]
          ? (lengths[here + width + 1] ?? 0) + 1
          : Math.max(lengths[here + width] ?? 0, lengths[here + 1] ?? 0)
    }
  }
  return walk(removed, added, (row, column) => lengths[row * width + column] ?? 0)
}

function walk(removed: Line[], added: Line[], common: (row: number, column: number) => number) {
  const lines: Line[] = []
  let [row, column] = [0, 0]
  while (row < removed.length || column < added.length) {
    const [old, young] = [removed[row], added[column]]
    if (old && young && old.text === young.text) {
      lines.push({ mark: " ", text: old.text })
      row += 1
      column += 1
    } else if (old && (!young || common(row + 1, column) >= common(row, column + 1))) {
      lines.push(old)
      row += 1
    } else if (young) {
      lines.push(young)
      column += 1
    }
  }
  return lines
}

/** Changes with the lines around them, as one piece where these meet: start and end among the lines. */
function hunksOf(lines: Line[]): [start: number, end: number][] {
  const hunks: [start: number, end: number][] = []
  for (const [place, { mark }] of lines.entries()) {
    if (mark === " ") continue
    const last = hunks.at(-1)
    const end = Math.min(lines.length, place + 1 + CONTEXT)
    if (last && place - CONTEXT <= last[1]) last[1] = end
    else hunks.push([Math.max(0, place - CONTEXT), end])
  }
  return hunks
}

function hunkText(lines: Line[], [start, end]: [start: number, end: number]): string {
  const count = (some: Line[], without: Line["mark"]) =>
    some.filter(({ mark }) => mark !== without).length
  const [lead, shown] = [lines.slice(0, start), lines.slice(start, end)]
  const range = (without: Line["mark"]) => {
    const length = count(shown, without)
    return `${count(lead, without) + (length === 0 ? 0 : 1)},${length}`
  }
  const head = `@@ -${range("+")} +${range("-")} @@\n`
  return head + shown.map(({ mark, text }) => `${mark}${text}\n`).join("")
}
