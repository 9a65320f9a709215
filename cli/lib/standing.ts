/** What another service says of a person: `unsubscribed` wants no more mail, and `blocked` can get none. */
type Standing = "active" | "unsubscribed" | "blocked"

/** The fields that say it, each with the names that services give to its column. */
export const STANDING_FIELDS = {
  status: ["subscriptionstatus", "subscriberstatus", "contactstatus", "emailmarketingstatus"],
  subscribed: ["issubscribed"],
  unsubscribed: ["unsubscribeall", "isunsubscribed", "optedout"],
  unsubscribed_at: ["unsubtime", "unsubscribetime"],
  unsubscribe_reason: ["unsubreason"],
  cleaned_at: ["cleantime"],
  "metadata.topic_preferences": ["topicpreferences"],
}

/** The strictest first. */
const WORDS: readonly [Standing, RegExp][] = [
  ["blocked", /^(block(list)?ed|blacklisted|cleaned|bounced|complained|suppressed|[45]\.\d\.\d+)$/],
  [
    "unsubscribed",
    /^(unsubscribed|disabled|opt(ed)?out|pending|unconfirmed|nonsubscribed|transactional|archived|inactive)$/,
  ],
  ["active", /^(active|enabled|subscribed|confirmed)$/],
]

/**
 * What a row says: the strictest of its fields. People that never confirmed, or only bought something, did not ask
 * for mail, so they are unsubscribed. None where nothing is said, or in a word that is not known.
 */
export function standingOf(values: ReadonlyMap<string, unknown>): Standing | undefined {
  const topics = values.get("metadata.topic_preferences")
  const said = [
    plainWord(values.get("status")),
    YES.test(`${values.get("subscribed")}`) ? "subscribed" : "",
    NO.test(`${values.get("subscribed")}`) ? "unsubscribed" : "",
    YES.test(`${values.get("unsubscribed")}`) ? "unsubscribed" : "",
    NO.test(`${values.get("unsubscribed")}`) ? "subscribed" : "",
    values.get("unsubscribed_at") || values.get("unsubscribe_reason") ? "unsubscribed" : "",
    values.get("cleaned_at") ? "cleaned" : "",
    Array.isArray(topics) && topics.length > 0 && topics.every(isOptOut) ? "unsubscribed" : "",
  ]
  return WORDS.find(([, words]) => said.some((word) => words.test(word)))?.[0]
}

/** Without case, spaces, hyphens and underscores. */
export const plainWord = (value: unknown): string =>
  typeof value === "string" ? value.toLowerCase().replaceAll(/[\s_-]/g, "") : ""

const YES = /^(true|t|yes|y|1)$/i
const NO = /^(false|f|no|n|0)$/i

const isOptOut = (topic: { SubscriptionStatus?: unknown } | null): boolean =>
  topic?.SubscriptionStatus === "OPT_OUT"
