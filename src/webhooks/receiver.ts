import { invalid } from "../core/errors"
import { log } from "../core/log"
import { type NetAnswer, NetError, request, retryAfterSeconds } from "../core/net"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom, monotonic, now } from "../core/time"
import { signedHeaders } from "../lib/signature"
import { short } from "../store/columns"
import type { DeliveryError, WebhookRow } from "./tables"

export interface RequestSettings {
  secrets: Secrets
  timeout_ms: number
  allow_private: readonly string[]
}

type Headers = Record<string, string>

/** An endpoint, made ready for any number of attempts. */
export interface Receiver
  extends Pick<WebhookRow, "id" | "url" | "header_format" | "transform" | "updated_at"> {
  /** The custom headers, in lower case. Throws for another master key. */
  headers(): Headers
  secrets(): [string, ...string[]]
}

export function receiverOf({ secrets }: RequestSettings, webhook: WebhookRow): Receiver {
  const { id, url, header_format, transform, updated_at } = webhook
  let custom: Headers | undefined
  const headers = () => {
    custom ??= lowered(openHeaders(secrets, webhook))
    return custom
  }
  const opened = signingSecrets(secrets, webhook)
  return { id, url, header_format, transform, updated_at, headers, secrets: opened }
}

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

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

/** So much of an answer is read; its first thousand characters are stored. */
const CAPTURE_BYTES = 4096
/** So long is waited for it behind its status, which alone decides. */
const BODY_MS = 1000
const CAPTURE_HEADER_BYTES = 8192

/** Shorter values of custom headers are found in any text, and are no credentials. */
const LEAST_ECHO = 4

const SIGNATURES = new Set(["authorization", "webhook-signature", "x-svc-signature"])

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
      body_ms: BODY_MS,
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

const lowered = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function answered({ status, headers, body, duration_ms }: NetAnswer, credentials: string[]) {
  const asks_to_wait = status === 429 || status === 503
  return {
    error: errorOf(status),
    response_status: status,
    response_headers: receivedHeaders(headers, credentials),
    response_body: short(withoutEchoes(decoder.decode(body), credentials)),
    latency_ms: duration_ms,
    retry_after_seconds: asks_to_wait ? retryAfterSeconds(headers) : null,
  }
}

const decoder = new TextDecoder()

function errorOf(status: number): DeliveryError | null {
  if (status >= 200 && status < 300) return null
  return status === 410 ? "gone" : "http_status"
}

/** What no capture may show, though the receiver sends it back: custom headers and our signatures. */
function credentialsIn(sent: Headers, custom: Headers): string[] {
  const credentials = Object.values(custom)
  for (const name of SIGNATURES) if (sent[name] !== undefined) credentials.push(sent[name])
  return credentials.filter(({ length }) => length >= LEAST_ECHO)
}

const withoutEchoes = (text: string, credentials: string[]): string =>
  credentials.reduce((rest, value) => rest.replaceAll(value, MASK), text)

/** Request headers as they may be shown: signatures and credentials masked, 8 KiB at most. */
const sentHeaders = (headers: Headers, custom: Headers) =>
  captured(Object.entries(headers), (name, value) => (custom[name] === value ? MASK : value))

const receivedHeaders = (headers: Iterable<[string, string]>, credentials: string[]) =>
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

/** One for both secret columns, so that a rotation moves the sealed text as it is. */
export const secretContext = (webhook_id: string): string => `webhooks:${webhook_id}:secret`

const headersContext = (webhook_id: string) => `webhooks:${webhook_id}:headers`

/**
 * Returns what signs a delivery at the moment of the call: the current secret, then the previous one
 * while that is valid. Both are opened at the first call, which throws for another master key.
 */
function signingSecrets(secrets: Secrets, webhook: WebhookRow) {
  const { id, secret, previous_secret, previous_secret_expires_at } = webhook
  const until = previous_secret_expires_at === null ? 0 : millisFrom(previous_secret_expires_at)
  const open = (sealed: string) => secrets.open(sealed, secretContext(id))
  let current: string | undefined
  let previous: string | undefined
  return (): [string, ...string[]] => {
    current ??= open(secret)
    if (previous_secret === null || until <= millis()) return [current]
    previous ??= open(previous_secret)
    return [current, previous]
  }
}

/** What every read shows of a custom header, because its value may be a credential. */
export const MASK = "****"

/** Both columns of custom headers: the names, each with the mask, and the values sealed. */
export function sealHeaders(secrets: Secrets, id: string, headers: Headers) {
  const names = Object.keys(headers)
  return {
    headers: Object.fromEntries(names.map((name) => [name, MASK])),
    sealed_headers:
      names.length === 0 ? null : secrets.seal(JSON.stringify(headers), headersContext(id)),
  }
}

type SealedHeaders = Pick<WebhookRow, "id" | "sealed_headers">

/** Throws SecretError where the headers were sealed with another master key. */
const openHeaders = (secrets: Secrets, { id, sealed_headers }: SealedHeaders) =>
  sealed_headers === null
    ? {}
    : (JSON.parse(secrets.open(sealed_headers, headersContext(id))) as Headers)

/**
 * The headers to store after a change: a mask that is sent back stands for the stored value of that
 * name, in any case. Throws 422 for a mask where nothing is stored.
 */
export function keepMasked(secrets: Secrets, before: SealedHeaders, given: Headers): Headers {
  if (!Object.values(given).includes(MASK)) return given
  const stored = Object.entries(openHeaders(secrets, before))
  const byName = new Map(stored.map(([name, value]) => [name.toLowerCase(), value]))
  const kept = Object.entries(given).map(([name, value]) => {
    const plain = value === MASK ? byName.get(name.toLowerCase()) : value
    if (plain === undefined) throw invalid(`headers.${name}`, "invalid", NOTHING_STORED)
    return [name, plain]
  })
  return Object.fromEntries(kept)
}

export const NOTHING_STORED = `"${MASK}" keeps the stored value, but no value is stored. Send the value itself.`

const MOST = 10_000

/** A change in the same millisecond as the one before cannot be told from it. */
const SETTLED_MILLISECONDS = 1000

interface Version {
  id: string
  updated_at: string
}

/** Values made of the rows of endpoints. A row that has changed since then has another `updated_at`. */
export class EndpointCache<Value> {
  readonly #cached = new Map<string, { updated_at: string; value: Value }>()

  /** Undefined where the value was made of another version of the row. */
  get({ id, updated_at }: Version): Value | undefined {
    const cached = this.#cached.get(id)
    return cached?.updated_at === updated_at ? cached.value : undefined
  }

  set({ id, updated_at }: Version, value: Value) {
    if (millisFrom(updated_at) >= millis() - SETTLED_MILLISECONDS) return
    if (this.#cached.size >= MOST) this.#cached.clear()
    this.#cached.set(id, { updated_at, value })
  }
}
