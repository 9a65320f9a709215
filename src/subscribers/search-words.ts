import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm"
import { invalid } from "../core/errors"
import type { IdSource } from "../store/rows"
import type { IndexedFilter } from "./conditions"
import type { SubscriberRow } from "./find-subscriber"
import { subscribers, subscriberWords } from "./tables"

type Named = Pick<SubscriberRow, "external_id" | "email" | "name">

/** Of one subscriber: a name that is all separators would have hundreds. */
const MOST_WORDS = 64

/** Letters of a word that count. What comes behind them is left out, in searches as well. */
const LONGEST_WORD = 40

/** First letters that have entries of their own: so many words begin with them that no list of words helps. */
const SHORT_PREFIX = 3

/** Letters and digits are words of their own: `user42` is found by `user` and by `42`. */
const WORD = /[\p{L}\p{M}]+|\p{N}+/gu

/** The words of a text in the form in which they compare: NFKC (UAX #15), lower case, each once. */
function wordsIn(text: string): string[] {
  const plain = text.normalize("NFKC").toLowerCase().normalize("NFKC").replaceAll("ς", "σ")
  const words = plain.match(WORD) ?? []
  return [...new Set(words.map((word) => firstLetters(word, LONGEST_WORD)))].slice(0, MOST_WORDS)
}

/** The words of a subscriber, each between two spaces: `" ann example test "`. */
export function searchKeyOf({ external_id, email, name }: Named): string {
  const words = wordsIn([external_id, name ?? "", email ?? ""].join(" "))
  return words.length === 0 ? "" : ` ${words.join(" ")} `
}

/** The entries of the index by which a subscriber is found. */
export function entriesOf(search_key: string): Set<string> {
  const entries = new Set<string>()
  for (const word of search_key.split(" ")) {
    for (let length = 1; length <= SHORT_PREFIX; length++) {
      const prefix = firstLetters(word, length)
      if (prefix !== "") entries.add(prefix)
    }
    if (word !== "") entries.add(word)
  }
  return entries
}

/** Beginnings of words that have posting lists, in letters. Shorter ones would cost more than they bring. */
export const LEAST_LISTED = SHORT_PREFIX
export const MOST_LISTED = 6

/** The posting list of a tag: no word has this character. */
export const tagTerm = (tag: string): string => `#${tag}`

/** The posting lists in which a subscriber stands: of its tags, and of beginnings of its words. */
export function termsOf({ search_key, tags }: { search_key: string; tags: string[] }): Set<string> {
  const terms = new Set<string>(tags.map(tagTerm))
  for (const word of search_key.split(" ")) {
    const letters = [...firstLetters(word, MOST_LISTED)]
    for (let length = LEAST_LISTED; length <= letters.length; length++) {
      terms.add(letters.slice(0, length).join(""))
    }
  }
  return terms
}

/** Whole characters: half of a surrogate pair is no letter. */
export const firstLetters = (word: string, most: number): string =>
  word.length <= most ? word : [...word].slice(0, most).join("")

const MOST_SEARCHED = 8

/** The words of a search, of which none is the beginning of another. Throws 422. */
export function readSearch(text: string | undefined): string[] {
  if (text === undefined) return []
  const words = wordsIn(text)
  if (words.length === 0)
    throw invalid("search", "invalid", "The value must have at least one letter or digit.")
  if (words.length > MOST_SEARCHED)
    throw invalid("search", "invalid", `The value must have at most ${MOST_SEARCHED} words.`)
  return words.filter((word) => !words.some((other) => other !== word && other.startsWith(word)))
}

/** Whether one of the subscriber's words begins like this. */
const hasWord = (word: string): SQL => sql`${subscribers.search_key} LIKE ${`% ${word}%`}`

/** The subscribers that have a word which begins like this, by the entries of the index. */
export function wordFilter(project_id: string, word: string): IndexedFilter {
  const ours = eq(subscriberWords.project_id, project_id)
  const entries = (which: SQL | undefined): IdSource => ({
    rows: subscriberWords,
    id: subscriberWords.subscriber_id,
    where: and(ours, which),
  })
  const first_letters = firstLetters(word, SHORT_PREFIX)
  const source = entries(eq(subscriberWords.word, first_letters))
  if (first_letters === word) return { source }
  const begins = and(gte(subscriberWords.word, word), lt(subscriberWords.word, word + HIGHEST))
  return { source, row: hasWord(word), exact: entries(begins) }
}

/** No word goes on with this character, which sorts behind all others. */
const HIGHEST = "\u{10ffff}"
