import type { Secrets } from "../core/secrets"

interface Kept {
  id: string
  raw: Uint8Array
}

const contextOf = (mail_id: string) => `mailbox_mails:${mail_id}:raw`

/**
 * Mail of the instance itself carries tokens that open accounts: its bytes are sealed at rest. A
 * byte is a character here (ISO 8859-1), since mail is in any charset.
 */
export const sealRaw = (secrets: Secrets, { id, raw }: Kept): Buffer =>
  Buffer.from(secrets.seal(Buffer.from(raw).toString("latin1"), contextOf(id)))

/** The bytes as they came. Throws SecretError for another master key or another mail. */
export const openRaw = (secrets: Secrets, { id, raw }: Kept): Buffer =>
  Buffer.from(secrets.open(Buffer.from(raw).toString(), contextOf(id)), "latin1")
