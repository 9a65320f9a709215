import { checkMetadata } from "../http/field-schemas"
import type { Problems } from "../http/problems"
import { isLonger } from "../lib/text"

const MOST_TAGS = 10
const MAX_TAG = 100
const MOST_HEADERS = 25
const MAX_HEADER_VALUE = 998
const HEADER_NAME = /^[A-Za-z0-9-]{1,76}$/
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/**
 * What the service or the servers on the way write themselves: a second one would contradict it,
 * or say something about the message in their name (contract 20, section 1.1).
 */
const OWN_HEADERS = new RegExp(
  `^(${[
    "from|to|cc|bcc|subject|date|sender|reply-to|return-path|received|message-id|mime-version",
    "dkim-signature|domainkey-signature|authentication-results|received-spf|arc-.*",
    "delivered-to|errors-to|resent-.*|content-.*|x-ses-.*",
  ].join("|")})$`,
  "i",
)

/** `["a"]`, or `[{name, value}]` which becomes `name:value`. */
export function readTags(value: unknown, problems: Problems): string[] {
  if (value == null) return []
  if (!Array.isArray(value) || value.length > MOST_TAGS) {
    problems.add("tags", "invalid", `The value must be a list of at most ${MOST_TAGS} tags.`)
    return []
  }
  return value.flatMap((item, at) => {
    const tag = typeof item === "string" ? item : pair(item)
    if (tag && !isLonger(tag, MAX_TAG) && !CONTROL.test(tag) && tag.isWellFormed()) return [tag]
    problems.add(`tags.${at}`, "invalid", `A tag must be one line of 1 to ${MAX_TAG} characters.`)
    return []
  })
}

function pair(item: unknown): string | undefined {
  const { name, value } = (item ?? {}) as Record<string, unknown>
  return typeof name === "string" && typeof value === "string" ? `${name}:${value}` : undefined
}

export function readMetadata(value: unknown, problems: Problems): Record<string, unknown> {
  if (value == null) return {}
  if (typeof value !== "object" || Array.isArray(value)) {
    problems.add("metadata", "invalid", "The value must be an object.")
    return {}
  }
  checkMetadata(value, problems)
  return value as Record<string, unknown>
}

export function readHeaders(value: unknown, problems: Problems): Record<string, string> {
  if (value == null) return {}
  if (typeof value !== "object" || Array.isArray(value)) {
    problems.add("headers", "invalid", "The value must be an object of names and values.")
    return {}
  }
  const fields = Object.entries(value)
  if (fields.length > MOST_HEADERS) {
    problems.add(
      "headers",
      "too_many",
      `An email may have at most ${MOST_HEADERS} headers of its own.`,
    )
    return {}
  }
  for (const [name, text] of fields) checkHeader(name, text, problems)
  return value as Record<string, string>
}

function checkHeader(name: string, text: unknown, problems: Problems) {
  if (!HEADER_NAME.test(name)) {
    return problems.add(
      "headers",
      "invalid",
      "A header name must have only letters, digits and hyphens.",
    )
  }
  const path = `headers.${name}`
  if (OWN_HEADERS.test(name)) {
    return problems.add(
      path,
      "invalid",
      "You cannot set this header. The service or a mail server on the way writes it.",
    )
  }
  const isGood =
    typeof text === "string" && !isLonger(text, MAX_HEADER_VALUE) && !CONTROL.test(text)
  if (isGood && text.isWellFormed()) return
  problems.add(
    path,
    "invalid",
    `The value must be one line of at most ${MAX_HEADER_VALUE} characters.`,
  )
}
