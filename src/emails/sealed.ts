import type { Secrets } from "../core/secrets"
import type { EmailContent } from "./prepare"

/** Content that nobody reads from the database alone. */
export interface SealedContent {
  sealed: string
}

/** Bound to the message: moved to another row it does not open. */
const contextOf = (message_id: string) => `message_contents:${message_id}:content`

export const sealContent = (
  secrets: Secrets,
  message_id: string,
  content: EmailContent,
): SealedContent => ({ sealed: secrets.seal(JSON.stringify(content), contextOf(message_id)) })

export const isSealed = (content: EmailContent | SealedContent): content is SealedContent =>
  "sealed" in content

/** Throws SecretError for another master key or another message. */
export const openContent = (
  secrets: Secrets,
  message_id: string,
  { sealed }: SealedContent,
): EmailContent => JSON.parse(secrets.open(sealed, contextOf(message_id))) as EmailContent
