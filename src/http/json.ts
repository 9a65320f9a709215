import { ApiError } from "../core/errors"
import { parseNumbersApart } from "../lib/exact-numbers"

const MAX_DEPTH = 64
const MAX_KEYS = 10_000

const QUOTE = 0x22
const BACKSLASH = 0x5c

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Reads JSON strictly: depth 64, 10,000 keys, no key twice in an object, no `__proto__`. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  let value: unknown
  try {
    value = parseNumbersApart(text)
  } catch {
    throw unreadable("syntax", "The body is not valid JSON.")
  }
  inspect(text)
  return value
}

export const unreadable = (reason: string, message: string) =>
  new ApiError("invalid_json", message, { reason })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw unreadable("encoding", "The body is not valid UTF-8.")
  }
}

/**
 * Looks at the text again for what `JSON.parse` swallows. It is known to be valid here, so a quote
 * begins a string and a colon after one makes it a key.
 */
function inspect(text: string) {
  const open: (string[] | undefined)[] = [] // the keys of each open object; undefined for a list
  let keys = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) {
      const end = endOfString(text, at)
      if (isKey(text, end)) {
        if (++keys > MAX_KEYS) throw unreadable("keys", `More than ${MAX_KEYS} keys.`)
        remember(open.at(-1), text.slice(at, end + 1))
      }
      at = end
    } else if (char === 0x7b || char === 0x5b) {
      open.push(char === 0x7b ? [] : undefined)
      if (open.length > MAX_DEPTH) throw unreadable("depth", `Nested deeper than ${MAX_DEPTH}.`)
    } else if (char === 0x7d || char === 0x5d) {
      open.pop()
    }
  }
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end)) {
    end = text.indexOf('"', end + 1)
  }
  return end
}

/** An odd number of backslashes before the quote. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1
  while (text.charCodeAt(at) === BACKSLASH) at--
  return (quote - at) % 2 === 0
}

function isKey(text: string, end: number): boolean {
  let at = end + 1
  while (text.charCodeAt(at) <= 0x20) at++
  return text[at] === ":"
}

const SMALL = 32

function remember(seen: string[] | undefined, literal: string) {
  const key = literal.includes("\\") ? (JSON.parse(literal) as string) : literal.slice(1, -1)
  if (key === "__proto__") throw unreadable("proto", 'The key "__proto__" is refused.')
  if (!seen) return
  if (seen.length < SMALL ? seen.includes(key) : large(seen).has(key)) {
    throw unreadable("duplicate_key", `The key ${JSON.stringify(key.slice(0, 64))} stands twice.`)
  }
  seen.push(key)
  sets.get(seen)?.add(key)
}

/** An object with many keys gets a set, so that looking for duplicates stays linear. */
const sets = new WeakMap<string[], Set<string>>()

function large(seen: string[]): Set<string> {
  const known = sets.get(seen)
  if (known) return known
  const set = new Set(seen)
  sets.set(seen, set)
  return set
}

/** The same value always as the same text: keys sorted, no white space (for hashes). */
export const canonicalJson = (value: unknown): string => JSON.stringify(sorted(value))

/** A copy to be written at once, which is cheaper than joining the text piece by piece. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const fields = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(fields).sort()) copy[key] = sorted(fields[key])
  return copy
}
