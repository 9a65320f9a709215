import { parseNumbersApart } from "../lib/exact-numbers"
import { JsonScan, unreadable } from "./json-scan"

/** Reads JSON strictly, within the limits of `JsonScan`. */
export function parseJson(bytes: Uint8Array): unknown {
  new JsonScan().feed(bytes)
  return parseScanned([bytes])
}

/** The value of a text, in parts, that a `JsonScan` let pass. Throws `invalid_json`. */
export function parseScanned(parts: readonly Uint8Array[]): unknown {
  const text = decode(parts)
  try {
    return parseNumbersApart(text)
  } catch {
    throw unreadable("syntax", "The body is not valid JSON.")
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

function decode(parts: readonly Uint8Array[]): string {
  const [only = NOTHING] = parts
  try {
    return utf8.decode(parts.length < 2 ? only : Buffer.concat(parts))
  } catch {
    throw unreadable("encoding", "The body is not valid UTF-8.")
  }
}

const NOTHING = new Uint8Array()

/** The same value always as the same text: keys sorted, no white space (for hashes). */
export const canonicalJson = (value: unknown): string => JSON.stringify(sorted(value))

/** SHA-256 of the canonical form. */
export const hashOf = (value: unknown): string => Bun.SHA256.hash(canonicalJson(value), "hex")

/** A copy to be written at once, which is cheaper than joining the text piece by piece. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const fields = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(fields).sort()) copy[key] = sorted(fields[key])
  return copy
}
