export interface Nearest {
  text: string
  /** Whether it is close enough to be what was meant. */
  is_near: boolean
}

/** The text with the fewest typing errors away; undefined only where there is none at all. */
export function nearest(name: string, among: readonly string[]): Nearest | undefined {
  const [best] = among
    .map((text) => ({ text, away: distance(name, text) }))
    .sort((a, b) => a.away - b.away)
  return best && { text: best.text, is_near: best.away <= Math.max(2, name.length / 2) }
}

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
