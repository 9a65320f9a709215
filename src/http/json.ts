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
    throw unreadable("syntax", "The body is not valid JSON. Check quotes, commas and brackets.")
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

function decode(parts: readonly Uint8Array[]): string {
  const [first] = parts
  try {
    return first && parts.length === 1 ? utf8.decode(first) : joined(parts)
  } catch {
    throw unreadable("encoding", "The body is not valid UTF-8. Encode it as UTF-8.")
  }
}

/** The parts go as they are read, so that not everything is there twice. */
function joined(parts: readonly Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  const texts = parts.map((part) => {
    const text = decoder.decode(part, { stream: true })
    release(part)
    return text
  })
  return texts.join("") + decoder.decode()
}

/** Gives its memory back at once; the next collection of garbage may be some megabytes away. */
export const release = (part: Uint8Array): void => void bufferOf(part)?.transfer(0)

/** The memory of the part, where nothing else is in it. */
export const bufferOf = ({ buffer, byteLength }: Uint8Array): ArrayBuffer | undefined =>
  buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? buffer : undefined

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
