import { SecretError, type Secrets } from "../core/secrets"
import { isPast, secondsFromNow } from "../core/time"

const VALID_SECONDS = 3600
const CONTEXT = "inbound:file:token"

interface InboundFileName {
  inbound_id: string
  /** `raw`, or the id of an attachment. */
  file: string
}

/**
 * An address from which anybody may fetch one file of a received mail for an hour, as for a webhook
 * receiver without a key. The token is sealed: it tells nothing, and no other one can be made.
 */
export function fileUrl(secrets: Secrets, base_url: string, { inbound_id, file }: InboundFileName) {
  const expires_at = secondsFromNow(VALID_SECONDS)
  const token = secrets.seal(JSON.stringify([inbound_id, file, expires_at]), CONTEXT)
  return { url: `${base_url}/v1/files/${token}`, expires_at }
}

/** What a token was made for; undefined for a forged one and for one that has expired. */
export function readFileToken(secrets: Secrets, token: string): InboundFileName | undefined {
  try {
    const [inbound_id, file, expires_at] = JSON.parse(secrets.open(token, CONTEXT)) as string[]
    if (!inbound_id || !file || !expires_at || isPast(expires_at)) return undefined
    return { inbound_id, file }
  } catch (error) {
    if (error instanceof SecretError) return undefined
    throw error
  }
}
