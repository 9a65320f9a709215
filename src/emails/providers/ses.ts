import { NetError } from "../../core/net"
import type { RetrySchedule } from "../../jobs/work"
import { needsSmtputf8, wireForm } from "../../lib/address"
import type { SesAccess } from "../../providers/credentials"
import { type Outcome, outcomeOf, type RecipientOutcome } from "../../providers/provider"
import { hostOf, type SesPlace, SesRefusal, ses as sesCall } from "../../providers/ses/api"
import { smtpSchedule } from "../schedule"
import { mistakeIn } from "../smtp/session"
import { type EmailProvider, type OutgoingMail, ProviderError } from "./provider"
import { type SesVerdict, verdictOf } from "./ses-verdict"

const SEND_PATH = "/v2/email/outbound-emails"

export interface SesOptions {
  access: SesAccess
  place: SesPlace
  schedule?: RetrySchedule
}

/**
 * The SES API v2. It takes a message for all of its recipients or for none, and tells later, through
 * SNS, what became of each. The message id goes along as a tag, for whoever reads its events.
 */
export function ses({ access, place, schedule = smtpSchedule() }: SesOptions): EmailProvider {
  const mx = hostOf(access, place)
  const outcome = (mail: OutgoingMail, verdict: SesVerdict, id?: string): Outcome => {
    const all = mail.to.map((email) =>
      recipientOutcome(email, isWide(mail, email) ? WIDE : verdict, mx),
    )
    const asked = `* POST https://${mx}${SEND_PATH} (${mail.raw.length} bytes)`
    const transcript = verdict.said === null ? [] : [asked, `S: ${verdict.said}`]
    const known = id === undefined ? {} : { provider_message_id: id }
    const next = all.some(({ held }) => held) ? soon(schedule) : schedule
    return { ...outcomeOf(all, { provider: "ses", schedule: next, transcript }), ...known }
  }
  return {
    name: "ses",
    schedule,
    async send(mail) {
      const fault = mistakeIn(mail)
      if (fault) return outcome(mail, { ...BROKEN, reason: fault, said: null })
      if (mail.to.every((email) => isWide(mail, email))) return outcome(mail, WIDE)
      try {
        const body = sendRequest(access, mail)
        const answer = await sesCall(access, place, { method: "POST", path: SEND_PATH, body })
        const id = String((answer as { MessageId?: unknown }).MessageId ?? "")
        return outcome(mail, { ...SENT, said: `200 ${id}` }, id || undefined)
      } catch (error) {
        return outcome(mail, verdictOf(error))
      }
    },
    check: () => checked(access, place),
    close: async () => {},
  }
}

function recipientOutcome(
  email: string,
  { said, ...verdict }: SesVerdict,
  mx: string,
): RecipientOutcome {
  const enhanced_code = verdict.bounce_subtype === WIDE.bounce_subtype && !said ? "5.6.7" : null
  const reply = { smtp_code: null, enhanced_code, response: said, mx, tls: null }
  return { ...verdict, email, reply }
}

/** SES does not know SMTPUTF8 (RFC 6531). */
const isWide = (mail: OutgoingMail, email: string) => mail.smtputf8 || needsSmtputf8(email)

/** What is too fast is welcome in a moment, whatever attempt it was. */
const soon =
  (schedule: RetrySchedule, random: () => number = Math.random): RetrySchedule =>
  (attempt, age) =>
    schedule(attempt, age) === undefined ? undefined : 2 + 8 * random()

const SENT = { status: "sent", reason: null, bounce_subtype: null, code: null } as const
const BROKEN = { ...SENT, status: "failed", code: "internal_error" } as const

const WIDE: SesVerdict = {
  status: "bounced",
  reason: "5.6.7 SES does not accept addresses outside ASCII (SMTPUTF8)",
  bounce_subtype: "ContentRejected",
  code: null,
  said: null,
}

/** SendEmail of the API, with the message as it is. Its From decides the identity that is used. */
export const sendRequest = ({ configuration_set }: SesAccess, mail: OutgoingMail) => ({
  Destination: {
    ToAddresses: mail.to.filter((email) => !isWide(mail, email)).map(wireForm),
  },
  Content: { Raw: { Data: Buffer.from(mail.raw).toString("base64") } },
  EmailTags: [{ Name: "belfry_message_id", Value: mail.message_id }],
  ...(configuration_set !== undefined && { ConfigurationSetName: configuration_set }),
})

interface SesAccount {
  SendingEnabled?: boolean
  ProductionAccessEnabled?: boolean
  SendQuota?: { Max24HourSend?: number; SentLast24Hours?: number }
}

async function checked(access: SesAccess, place: SesPlace): Promise<string> {
  try {
    const said = await sesCall(access, place, { method: "GET", path: "/v2/email/account" })
    const { SendingEnabled, ProductionAccessEnabled, SendQuota } = said as SesAccount
    if (SendingEnabled === false) {
      throw new ProviderError("authentication", "SES has paused sending for this account.")
    }
    const { Max24HourSend = 0, SentLast24Hours = 0 } = SendQuota ?? {}
    const place_text =
      ProductionAccessEnabled === false ? " The account is in the SES sandbox." : ""
    return `SES accepts the credentials. It counts ${SentLast24Hours} of ${Max24HourSend} messages in 24 hours.${place_text}`
  } catch (error) {
    if (!(error instanceof SesRefusal || error instanceof NetError)) throw error
    const { fault, reason } = verdictOf(error)
    throw new ProviderError(fault ?? "infrastructure", reason ?? "SES could not be reached.")
  }
}
