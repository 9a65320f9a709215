import type { Problems } from "../http/problems"
import { isLonger } from "../lib/characters"

const MOST_TAGS = 10
const MAX_TAG = 100
const MOST_METADATA = 50
const MAX_METADATA_KEY = 64
const MAX_METADATA_BYTES = 16_384
const MOST_HEADERS = 25
const MAX_HEADER_VALUE = 998
const HEADER_NAME = /^[A-Za-z0-9-]{1,76}$/
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/** What the service writes itself: a second one would contradict it. */
const OWN_HEADERS =
  /^(from|to|cc|bcc|subject|date|sender|reply-to|return-path|received|message-id|dkim-signature|mime-version|content-.*|arc-.*)$/i

/** `["a"]`, or `[{name, value}]` which becomes `name:value`. */
export function readTags(value: unknown, problems: Problems): string[] {
  if (value == null) return []
  if (!Array.isArray(value) || value.length > MOST_TAGS) {
    problems.add("tags", "invalid", `A list of at most ${MOST_TAGS} tags.`)
    return []
  }
  return value.flatMap((item, at) => {
    const tag = typeof item === "string" ? item : pair(item)
    if (tag && !isLonger(tag, MAX_TAG) && !CONTROL.test(tag) && tag.isWellFormed()) return [tag]
    problems.add(`tags.${at}`, "invalid", `A tag is one line of 1 to ${MAX_TAG} characters.`)
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
    problems.add("metadata", "invalid", "An object.")
    return {}
  }
  const keys = Object.keys(value)
  if (keys.length > MOST_METADATA) {
    problems.add("metadata", "too_many", `At most ${MOST_METADATA} keys.`)
  }
  if (keys.some((key) => isLonger(key, MAX_METADATA_KEY))) {
    problems.add("metadata", "invalid", `A key has at most ${MAX_METADATA_KEY} characters.`)
  }
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_METADATA_BYTES) {
    problems.add("metadata", "too_large", `At most ${MAX_METADATA_BYTES} bytes of JSON.`)
  }
  return value as Record<string, unknown>
}

export function readHeaders(value: unknown, problems: Problems): Record<string, string> {
  if (value == null) return {}
  if (typeof value !== "object" || Array.isArray(value)) {
    problems.add("headers", "invalid", "An object of names and values.")
    return {}
  }
  const fields = Object.entries(value)
  if (fields.length > MOST_HEADERS) {
    problems.add("headers", "too_many", `At most ${MOST_HEADERS} headers.`)
    return {}
  }
  for (const [name, text] of fields) checkHeader(name, text, problems)
  return value as Record<string, string>
}

function checkHeader(name: string, text: unknown, problems: Problems) {
  if (!HEADER_NAME.test(name)) {
    return problems.add("headers", "invalid", "A header name has letters, digits and hyphens.")
  }
  const path = `headers.${name}`
  if (OWN_HEADERS.test(name)) {
    return problems.add(path, "invalid", "The service writes this header itself.")
  }
  const isGood =
    typeof text === "string" && !isLonger(text, MAX_HEADER_VALUE) && !CONTROL.test(text)
  if (isGood && text.isWellFormed()) return
  problems.add(path, "invalid", `One line of at most ${MAX_HEADER_VALUE} characters.`)
}
