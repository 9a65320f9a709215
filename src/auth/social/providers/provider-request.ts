import { log } from "../../../core/log"
import { NetError, request } from "../../../core/net"
import { monotonic } from "../../../core/time"
import { type OAuthSetup, providerFault } from "./oauth-adapter"

/** For everything that one sign-in asks a provider. */
const WHOLE_MS = 10_000
const MOST_BYTES = 65_536

/** One sign-in at a provider, and until when it may ask. */
export interface Asking {
  config: OAuthSetup
  until: number
}

export const asking = (config: OAuthSetup): Asking => ({
  config,
  until: monotonic() + WHOLE_MS,
})

interface AskedJson {
  url: string
  headers?: Record<string, string>
  /** Sent as a form, by POST. */
  form?: Record<string, string>
  most_bytes?: number
}

/**
 * The answer of a provider, as JSON. No private address is asked but those of the setup, and nothing of the answer
 * reaches a log. Throws 502 `provider_error`.
 */
export async function askJson(
  { config, until }: Asking,
  { url, headers, form, most_bytes = MOST_BYTES }: AskedJson,
): Promise<{ status: number; json: unknown }> {
  const { provider, allow_private } = config
  const posted = form && { method: "POST", body: new URLSearchParams(form).toString() }
  const type = form && { "content-type": "application/x-www-form-urlencoded" }
  const answer = await request({
    ...{ url, allow_private, tls_outside: true, ...posted },
    headers: { accept: "application/json", ...type, ...headers },
    timeout_ms: Math.max(1, until - monotonic()),
    capture_bytes: most_bytes,
  }).catch((error) => {
    if (!(error instanceof NetError)) throw error
    log.warn("a sign-in provider did not answer", { provider, error: error.message })
    throw providerFault(provider, error.kind)
  })
  const { status, truncated, body } = answer
  if (truncated) throw providerFault(provider, "too_large")
  try {
    return { status, json: JSON.parse(new TextDecoder().decode(body)) }
  } catch {
    throw providerFault(provider, `no_json_${status}`)
  }
}

type Fields = Record<string, unknown>

/** The fields of an object; none where it is something else. */
export const fieldsIn = (json: unknown): Fields =>
  typeof json === "object" && json !== null && !Array.isArray(json) ? (json as Fields) : {}

export const textIn = (value: unknown): string | null =>
  typeof value === "string" && value !== "" ? value : null

/** A token that can be sent in a header (RFC 6750, section 2.1). */
export const tokenIn = (value: unknown): string | null =>
  typeof value === "string" && /^[\x21-\x7e]{1,16384}$/.test(value) ? value : null

/** The error code of a provider, if it may be shown (RFC 6749, section 5.2). */
export const errorIn = (fields: Fields, status: number): string =>
  typeof fields.error === "string" && /^[a-z_]{1,40}$/.test(fields.error)
    ? fields.error
    : `status_${status}`
