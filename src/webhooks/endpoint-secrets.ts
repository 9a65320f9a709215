import { invalid } from "../core/problems"
import type { Secrets } from "../core/secrets"
import { millis, millisFrom } from "../core/time"
import type { webhooks } from "./tables"

/** What every read shows of a custom header, because its value may be a credential. */
export const MASK = "****"

type CustomHeaders = Record<string, string>

type SealedColumns = Pick<
  typeof webhooks.$inferSelect,
  "id" | "secret" | "previous_secret" | "previous_secret_expires_at" | "sealed_headers"
>

/** One for both secret columns, so that a rotation moves the sealed text as it is. */
export const secretContext = (webhook_id: string): string => `webhooks:${webhook_id}:secret`

const headersContext = (webhook_id: string) => `webhooks:${webhook_id}:headers`

/**
 * Returns what signs a delivery at the moment of the call: the current secret, then the previous one
 * while that is valid. Both are opened at the first call, which throws for another master key.
 */
export function signingSecrets(secrets: Secrets, webhook: SealedColumns) {
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

/** Both columns of custom headers: the names, each with the mask, and the values sealed. */
export function sealHeaders(secrets: Secrets, id: string, headers: CustomHeaders) {
  const names = Object.keys(headers)
  return {
    headers: Object.fromEntries(names.map((name) => [name, MASK])),
    sealed_headers:
      names.length === 0 ? null : secrets.seal(JSON.stringify(headers), headersContext(id)),
  }
}

type SealedHeaders = Pick<SealedColumns, "id" | "sealed_headers">

/** Throws SecretError where the headers were sealed with another master key. */
export const openHeaders = (secrets: Secrets, { id, sealed_headers }: SealedHeaders) =>
  sealed_headers === null
    ? {}
    : (JSON.parse(secrets.open(sealed_headers, headersContext(id))) as CustomHeaders)

/**
 * The headers to store after a change: a mask that is sent back stands for the stored value of that
 * name, in whatever case. Throws 422 for a mask where nothing is stored.
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
