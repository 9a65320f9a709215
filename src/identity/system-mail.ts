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

/** How mail of the instance itself is sent, and where its links point. */
export interface ConsoleMail {
  mail: SystemMail
  /** Without a slash at the end: where people reach this instance. */
  base_url: () => string
}
