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

const BLOCKED = /^(block(list)?ed|blacklisted|cleaned|bounced|complained|suppressed|[45]\.\d\.\d+)$/
const UNSUBSCRIBED =
  /^(unsubscribed|disabled|opt(ed)?out|pending|unconfirmed|nonsubscribed|transactional|archived|inactive)$/
const ACTIVE = /^(active|enabled|subscribed|confirmed)$/

/**
 * What a row says: the strictest of its fields. People that never confirmed, or only bought something, did not ask
 * for mail, so they are unsubscribed. None where nothing is said, or in a word that is not known.
 */
export function standingOf(values: ReadonlyMap<string, unknown>): Standing | undefined {
  const topics = values.get("metadata.topic_preferences")
  const word = plainWord(values.get("status"))
  const says = (field: string, answer: RegExp) => answer.test(`${values.get(field)}`)
  if (BLOCKED.test(word) || values.get("cleaned_at")) return "blocked"
  if (UNSUBSCRIBED.test(word) || says("subscribed", NO) || says("unsubscribed", YES))
    return "unsubscribed"
  if (values.get("unsubscribed_at") || values.get("unsubscribe_reason")) return "unsubscribed"
  if (Array.isArray(topics) && topics.length > 0 && topics.every(isOptOut)) return "unsubscribed"
  if (ACTIVE.test(word) || says("subscribed", YES) || says("unsubscribed", NO)) return "active"
  return undefined
}

/** Without case, spaces, hyphens and underscores. */
export const plainWord = (value: unknown): string =>
  typeof value === "string" ? value.toLowerCase().replaceAll(/[\s_-]/g, "") : ""

const YES = /^(true|t|yes|y|1)$/i
const NO = /^(false|f|no|n|0)$/i

const isOptOut = (topic: { SubscriptionStatus?: unknown } | null): boolean =>
  topic?.SubscriptionStatus === "OPT_OUT"
