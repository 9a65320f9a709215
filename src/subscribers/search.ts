import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm"
import { invalid } from "../core/errors"
import type { IdSource } from "../store/rows"
import type { IndexedFilter } from "./conditions"
import { firstLetters, SHORT_PREFIX, wordsIn } from "./search-words"
import { subscribers, subscriberWords } from "./tables"

const MOST_WORDS = 8

/** The words of a search, of which none is the beginning of another. Throws 422. */
export function readSearch(text: string | undefined): string[] {
  if (text === undefined) return []
  const words = wordsIn(text)
  if (words.length === 0)
    throw invalid("search", "invalid", "The value must have at least one letter or digit.")
  if (words.length > MOST_WORDS)
    throw invalid("search", "invalid", `The value must have at most ${MOST_WORDS} words.`)
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
