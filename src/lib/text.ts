/** 1 to 63 of `a-z 0-9 -`, beginning and ending with a letter or digit. */
export const SLUG = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"

/** The name of a category on the wire: 1 to 64 of `a-z 0-9 _ -`, beginning with a letter or digit. */
export const CATEGORY_SLUG = "^[a-z0-9][a-z0-9_-]{0,63}$"

/** The key of a topic on the wire: the same, and dots. */
export const TOPIC_KEY = "^[a-z0-9][a-z0-9._-]{0,63}$"

const SLUG_CHARACTERS = 50

/** A slug from a name: `Große Küche` becomes `grosse-kuche`. Empty when nothing is left of it. */
export function slugFrom(name: string): string {
  const plain = name.replaceAll("ß", "ss").normalize("NFKD").toLowerCase()
  const dashed = plain.replace(/\p{M}/gu, "").replace(/[^a-z0-9]+/g, "-")
  return dashed.slice(0, SLUG_CHARACTERS).replace(/^-+|-+$/g, "")
}

/**
 * The form for searching in any case. It is stored beside the text, because a database may
 * lower-case ASCII only.
 */
export const searchable = (text: string): string => text.normalize("NFC").toLowerCase()

/** A pattern of LIKE, with a backslash as its escape, for a part of a `searchable` text. */
export const partOf = (text: string): string => anywhere(searchable(text))

/** The same for a part of a text as it stands. */
export const anywhere = (text: string): string => `%${text.replace(/[\\%_]/g, "\\$&")}%`

/**
 * Lengths of text as people count them: Unicode code points, as `maxLength` of JSON Schema does.
 * An emoji outside the basic plane is one character, although JavaScript stores it in two units.
 */
export function countCharacters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** Whether the text has more than `most` characters. Counts only where the length leaves a doubt. */
export const isLonger = (text: string, most: number): boolean =>
  text.length > most && countCharacters(text) > most

const MOST_SHOWN = 64

/** The beginning of a name that a request gives, to show in an error. */
export const shortened = (name: string): string => name.slice(0, MOST_SHOWN).toWellFormed()

/** The text with the fewest typing errors; none where it has so many that something else is meant. */
export function nearest(name: string, among: readonly string[]): string | undefined {
  const most = name.length < 5 ? 1 : 2 // of a short name, two letters are most of it
  const [best] = among
    .filter((text) => Math.abs(text.length - name.length) <= most)
    .map((text) => ({ text, away: distance(name, text) }))
    .sort((a, b) => a.away - b.away)
  return best && best.away <= most ? best.text : undefined
}

/** Letters that were left out, added, replaced or turned round with their neighbour; one row at a time. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const is_turned = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const turned = is_turned ? (before[j - 2] ?? 0) + 1 : change
      next.push(Math.min(change, turned, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** A text from elsewhere as a part of a line, whose order it does not change: isolated by its first strong letter (UAX #9). */
export const isolated = (text: string): string => `\u2068${text}\u2069`

/** The object of a JSON text; undefined for what is no JSON, or no object. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
