import { log } from "../core/log"
import { type NetAnswer, NetError, request } from "../core/net"
import { millis, millisFrom, monotonic, now } from "../core/time"
import { signedHeaders } from "../lib/signature"
import { short } from "../lib/text"
import { lowered, MASK, type Receiver, type RequestSettings } from "./receiver"
import type { DeliveryError } from "./tables"

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

/** So much of an answer is read; its first thousand characters are stored. */
const CAPTURE_BYTES = 4096
const CAPTURE_HEADER_BYTES = 8192
const MOST_RETRY_AFTER_SECONDS = 86_400

/** Shorter values of custom headers are found in any text, and are no credentials. */
const LEAST_ECHO = 4

const SIGNATURES = new Set(["authorization", "webhook-signature", "x-svc-signature"])

type Headers = Record<string, string>

/** The outcome of one attempt. `error` is null exactly where the receiver answered 2xx. */
export interface AttemptOutcome {
  at: string
  url: string
  error: DeliveryError | null
  response_status: number | null
  /** Secrets in them are masked. Null where the address was refused. */
  request_headers: Headers | null
  response_headers: Headers | null
  response_body: string | null
  latency_ms: number
  /** The `Retry-After` of a 429 or 503. */
  retry_after_seconds: number | null
}

/** Signs the body anew and posts it once. `event_id` is the same on every attempt. Never throws. */
export async function attempt(
  { timeout_ms, allow_private }: RequestSettings,
  receiver: Receiver,
  event_id: string,
  body: string,
): Promise<AttemptOutcome> {
  const { id, url } = receiver
  const at = now()
  const started = monotonic()
  let request_headers: Headers | null = null
  const unanswered = (error: DeliveryError): AttemptOutcome => ({
    at,
    url,
    error,
    response_status: null,
    request_headers,
    response_headers: null,
    response_body: null,
    latency_ms: Math.round(monotonic() - started),
    retry_after_seconds: null,
  })
  try {
    const headers = headersFor(receiver, event_id, body)
    const custom = receiver.headers()
    request_headers = sentHeaders(headers, custom)
    const answer = await request({
      url,
      method: "POST",
      headers,
      body,
      timeout_ms,
      repeatable: true, // by its webhook-id
      capture_bytes: CAPTURE_BYTES,
      allow_private,
    })
    return { at, url, request_headers, ...answered(answer, credentialsIn(headers, custom)) }
  } catch (error) {
    if (error instanceof NetError) {
      const { kind } = error
      if (kind !== "blocked_address" && kind !== "invalid_url") return unanswered(kind)
      request_headers = null
      return unanswered("blocked_address")
    }
    // Nothing was sent: a secret of another master key, a header that no request can carry.
    log.error("a webhook request could not be prepared; nothing was sent", {
      webhook_id: id,
      error,
    })
    request_headers = null
    return unanswered("connection")
  }
}

function headersFor(receiver: Receiver, id: string, body: string): Headers {
  const signed = signedHeaders({
    id,
    timestamp: Math.floor(millis() / 1000),
    body,
    secrets: receiver.secrets(),
    format: receiver.header_format,
  })
  // Our headers come last, so an endpoint's own headers cannot pose as a signature.
  const named = receiver.header_format === "standard" ? signed : lowered(signed)
  return { ...CONTENT, ...receiver.headers(), ...named, "content-type": CONTENT["content-type"] }
}

function answered({ status, headers, body, duration_ms }: NetAnswer, credentials: Headers) {
  const asks_to_wait = status === 429 || status === 503
  return {
    error: errorOf(status),
    response_status: status,
    response_headers: receivedHeaders(headers, credentials),
    response_body: short(withoutEchoes(decoder.decode(body), credentials)),
    latency_ms: duration_ms,
    retry_after_seconds: asks_to_wait ? retryAfterSeconds(headers.get("retry-after")) : null,
  }
}

const decoder = new TextDecoder()

function errorOf(status: number): DeliveryError | null {
  if (status >= 200 && status < 300) return null
  return status === 410 ? "gone" : "http_status"
}

/** What no capture may show, though the receiver sends it back: custom headers and our signatures. */
const credentialsIn = (sent: Headers, custom: Headers): Headers => ({
  ...custom,
  ...Object.fromEntries(Object.entries(sent).filter(([name]) => SIGNATURES.has(name))),
})

const withoutEchoes = (text: string, credentials: Headers): string =>
  Object.values(credentials).reduce(
    (rest, value) => (value.length < LEAST_ECHO ? rest : rest.replaceAll(value, MASK)),
    text,
  )

/** Request headers as they may be shown: signatures and credentials masked, 8 KiB at most. */
const sentHeaders = (headers: Headers, custom: Headers) =>
  captured(Object.entries(headers), (name, value) => (custom[name] === value ? MASK : value))

/** Response headers as they may be shown, in the same way. */
const receivedHeaders = (headers: Iterable<[string, string]>, credentials: Headers) =>
  captured(headers, (_, value) => withoutEchoes(value, credentials))

function captured(
  headers: Iterable<[string, string]>,
  shownOf: (name: string, value: string) => string,
): Headers {
  const kept: Headers = {}
  let left = CAPTURE_HEADER_BYTES
  for (const [given, value] of headers) {
    const name = given.toLowerCase()
    const shown = SIGNATURES.has(name) ? MASK : shownOf(name, value)
    left -= Buffer.byteLength(name) + Buffer.byteLength(shown)
    if (left < 0) break
    kept[name] = shown
  }
  return kept
}

/** `Retry-After` (RFC 9110 10.2.3), seconds or a date, at most a day; null for anything else. */
function retryAfterSeconds(value: string | null): number | null {
  const text = value?.trim() ?? ""
  const seconds = /^\d+$/.test(text) ? Number(text) : (millisFrom(text) - millis()) / 1000
  if (Number.isNaN(seconds)) return null
  return Math.min(MOST_RETRY_AFTER_SECONDS, Math.max(0, seconds))
}
