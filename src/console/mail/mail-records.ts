import type { Components } from "../../client/components"

/** A mail as the list has it. */
export type MailSummary = Components["MailboxMailSummary"]

/** A mail with all its parts. */
export type OpenMail = Components["MailboxMail"]
