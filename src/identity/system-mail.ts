import type { Tx } from "../store/store"

/** A mail of the instance itself: invitations, password resets, alerts. */
export interface SystemLetter {
  to: string
  subject: string
  text: string
  html?: string
  /** What it is about; becomes its tag. */
  kind: string
}

/** Sends in the transaction of what the mail tells: both happen or neither. */
export interface SystemMail {
  /** Throws 503 `email_not_configured` where no sender is known. */
  send(tx: Tx, letter: SystemLetter): Promise<unknown>
}

/**
 * What an address of this server begins with that somebody outside is to follow, without a slash at the end. Empty where
 * nobody knows the public address: then it is a path, which leads nowhere wrong.
 */
type LinkBase = () => string

/** A page of this server, as a letter names it. */
export const linkText = (base: string, path: string): string =>
  base === "" ? `${path}\n(a path of the server: its public address is not set)` : base + path

/** How mail of the instance itself is sent, and where its links point. */
export interface ConsoleMail {
  mail: SystemMail
  link_base: LinkBase
}
