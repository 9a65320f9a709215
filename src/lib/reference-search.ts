/** One place of the reference that a search can find. */
export interface SearchEntry {
  title: string
  /** The address of the place. */
  to: string
  kind: "operation" | "guide" | "error" | "event"
  /** What else is found by: a path, the words of a text. In lower case. */
  words: string
}

const MOST_RESULTS = 30

/** Where a word of the search stands in an entry, and what that is worth. */
const WHOLE = 24
const TITLE_WORD = 8
const TITLE_PART = 4
const WORD = 2
const PART = 1

/** They stand in every text. */
const SMALL = /^(?:a|an|and|do|for|from|how|i|in|is|of|on|or|the|to|what|with)$/

/** The entries with every word of the query, also in the singular, the best first. At most 30. */
export function searchReference(entries: readonly SearchEntry[], query: string): SearchEntry[] {
  const all = wordsOf(query)
  if (all.length === 0) return []
  const large = all.filter((word) => !SMALL.test(word))
  const words = (large.length > 0 ? large : all).map((word) => word.replace(/(?<=\p{L}{3})s$/u, ""))
  const whole = query.trim().toLowerCase()
  return entries
    .map((entry) => ({ entry, worth: worthOf(entry, words, whole) }))
    .filter(({ worth }) => worth > 0)
    .sort((a, b) => b.worth - a.worth || a.entry.title.length - b.entry.title.length)
    .slice(0, MOST_RESULTS)
    .map(({ entry }) => entry)
}

/** The words of a text in lower case, each once. */
export const wordsOf = (text: string): string[] => [
  ...new Set(text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_@.-]*[\p{L}\p{N}]|[\p{L}\p{N}]/gu)),
]

function worthOf({ title, words: text }: SearchEntry, words: string[], whole: string): number {
  const name = title.toLowerCase()
  const each = words.map((word) => worthOfWord(name, text, word))
  if (each.includes(0)) return 0
  const is_path = whole.includes("/") && `${text} `.startsWith(`${whole} `)
  const is_whole = name === whole || is_path
  return each.reduce((sum, one) => sum + one, is_whole ? WHOLE : 0)
}

function worthOfWord(title: string, text: string, word: string): number {
  const at = title.indexOf(word)
  if (at >= 0) return at === 0 || title[at - 1] === " " ? TITLE_WORD : TITLE_PART
  if (` ${text} `.includes(` ${word} `) || ` ${text} `.includes(` ${word}s `)) return WORD
  return text.includes(word) ? PART : 0
}
