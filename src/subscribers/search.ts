import { and, eq, gt, gte, lt, type SQL, sql } from "drizzle-orm"
import { invalid } from "../core/errors"
import type { Reader } from "../store/store"
import type { IdSource } from "./id-walk"
import { SHORT_PREFIX, wordsIn } from "./search-words"
import { subscribers, subscriberWords } from "./tables"

const MOST_WORDS = 8

/** As many different words that begin alike are walked side by side. */
const MOST_STREAMS = 64

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
export const hasWord = (word: string): SQL => sql`${subscribers.search_key} LIKE ${`% ${word}%`}`

/** Every entry of the index that begins like the word. A short one is an entry itself. */
export const entriesLike = (project_id: string, word: string): IdSource => ({
  rows: subscriberWords,
  id: subscriberWords.subscriber_id,
  where: and(
    eq(subscriberWords.project_id, project_id),
    isShort(word) ? eq(subscriberWords.word, word) : beginsWith(word),
  ),
})

/** Whether the index has one entry for all that begins like the word. */
export const isShort = (word: string): boolean => [...word].length <= SHORT_PREFIX

const beginsWith = (word: string) =>
  and(gte(subscriberWords.word, word), lt(subscriberWords.word, word + HIGHEST))

/** No word goes on with this character, which sorts behind all others. */
const HIGHEST = "\u{10ffff}"

/**
 * The words of a project that begin like this one, each as a source that is in the order of ids;
 * undefined where they are too many.
 */
export async function streamsOf(
  db: Reader,
  project_id: string,
  prefix: string,
): Promise<IdSource[] | undefined> {
  const among = (after: SQL) =>
    sql`SELECT min(${subscriberWords.word}) FROM ${subscriberWords} WHERE ${and(
      eq(subscriberWords.project_id, project_id),
      after,
      lt(subscriberWords.word, prefix + HIGHEST),
    )}`
  // Each step takes the next word, so that the walk goes over words and not over their rows.
  const walk = sql`(WITH RECURSIVE step(word) AS (SELECT (${among(gte(subscriberWords.word, prefix))})
    UNION ALL SELECT (${among(gt(subscriberWords.word, sql`step.word`))}) FROM step WHERE step.word IS NOT NULL)
    SELECT word FROM step WHERE word IS NOT NULL LIMIT ${MOST_STREAMS + 1}) AS found`
  const words = await db.select({ word: sql<string>`found.word` }).from(walk)
  if (words.length > MOST_STREAMS) return undefined
  return words.map(({ word }) => ({
    ...entriesLike(project_id, prefix),
    where: and(eq(subscriberWords.project_id, project_id), eq(subscriberWords.word, word)),
  }))
}
