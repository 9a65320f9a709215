import type { Secrets } from "../core/secrets"
import { EMAIL_ID_HEADER, readEmailIdHeader, readLocalPart } from "../emails/token-addresses"

/** A larger mail is no report of a complaint: those return the header of a message, or all of a letter. */
export const MOST_REPORT_BYTES = 1024 * 1024

/** A report names its message once or twice. */
const MOST_LOOKS = 20

const ADDRESS = /\b([br]\+[a-z2-7]{42})@/gi
const MARKED = new RegExp(`^${EMAIL_ID_HEADER}:[ \\t]*([^\\r\\n]{1,100})`, "gim")

/**
 * Whether the bytes of a mail name a message of ours with a right MAC, as a complaint does that returns the
 * header of the message. What the mail is, only reading it says.
 */
export function quotesProof(secrets: Secrets, raw: Uint8Array): boolean {
  if (raw.length > MOST_REPORT_BYTES) return false
  const text = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString("latin1")
  return (
    firstOf(text, ADDRESS).some((local) => readLocalPart(secrets, local) !== undefined) ||
    firstOf(text, MARKED).some((value) => readEmailIdHeader(secrets, value) !== undefined)
  )
}

const firstOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern).take(MOST_LOOKS)].map(([, found = ""]) => found)
