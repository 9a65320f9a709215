import type { DsnRecipient } from "./dsn-recipient"
import { subtypeOf } from "./refusal"

/** A permanent refusal of which the report gives no SMTP code. */
const USUAL_CODE = 550

type ReportedRefusal = Pick<DsnRecipient, "status" | "diagnostic" | "stage">

/**
 * The `bounce_subtype` of a failed recipient: what the same words would mean as the reply of the
 * recipient's own server. A report has no SMTP code where its writer is that server; then its status
 * and words decide.
 */
export function bounceSubtype({ status, diagnostic, stage }: ReportedRefusal): string {
  const words = diagnostic ?? ""
  const [, said] = /^([45]\d\d)(?![\d.])/.exec(words) ?? []
  // After days of attempts a 4yz is the last word, too.
  const code = said === undefined ? USUAL_CODE : Number(said.replace(/^4/, "5"))
  const text = said === undefined ? `${code} ${words}` : words
  return subtypeOf({ code, enhanced: status, text }, stage)
}
