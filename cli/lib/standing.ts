/** What another service says of a person: `unsubscribed` wants no more mail, and `blocked` can get none. */
export type Standing = "active" | "unsubscribed" | "blocked"

/** The fields that say it, each with the names that services give to its column. */
export const STANDING_FIELDS = {
  status: ["subscriptionstatus", "subscriberstatus", "contactstatus", "emailmarketingstatus"],
  subscribed: ["issubscribed"],
  unsubscribed: ["unsubscribeall", "isunsubscribed", "optedout"],
  unsubscribed_at: ["unsubtime", "unsubscribetime"],
  unsubscribe_reason: ["unsubreason"],
  cleaned_at: ["cleantime"],
  "metadata.topic_preferences": ["topicpreferences"],
} as const

const WORDS: Readonly<Record<string, Standing>> = {
  ...{ active: "active", enabled: "active", subscribed: "active", confirmed: "active" },
  ...{ unsubscribed: "unsubscribed", disabled: "unsubscribed", optedout: "unsubscribed" },
  ...{ pending: "unsubscribed", unconfirmed: "unsubscribed", nonsubscribed: "unsubscribed" },
  ...{ transactional: "unsubscribed", archived: "unsubscribed", inactive: "unsubscribed" },
  ...{ blocked: "blocked", blocklisted: "blocked", blacklisted: "blocked", cleaned: "blocked" },
  ...{ bounced: "blocked", complained: "blocked", suppressed: "blocked" },
}

/**
 * What a row says: the strictest of its fields. People that never confirmed, or only bought something, did not ask
 * for mail, so they are unsubscribed. None where nothing is said, or in a word that is not known.
 */
export function standingOf(values: ReadonlyMap<string, unknown>): Standing | undefined {
  const topics = values.get("metadata.topic_preferences")
  const said: (Standing | undefined)[] = [
    WORDS[plainWord(values.get("status"))],
    ofAnswer(values.get("subscribed"), "active", "unsubscribed"),
    ofAnswer(values.get("unsubscribed"), "unsubscribed", "active"),
    isGiven(values.get("unsubscribed_at")) || isGiven(values.get("unsubscribe_reason"))
      ? "unsubscribed"
      : undefined,
    isGiven(values.get("cleaned_at")) ? "blocked" : undefined,
    Array.isArray(topics) && topics.length > 0 && topics.every(isOptOut)
      ? "unsubscribed"
      : undefined,
  ]
  return (["blocked", "unsubscribed", "active"] as const).find((one) => said.includes(one))
}

const plainWord = (value: unknown): string =>
  typeof value === "string" ? value.toLowerCase().replaceAll(/[\s_-]/g, "") : ""

/** A yes or no, in the words of several languages of programming. */
function ofAnswer(value: unknown, yes: Standing, no: Standing): Standing | undefined {
  const word = String(value ?? "").toLowerCase()
  if (/^(true|t|yes|y|1)$/.test(word)) return yes
  return /^(false|f|no|n|0)$/.test(word) ? no : undefined
}

const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== false

const isOptOut = (topic: { SubscriptionStatus?: unknown } | null): boolean =>
  topic?.SubscriptionStatus === "OPT_OUT"
