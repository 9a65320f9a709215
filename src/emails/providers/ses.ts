import { Type as t } from "@sinclair/typebox"
import { fail, Problems } from "../../core/errors"
import { codeOf } from "../../core/faults"
import { log } from "../../core/log"
import { NetError } from "../../core/net"
import { check } from "../../http/validate"
import type { RetrySchedule } from "../../jobs/work-item"
import { needsSmtputf8, wireForm } from "../../lib/address"
import {
  type CallbackNetwork,
  type Outcome,
  type ProviderDescriptor,
  ProviderError,
  type ReceivedCallback,
  type RecipientOutcome,
} from "../../providers/provider"
import { outcomeOf } from "../smtp/outcome"
import { mistakeIn } from "../smtp/session"
import { type EmailContext, type EmailProvider, type OutgoingMail, smtpSchedule } from "./provider"
import {
  callSes,
  hostOf,
  type SesAccess,
  type SesEndpoint,
  SesRefusal,
  sesEndpoint,
  sesIdentity,
  sesUnsuppress,
} from "./ses/api"
import { readNotification } from "./ses/notification"
import { ask, isRecent, isSigned, SNS_EXAMPLE, SnsEnvelope, snsUrl } from "./ses/sns"

const secret_text = t.String({
  minLength: 1,
  maxLength: 256,
  pattern: "^[^\\u0000-\\u001f\\u007f]*$",
})

export const sesProvider: ProviderDescriptor<SesAccess, EmailContext, OutgoingMail> = {
  name: "ses",
  channel: "email",
  about: "Amazon SES",
  reports: "`sent`, then `delivered`, `bounced` or `complained` when SES reports it",
  example: "--region eu-west-1 --access-key-id AKIA… --secret-stdin < secret",
  credentials: {
    region: {
      schema: t.String({ pattern: "^[a-z]{2}(-[a-z]+)+-\\d{1,2}$" }),
      about: "AWS region, for example eu-west-1",
    },
    access_key_id: {
      schema: t.String({ pattern: "^[A-Za-z0-9]{16,128}$" }),
      about: "id of the access key",
      secret: true,
    },
    secret_access_key: {
      schema: secret_text,
      about: "secret access key",
      secret: true,
      asked_with: "access_key_id",
    },
    configuration_set: {
      schema: t.Optional(t.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" })),
      about: "configuration set that publishes the events",
      value: "name",
    },
  },
  spf: () => ["include:amazonses.com"],
  identity: (access, { settings }, domain) => sesIdentity(access, sesEndpoint(settings), domain),
  unsuppress: (access, { settings }, address) =>
    sesUnsuppress(access, sesEndpoint(settings), address),
  callbacks: {
    methods: ["POST"],
    example: SNS_EXAMPLE,
    about: "Amazon SNS sends notifications of deliveries, bounces and complaints here.",
    verify: async (call) => accountOf(envelopeOf(call), trusting(call)),
    read: (call) => readEnvelope(envelopeOf(call), trusting(call)),
  },
  fromSettings(settings) {
    const configuration_set = settings["providers.ses.configuration_set"]
    return {
      region: settings["providers.ses.region"] ?? "",
      access_key_id: settings["providers.ses.access_key_id"] ?? "",
      secret_access_key: settings["providers.ses.secret_access_key"] ?? "",
      ...(configuration_set !== null && { configuration_set }),
    }
  },
  banner: ({ region }) => `SES in ${region}`,
  open: (access, { settings, schedule }) =>
    ses({ access, endpoint: sesEndpoint(settings), schedule }),
}

const SEND_PATH = "/v2/email/outbound-emails"

interface SesOptions {
  access: SesAccess
  endpoint: SesEndpoint
  schedule?: RetrySchedule
}

/**
 * The SES API v2. It takes a message for all of its recipients or for none, and tells later, through
 * SNS, what became of each. The message id goes along as a tag, for readers of its events.
 */
export function ses({ access, endpoint, schedule = smtpSchedule() }: SesOptions): EmailProvider {
  const mx = hostOf(access, endpoint)
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
      const fault = await mistakeIn(mail)
      if (fault) return outcome(mail, { ...BROKEN, reason: fault, said: null })
      if (mail.to.every((email) => isWide(mail, email))) return outcome(mail, WIDE)
      try {
        const body = sendRequest(access, mail)
        const answer = await callSes(access, endpoint, { method: "POST", path: SEND_PATH, body })
        const id = String((answer as { MessageId?: unknown }).MessageId ?? "")
        return outcome(mail, { ...SENT, said: `200 ${id}` }, id || undefined)
      } catch (error) {
        return outcome(mail, verdictOf(error))
      }
    },
    check: () => checked(access, endpoint),
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
  return { ...verdict, address: email, reply }
}

/** SES does not know SMTPUTF8 (RFC 6531). */
const isWide = (mail: OutgoingMail, email: string) => mail.smtputf8 || needsSmtputf8(email)

