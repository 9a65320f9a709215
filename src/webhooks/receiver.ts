import { invalid } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom } from "../core/time"
import type { webhooks } from "./tables"

type Endpoint = typeof webhooks.$inferSelect

/** The settings of every request to a receiver. */
export interface RequestSettings {
  secrets: Secrets
  timeout_ms: number
  allow_private: readonly string[]
}

/** An endpoint, made ready for any number of attempts. */
export interface Receiver
  extends Pick<Endpoint, "id" | "url" | "header_format" | "transform" | "updated_at"> {
  /** The custom headers, in lower case. Throws for another master key. */
  headers(): CustomHeaders
  /** Throws for another master key. */
  secrets(): [string, ...string[]]
}

export function receiverOf({ secrets }: RequestSettings, webhook: Endpoint): Receiver {
  const { id, url, header_format, transform, updated_at } = webhook
  let custom: CustomHeaders | undefined
  const headers = () => {
    custom ??= lowered(openHeaders(secrets, webhook))
    return custom
  }
  const opened = signingSecrets(secrets, webhook)
  return { id, url, header_format, transform, updated_at, headers, secrets: opened }
}

export const lowered = (headers: CustomHeaders): CustomHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** One for both secret columns, so that a rotation moves the sealed text as it is. */
export const secretContext = (webhook_id: string): string => `webhooks:${webhook_id}:secret`

const headersContext = (webhook_id: string) => `webhooks:${webhook_id}:headers`

/**
 * Returns what signs a delivery at the moment of the call: the current secret, then the previous one
 * while that is valid. Both are opened at the first call, which throws for another master key.
 */
function signingSecrets(secrets: Secrets, webhook: Endpoint) {
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

type CustomHeaders = Record<string, string>

/** Both columns of custom headers: the names, each with the mask, and the values sealed. */
export function sealHeaders(secrets: Secrets, id: string, headers: CustomHeaders) {
  const names = Object.keys(headers)
  return {
    headers: Object.fromEntries(names.map((name) => [name, MASK])),
    sealed_headers:
      names.length === 0 ? null : secrets.seal(JSON.stringify(headers), headersContext(id)),
  }
}

type SealedHeaders = Pick<Endpoint, "id" | "sealed_headers">

/** Throws SecretError where the headers were sealed with another master key. */
const openHeaders = (secrets: Secrets, { id, sealed_headers }: SealedHeaders) =>
  sealed_headers === null
    ? {}
    : (JSON.parse(secrets.open(sealed_headers, headersContext(id))) as CustomHeaders)

/**
 * The headers to store after a change: a mask that is sent back stands for the stored value of that
 * name, in any case. Throws 422 for a mask where nothing is stored.
 */
export function keepMasked(
  secrets: Secrets,
  before: SealedHeaders,
  given: CustomHeaders,
): CustomHeaders {
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
