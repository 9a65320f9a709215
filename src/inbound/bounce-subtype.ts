import { subtype } from "../emails/smtp/outcome"
import type { DsnRecipient } from "../lib/dsn-recipient"

/** A permanent refusal of which the report gives no SMTP code. */
const USUAL_CODE = 550

const FULL =
  /\b(?:mailbox|inbox|mailfolder|folder|quota)\b.{0,60}\b(?:full|exceed|over)|over.?quota|exceeds allowed size/i
const UNKNOWN =
  /not (?:listed|recogni[sz]ed|found)|unknown (?:or illegal )?(?:alias|recipient|user)|illegal alias/i

/**
 * The `bounce_subtype` of a failed recipient: what the same words would mean as the reply of the
 * recipient's own server. A report has no SMTP code where its writer is that server; then its status
 * and words decide.
 */
export function bounceSubtype({ status, diagnostic }: DsnRecipient): string {
  const words = diagnostic ?? ""
  const [, said] = /^([45]\d\d)(?![\d.])/.exec(words) ?? []
  // After days of attempts a 4yz is the last word, too.
  const code = said === undefined ? USUAL_CODE : Number(said.replace(/^4/, "5"))
  const text = said === undefined ? `${code} ${words}` : words
  const meaning = subtype({ code, enhanced: status, text, lines: [words] })
  if (meaning !== "General") return meaning
  if (FULL.test(words)) return "MailboxFull"
  return UNKNOWN.test(words) ? "NoEmail" : meaning
}
