import { millis, millisFrom } from "../core/time"
import { short } from "../lib/short"
import { MASK } from "./custom-headers"

const MOST_HEADER_BYTES = 8192
const MOST_SECONDS = 86_400

/** Shorter values are found in any text, and are no credentials. */
const LEAST_ECHO = 4

const secret = new Set(["authorization", "webhook-signature", "x-svc-signature"])

/** Custom headers of an endpoint; their values are credentials. */
type CustomHeaders = Record<string, string>

/** What no answer may show, though its receiver sends it back: custom headers, and our signatures. */
export const unshown = (sent: Record<string, string>, custom: CustomHeaders): CustomHeaders => ({
  ...custom,
  ...Object.fromEntries(Object.entries(sent).filter(([name]) => secret.has(name.toLowerCase()))),
})

/**
 * The first thousand characters of a body, as text that every database takes. A receiver that sends
 * back what it got shows no credential of ours.
 */
export const bodyText = (body: Uint8Array, custom: CustomHeaders): string =>
  short(withoutEchoes(decoder.decode(body), custom))

const decoder = new TextDecoder()

const withoutEchoes = (text: string, custom: CustomHeaders): string =>
  Object.values(custom).reduce(
    (rest, value) => (value.length < LEAST_ECHO ? rest : rest.replaceAll(value, MASK)),
    text,
  )

/** Request headers as they may be shown: signatures and credentials masked, 8 KiB at most. */
export const sentHeaders = (headers: Iterable<[string, string]>, custom: CustomHeaders) =>
  captured(headers, (name, value) => (custom[name] === value ? MASK : value))

/** Response headers as they may be shown, in the same way. */
export const receivedHeaders = (headers: Iterable<[string, string]>, custom: CustomHeaders) =>
  captured(headers, (_, value) => withoutEchoes(value, custom))

function captured(
  headers: Iterable<[string, string]>,
  shownOf: (name: string, value: string) => string,
): Record<string, string> {
  const kept: Record<string, string> = {}
  let room = MOST_HEADER_BYTES
  for (const [given, value] of headers) {
    const name = given.toLowerCase()
    const shown = secret.has(name) ? MASK : shownOf(name, value)
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
