import { millis, millisFrom } from "../core/time"
import { short } from "../lib/short"

const MOST_HEADER_BYTES = 8192
const MOST_SECONDS = 86_400
const MASKED = "***"

const secret = new Set(["authorization", "webhook-signature", "x-svc-signature"])

/** The first thousand characters of a body, as text that every database takes. */
export const bodyText = (body: Uint8Array): string => short(decoder.decode(body))

const decoder = new TextDecoder()

/** Headers as they may be shown: signatures and credentials masked, 8 KiB at most. */
export function capturedHeaders(headers: Iterable<[string, string]>): Record<string, string> {
  const kept: Record<string, string> = {}
  let room = MOST_HEADER_BYTES
  for (const [given, value] of headers) {
    const name = given.toLowerCase()
    const shown = secret.has(name) ? MASKED : value
    room -= Buffer.byteLength(name) + Buffer.byteLength(shown)
    if (room < 0) break
    kept[name] = shown
  }
  return kept
}

/** `Retry-After` (RFC 9110 10.2.3), seconds or a date, at most a day; null for anything else. */
export function retryAfterSeconds(value: string | null): number | null {
  const text = value?.trim() ?? ""
  const seconds = /^\d+$/.test(text) ? Number(text) : (millisFrom(text) - millis()) / 1000
  return Number.isNaN(seconds) ? null : Math.min(MOST_SECONDS, Math.max(0, seconds))
}