/** After throttling: 2 to 10 seconds, at every attempt that the schedule allows. */
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
const sendRequest = ({ configuration_set }: SesAccess, mail: OutgoingMail) => ({
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

async function checked(access: SesAccess, endpoint: SesEndpoint): Promise<string> {
  try {
    const said = await callSes(access, endpoint, { method: "GET", path: "/v2/email/account" })
    const { SendingEnabled, ProductionAccessEnabled, SendQuota } = said as SesAccount
    if (SendingEnabled === false) {
      throw new ProviderError("authentication", "SES has paused sending for this account.")
    }
    const { Max24HourSend = 0, SentLast24Hours = 0 } = SendQuota ?? {}
    const sandbox = ProductionAccessEnabled === false ? " The account is in the SES sandbox." : ""
    return `SES accepts the credentials. It counts ${SentLast24Hours} of ${Max24HourSend} messages in 24 hours.${sandbox}`
  } catch (error) {
    if (!(error instanceof SesRefusal || error instanceof NetError)) throw error
    const { fault, reason } = verdictOf(error)
    throw new ProviderError(fault ?? "infrastructure", reason ?? "SES could not be reached.")
  }
}

type SesVerdict = Omit<RecipientOutcome, "address" | "reply"> & { said: string | null }

type Meaning = Omit<SesVerdict, "reason" | "said">

const retry = (fault?: SesVerdict["fault"]): Meaning => ({
  status: "retry",
  bounce_subtype: null,
  code: null,
  ...(fault && { fault }),
})

/** SES throttled us: no recipient was tried, and no event tells of a deferral. */
const TOO_FAST: Meaning = { ...retry("infrastructure"), held: true }

const failed = (fault?: SesVerdict["fault"]): Meaning => ({
  ...retry(fault),
  status: "failed",
  code: "provider_error",
})

/** Fails until the configuration changes, here or at SES. */
const REFUSED = failed("authentication")

const BY_CODE: Record<string, Meaning> = {
  AccessDeniedException: REFUSED,
  AccountSuspendedException: REFUSED,
  ExpiredTokenException: REFUSED,
  IncompleteSignature: REFUSED,
  IncompleteSignatureException: REFUSED,
  InvalidClientTokenId: REFUSED,
  InvalidSignatureException: REFUSED,
  MissingAuthenticationTokenException: REFUSED,
  NotFoundException: REFUSED, // the configuration set
  SendingPausedException: REFUSED,
  SignatureDoesNotMatch: REFUSED,
  UnrecognizedClientException: REFUSED,

  LimitExceededException: retry("infrastructure"),
  ServiceUnavailable: retry("infrastructure"),
  Throttling: TOO_FAST,
  ThrottlingException: TOO_FAST,
  TooManyRequestsException: TOO_FAST,
  ConcurrentModificationException: retry("infrastructure"),

  MailFromDomainNotVerifiedException: failed("infrastructure"),
  BadRequestException: failed(),
}

/** What SES says of a sender, or in its sandbox of a recipient, that it does not know. */
const UNVERIFIED = /not verified/i

/** What an error of the API comes to. What is not of the API is thrown on. */
function verdictOf(error: unknown): SesVerdict {
  if (error instanceof NetError) {
    return {
      ...retry(isBefore(error) ? "connection" : undefined),
      reason: error.message,
      said: null,
    }
  }
  if (!(error instanceof SesRefusal)) throw error
  const said = `${error.status} ${error.code}: ${error.message}`
  return { ...meaningOf(error), reason: said, said }
}

function meaningOf({ code, status, message }: SesRefusal): Meaning {
  const known = BY_CODE[code]
  if (known) return known
  if (code === "MessageRejected") {
    return UNVERIFIED.test(message) ? failed("infrastructure") : CONTENT
  }
  if (status === 401 || status === 403) return REFUSED
  if (status === 429) return TOO_FAST
  if (status === 503) return retry("infrastructure")
  return status >= 500 ? retry() : failed() // a 5xx may come after it was taken
}

const CONTENT: Meaning = { ...retry(), status: "bounced", bounce_subtype: "ContentRejected" }

/** Whether it ended before the request was on its way: only then was it certainly not taken. */
function isBefore({ kind, cause }: NetError): boolean {
  if (kind === "timeout") return false
  if (kind !== "connection") return true
  return /^(ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/.test(
    codeOf(cause) ?? "",
  )
}

/** The authority of the settings counts for SNS too. */
const trusting = ({ network, context }: SesCallback): CallbackNetwork => ({
  ca: sesEndpoint(context.settings).ca,
  ...network,
})

type SesCallback = ReceivedCallback<SesAccess, EmailContext>

/** SNS names text/plain as the type of its JSON. Throws 422 for what is no envelope. */
function envelopeOf({ request }: SesCallback): SnsEnvelope {
  const problems = new Problems()
  check(SnsEnvelope, request.fields, problems)
  problems.throwIfAny()
  return request.fields as SnsEnvelope
}

const TOPIC = /^arn:aws(?:-[a-z-]+)?:sns:[a-z0-9-]+:(\d{12}):[\w-]{1,256}(?:\.fifo)?$/

/** The AWS account whose topic speaks, if SNS signed this lately. SNS signs for everybody. */
async function accountOf(envelope: SnsEnvelope, network: CallbackNetwork) {
  const signed = isRecent(envelope) && (await isSigned(envelope, network).catch(unreachable))
  return signed ? TOPIC.exec(envelope.TopicArn)?.[1] : undefined
}

async function readEnvelope(envelope: SnsEnvelope, network: CallbackNetwork) {
  if (envelope.Type === "SubscriptionConfirmation") await confirm(envelope, network)
  return envelope.Type === "Notification" ? readNotification(envelope.Message) : undefined
}

async function confirm({ SubscribeURL, TopicArn }: SnsEnvelope, network: CallbackNetwork) {
  const url = snsUrl(SubscribeURL)
  if (!url)
    return fail("unauthorized", "The address or the signature of the notification is wrong.")
  const answer = await ask(url, network).catch(unreachable)
  if (answer.status !== 200) {
    fail("provider_error", `SNS did not confirm the subscription (${answer.status}).`)
  }
  log.info("a subscription to an SNS topic was confirmed", { topic: TopicArn })
}

/** SNS tries again after an error, and it should: nothing was decided. */
function unreachable(error: unknown): never {
  if (!(error instanceof NetError)) throw error
  log.warn("SNS could not be reached", { error })
  return fail(
    "provider_error",
    "SNS could not be reached to check its notification. Send it again later.",
  )
}
