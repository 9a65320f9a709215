import { comparable } from "../lib/address"
import type { FeedbackReport } from "../lib/arf"
import { bounceSubtype } from "../lib/bounce-subtype"
import type { Dsn } from "../lib/dsn"
import type { DsnRecipient } from "../lib/dsn-recipient"
import type { LateFact } from "../messages/settle"
import type { Message } from "../messages/status-changes"

type Reported = Pick<Message, "recipients">

/** What a delivery status notification says of the recipients of a message (contract 22, section 3). */
export const factsOfDsn = (message: Reported, { recipients }: Dsn): LateFact[] =>
  recipients.flatMap((one): LateFact[] => {
    const address = meant(message, [one.email, one.final_email])
    const fact = address && factOf(one, address)
    return fact ? [fact] : []
  })

/** The recipient of ours that a report means. The only one there is may have had its mail forwarded. */
function meant({ recipients }: Reported, named: (string | null)[]): string | undefined {
  const known = new Map(recipients.map(({ email }) => [comparable(email), email]))
  for (const email of named) {
    const found = email === null ? undefined : known.get(comparable(email))
    if (found !== undefined) return found
  }
  return recipients.length === 1 ? recipients[0]?.email : undefined
}

function factOf(one: DsnRecipient, address: string): LateFact | undefined {
  const detail = detailOf(one)
  if (one.action === "delivered") return { type: "delivered", address, detail }
  const bounce_subtype = bounceSubtype(one)
  if (one.action === "delayed") {
    const bounce_type = "Transient"
    return { type: "soft_bounced", address, bounce_type, bounce_subtype, detail }
  }
  if (one.action !== "failed") return undefined // relayed and expanded settle nothing
  const message = one.diagnostic ?? one.status ?? "The report gives no reason."
  const error = { code: "bounced", message }
  return {
    ...{ type: "bounced", address, bounce_type: "Permanent", bounce_subtype },
    ...{ detail, error },
  }
}

function detailOf({ status, diagnostic, remote_mta }: DsnRecipient) {
  const [, code] = /^([245]\d\d)(?![\d.])/.exec(diagnostic ?? "") ?? []
  return {
    smtp_code: code === undefined ? null : Number(code),
    enhanced_code: status,
    mx: remote_mta,
    tls: null,
    response: diagnostic,
  }
}

/** What a complaint says. Most providers hide the address that complained: then it is the `to` recipient. */
export function factsOfComplaint(message: Reported, arf: FeedbackReport): LateFact[] {
  const known = arf.original_recipients.map((email) => meant(message, [email]))
  const [first] = message.recipients
  const emails = known.filter((email) => email !== undefined)
  const all = emails.length > 0 ? emails : first ? [first.email] : []
  return [...new Set(all)].map((address) => ({
    type: "complained",
    address,
    complaint_feedback_type: arf.feedback_type,
  }))
}
