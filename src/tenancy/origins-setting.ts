import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { text } from "../lib/record-fields"

const MOST_ORIGINS = 100
const MOST_CHARACTERS = 300

export const originsAnswer = t.Array(text("https://app.example.com"), {
  description:
    "The origins of web pages that may use the token of a subscriber. With an empty list, every page may.",
})

export const originsPatch = t.Union([
  t.Array(t.String({ description: "An origin, such as https://app.example.com." }), {
    maxItems: MOST_ORIGINS,
  }),
  t.Null(),
])

/** Reads origins in the form in which browsers send them (RFC 6454, section 6.2), each once. */
export function readOrigins(
  given: unknown,
  path: string,
  problems: Problems,
): string[] | undefined {
  if (!Array.isArray(given)) {
    return problems.add(path, "invalid", "The value must be a list of origins, or null.")
  }
  if (given.length > MOST_ORIGINS) {
    return problems.add(path, "too_many", `The list must have at most ${MOST_ORIGINS} origins.`)
  }
  const origins = given.map((one: unknown) => originOf(one))
  for (const [at, origin] of origins.entries()) {
    if (origin === undefined) problems.add(`${path}.${at}`, "invalid", HINT)
  }
  return [...new Set(origins.filter((origin) => origin !== undefined))]
}

const HINT =
  "The value must be one origin without a path and without *, such as https://app.example.com."

/** A scheme with a host, and nothing behind them; apps in a shell have schemes of their own. A `*` would match no page. */
function originOf(given: unknown): string | undefined {
  if (typeof given !== "string" || given.length > MOST_CHARACTERS) return undefined
  const url = URL.parse(given)
  if (!url || url.host === "" || url.username !== "" || url.password !== "") return undefined
  if (/[?#*\\\s]/.test(given) || !["", "/"].includes(url.pathname)) return undefined
  return `${url.protocol}//${url.host}`
}
