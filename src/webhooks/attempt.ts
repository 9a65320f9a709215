import type { Settings } from "../core/config"
import { log } from "../core/log"
import { type NetAnswer, NetError, request } from "../core/net"
import type { Secrets } from "../core/secrets"
import { millis, monotonic, now } from "../core/time"
import { signedHeaders } from "../lib/signature"
import { bodyText, receivedHeaders, retryAfterSeconds, sentHeaders, unshown } from "./capture"
import { openHeaders } from "./custom-headers"
import { opener } from "./secrets"
import type { DeliveryError, webhooks } from "./tables"

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

/** So much of an answer is read; its first thousand characters are kept. */
const CAPTURE_BYTES = 4096

/** How deliveries may leave. */
export interface Way {
  secrets: Secrets
  timeout_ms: number
  allow_private: readonly string[]
}

export const wayOf = (settings: Settings, secrets: Secrets): Way => ({
  secrets,
  timeout_ms: settings["webhooks.timeout"],
  allow_private: settings["webhooks.allow_private"],
})

/** An endpoint, made ready for any number of attempts. */
export interface Receiver extends Pick<Webhook, "id" | "url" | "header_format" | "transform"> {
  /** Its own headers, in lower case. Throws as `secrets`. */
  headers(): Record<string, string>
  /** Throws where the endpoint was sealed with another master key. */
  secrets(): [string, ...string[]]
}

type Webhook = typeof webhooks.$inferSelect

export function receiverOf({ secrets }: Way, webhook: Webhook): Receiver {
  const { id, url, header_format, transform } = webhook
  let custom: Record<string, string> | undefined
  const headers = () => {
    custom ??= lowered(openHeaders(secrets, webhook))
    return custom
  }
  return { id, url, header_format, transform, headers, secrets: opener(secrets, webhook) }
}

/** What one attempt came to. `error` is null exactly where the receiver took it (2xx). */
export interface Attempted {
  at: string
  url: string
  error: DeliveryError | null
  response_status: number | null
  /** Secrets in them are masked. Null where the address was refused. */
  request_headers: Record<string, string> | null
  response_headers: Record<string, string> | null
  response_body: string | null
  latency_ms: number
  /** What the receiver asks for, with 429 and 503. */
  retry_after_seconds: number | null
}

/** Signs the body anew and posts it once. `event_id` is the same on every attempt. Never throws. */
export async function attempt(
  way: Way,
  receiver: Receiver,
  event_id: string,
  body: string,
): Promise<Attempted> {
  const at = now()
  const started = monotonic()
  const nothing = { request_headers: null, response_headers: null, response_body: null }
  const blank = { ...nothing, at, url: receiver.url, response_status: null }
  try {
    const headers = headersFor(receiver, event_id, body)
    const custom = receiver.headers()
    const told = { ...blank, request_headers: sentHeaders(Object.entries(headers), custom) }
    try {
      const answer = await request({
        url: receiver.url,
        method: "POST",
        headers,
        body,
        timeout_ms: way.timeout_ms,
        repeatable: true, // by its webhook-id
        capture_bytes: CAPTURE_BYTES,
        allow_private: way.allow_private,
      })
      return { ...told, ...outcomeOf(answer, unshown(headers, custom)) }
    } catch (error) {
      if (!(error instanceof NetError)) throw error
      const kept = isRefused(error) ? blank : told
      return { ...kept, error: wordFor(error), ...unanswered(started) }
    }
  } catch (error) {
    // Nothing was sent: a secret of another master key, a header that no request can carry.
    log.error("a webhook request could not be prepared; nothing was sent", {
      webhook_id: receiver.id,
      error,
    })
    return { ...blank, error: "connection", ...unanswered(started) }
  }
}

function headersFor(receiver: Receiver, id: string, body: string) {
  const signed = signedHeaders({
    id,
    timestamp: Math.floor(millis() / 1000),
    body,
    secrets: receiver.secrets(),
    format: receiver.header_format,
  })
  // Ours come last: whatever an endpoint's own headers say, they cannot pose as a signature.
  const named = receiver.header_format === "standard" ? signed : lowered(signed)
  return { ...CONTENT, ...receiver.headers(), ...named, ...JSON_ONLY }
}

const JSON_ONLY = { "content-type": CONTENT["content-type"] }

const lowered = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function outcomeOf(
  { status, headers, body, duration_ms }: NetAnswer,
  hidden: Record<string, string>,
) {
  const taken = status >= 200 && status < 300
  return {
    error: taken ? null : status === 410 ? ("gone" as const) : ("http_status" as const),
    response_status: status,
    response_headers: receivedHeaders(headers, hidden),
    response_body: bodyText(body, hidden),
    latency_ms: duration_ms,
    retry_after_seconds:
      status === 429 || status === 503 ? retryAfterSeconds(headers.get("retry-after")) : null,
  }
}

const unanswered = (started: number) => ({
  latency_ms: Math.round(monotonic() - started),
  retry_after_seconds: null,
})

const isRefused = ({ kind }: NetError) => kind === "blocked_address" || kind === "invalid_url"

const wordFor = (error: NetError): DeliveryError =>
  error.kind === "invalid_url" ? "blocked_address" : error.kind
