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
  /** Terms that asked DNS, of which RFC 7208 4.6.4 allows ten. */
  lookups: number
  reason: string
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
  const { status, domain, lookups } = await spf({
    sender: mail_from.slice(-MAX_ADDRESS),
    ip: address,
    helo: helo.slice(0, MAX_ADDRESS),
    mta: host,
    strict: true,
    resolver: answering(answers, missing) as never,
  })
  const result = status.result as SpfResult["result"]
  const comment = typeof status.comment === "string" ? status.comment : ""
  return {
    result,
    domain,
    lookups: lookups?.count ?? 0,
    reason: reasonOf(result, domain, address, comment),
  }
}

function reasonOf(
  result: SpfResult["result"],
  domain: string,
  address: string,
  comment: string,
): string {
  // What mailauth adds stands behind its last colon and space.
  const detail = comment.slice(comment.lastIndexOf(": ") + 2)
  switch (result) {
    case "pass":
      return `${domain} allows ${address} to send its mail.`
    case "fail":
      return `${domain} does not allow ${address} to send its mail (-all).`
    case "softfail":
      return `${domain} probably does not allow ${address} to send its mail (~all).`
    case "neutral":
      return `${domain} does not say whether ${address} may send its mail.`
    case "none":
      return `${domain} has no SPF record.`
    case "permerror":
      return `The SPF record of ${domain} cannot be used: ${detail}.`
    default:
      return `DNS did not answer for the SPF record of ${domain}: ${detail}.`
  }
}
