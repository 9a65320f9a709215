import { isLoopback } from "./profiles"
import { millis } from "./time"

interface PostRequest {
  url: string
  headers: Record<string, string>
  body: string | AsyncIterable<Uint8Array>
  /** Accepts any TLS certificate. */
  skip_verify?: boolean | undefined
}

export interface PostResult {
  /** Null where no answer came. */
  status: number | null
  /** Its first characters. */
  body: string | null
  duration_ms: number
  /** Why there is no answer, in one word where the system has one. */
  error: string | null
}

/** The time limit of one delivery, as in production. */
export const RECEIVER_MILLISECONDS = 30_000

const MOST_CHARACTERS = 1000
const MOST_BYTES = 4 * MOST_CHARACTERS

/** Posts to a receiver of the user's own. Follows no redirect, and never throws. */
export async function post({ url, headers, body, skip_verify }: PostRequest): Promise<PostResult> {
  const started = millis()
  const ended = () => millis() - started
  try {
    const response = await fetch(url, {
      method: "POST",
      headers,
      body,
      redirect: "manual",
      signal: AbortSignal.timeout(RECEIVER_MILLISECONDS),
      ...(isLoopback(url) && { proxy: false as const }),
      ...(skip_verify && { tls: { rejectUnauthorized: false } }),
    })
    const text = await firstText(response)
    return { status: response.status, body: text, duration_ms: ended(), error: null }
  } catch (error) {
    return { status: null, body: null, duration_ms: ended(), error: reasonOf(error) }
  }
}

async function firstText({ body }: Response): Promise<string> {
  let parts = Buffer.alloc(0)
  for await (const part of body ?? []) {
    parts = Buffer.concat([parts, part])
    if (parts.length >= MOST_BYTES) break // which cancels the rest
  }
  return parts.toString("utf8").slice(0, MOST_CHARACTERS)
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === "TimeoutError") return "timeout"
  if ("code" in error && typeof error.code === "string")
    return REASONS[error.code] ?? certificateFault(error.code)
  return error.message
}

const REASONS: Record<string, string> = {
  ConnectionRefused: "connection refused",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection closed",
  ConnectionClosed: "connection closed",
  FailedToOpenSocket: "no connection",
}

/** What the codes of OpenSSL and of the runtime say of a certificate that is not trusted. */
const WORDS: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "self-signed certificate",
  SELF_SIGNED_CERT_IN_CHAIN: "unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown authority, or an incomplete chain",
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "made for another name",
}

/** Why a certificate is not trusted, in words; a code that is not known stays as it is. */
export const certificateFault = (code: string): string => WORDS[code] ?? code
