import { type RefusalStage, subtypeOf } from "./refusal"

export type DsnAction = "failed" | "delayed" | "delivered" | "relayed" | "expanded"

export interface DsnRecipient {
  /** The address that the sender used, as far as the report tells; not validated. */
  email: string
  /** Where the mail really went, when the report names another address. */
  final_email: string | null
  action: DsnAction
  /** RFC 3463, `5.1.1`. Where the field is vague (`5.0.0`), the code within the diagnostic. */
  status: string | null
  /** The words of the server that refused, without the type in front, on one line. */
  diagnostic: string | null
  remote_mta: string | null
  /** Where in the dialogue the server refused, as far as the report says. */
  stage: RefusalStage | null
}

const MOST_WORDS = 1_000

/** A code within words: no part of an IP address and no version. */
const CODE = /(?<![\d.])([245])\.(\d{1,3})\.(\d{1,3})(?![\d.]*\d)/

/** The enhanced status code in the words of a server (RFC 3463). */
export const statusIn = (words: string): string | null =>
  CODE.exec(words.slice(0, MOST_WORDS))?.[0] ?? null

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
