import type { Mailbox } from "../lib/address"
import type { DkimSigner } from "../lib/dkim"

export interface MailToCompose {
  message_id: string
  /** Right-hand side of the Message-ID: the domain of `from`. */
  domain: string
  created_at: string
  from: Mailbox
  to: Mailbox
  cc: Mailbox[]
  reply_to: Mailbox[]
  subject: string
  text: string | null
  html: string | null
  headers: Record<string, string>
  attachments: AttachedFile[]
  /** Each signs the message, in this order; empty for a sender without keys of his own. */
  dkim: SigningKey[]
}

/**
 * What was asked for can never become a message. Everything else that goes wrong while composing is
 * a fault of this machine, which another try may not meet. The name survives the way out of a thread.
 */
export class Uncomposable extends Error {
  override readonly name = "Uncomposable"
}

export const isUncomposable = (error: unknown) =>
  error instanceof Error && error.name === "Uncomposable"

export interface AttachedFile {
  filename: string
  content_type: string
  /** Makes the part inline, for `cid:` links of the html. */
  content_id: string | null
  /** Of the blob's file, which the worker reads. */
  path: string
}

/** A key as it travels to the thread that signs. */
export interface SigningKey extends Omit<DkimSigner, "key" | "time" | "rsa"> {
  /** PKCS #8 PEM. */
  private_key: string
}
