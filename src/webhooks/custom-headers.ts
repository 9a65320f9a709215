import type { Secrets } from "../core/secrets"
import { invalid } from "../http/problems"

/** What every read shows of a custom header, because its value may be a credential. */
export const MASK = "****"

type CustomHeaders = Record<string, string>

const contextOf = (webhook_id: string) => `webhooks:${webhook_id}:headers`

/** Both columns: the names, each with the mask, and the values sealed. */
export const sealHeaders = (secrets: Secrets, id: string, headers: CustomHeaders) => ({
  headers: maskedHeaders(headers),
  sealed_headers:
    Object.keys(headers).length === 0 ? null : secrets.seal(JSON.stringify(headers), contextOf(id)),
})

const maskedHeaders = (headers: CustomHeaders): CustomHeaders =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, MASK]))

interface SealedHeaders {
  id: string
  sealed_headers: string | null
}

/** Throws SecretError where they were sealed with another master key. */
export const openHeaders = (secrets: Secrets, { id, sealed_headers }: SealedHeaders) =>
  sealed_headers === null
    ? {}
    : (JSON.parse(secrets.open(sealed_headers, contextOf(id))) as CustomHeaders)

/**
 * The headers as they are to be: a mask that is sent back stands for the stored value of that name,
 * in whatever case. Throws 422 for a mask where nothing is stored.
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
    const known = value === MASK ? byName.get(name.toLowerCase()) : value
    if (known === undefined) throw invalid(`headers.${name}`, "invalid", NOTHING_STORED)
    return [name, known]
  })
  return Object.fromEntries(kept)
}

export const NOTHING_STORED = `"${MASK}" keeps the stored value, but no value is stored. Send the value itself.`
