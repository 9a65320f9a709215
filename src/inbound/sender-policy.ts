import { spf } from "mailauth/lib/spf"
import { answering, type DnsAnswers, type DnsQuestion } from "./dns-answers"

/** RFC 5321 4.5.3.1.3, with room for UTF-8. Longer names would only be expanded by macros. */
const MAX_ADDRESS = 512

/** The client that hands the mail over, as the SMTP session knows it. */
export interface SpfSender {
  address: string
  helo: string
  mail_from: string
  /** The name of this server, for the macro `%{r}`. */
  host: string
}

export interface SpfResult {
  /** The words of RFC 7208 2.6. */
  result: "pass" | "fail" | "softfail" | "neutral" | "none" | "permerror" | "temperror"
  /** The domain that was asked: of MAIL FROM, or the HELO name where MAIL FROM is empty. */
  domain: string
}

/**
 * SPF (RFC 7208) of one session, with its limits: ten look-ups, two of them void. What DNS has not
 * been asked for is put into `missing`, and then the result is worth nothing yet.
 */
export async function evaluateSpf(
  { address, helo, mail_from, host }: SpfSender,
  answers: DnsAnswers,
  missing: DnsQuestion[],
): Promise<SpfResult> {
  const { status, domain } = await spf({
    sender: mail_from.slice(-MAX_ADDRESS),
    ip: address,
    helo: helo.slice(0, MAX_ADDRESS),
    mta: host,
    strict: true,
    resolver: answering(answers, missing) as never,
  })
  return { result: status.result as SpfResult["result"], domain }
}
