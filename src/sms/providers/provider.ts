import { Type as t } from "@sinclair/typebox"
import type { Settings } from "../../core/config"
import { destinationOf, isPublic } from "../../core/destination"
import { codeOf } from "../../core/faults"
import { isUuid } from "../../core/ids"
import { type NetAnswer, NetError, type NetRequest, request } from "../../core/net"
import { nameText } from "../../http/field-schemas"
import type { RetrySchedule } from "../../jobs/work-item"
import { COUNTRY_PREFIX, phoneFrom } from "../../lib/phone"
import {
  NO_REPLY,
  type Outcome,
  type OutgoingMessage,
  type Price,
  type Provider,
  ProviderError,
  type ProviderNotice,
  type ProviderReport,
  type ProviderSetting,
  type ReceivedText,
  type RecipientOutcome,
} from "../../providers/provider"

/** One text to one number, ready to be sent. `to` has that number in E.164. */
export interface OutgoingText extends OutgoingMessage {
  /** The sender that the message names; null: the one of the configuration. */
  from: string | null
  text: string
  encoding: "gsm7" | "ucs2"
  /** 1 for the first one. */
  attempt: number
}

export type SmsProvider = Provider<OutgoingText>

export interface SmsContext {
  /** They name the servers of the SMS services. */
  settings: Settings
  /** Networks where a gateway that a project names may be, besides the public internet. */
  allow_private: readonly string[]
  simulator: TextSimulator
}

/** What becomes of a text that never leaves the server (provider `log`). */
export interface TextSimulator {
  /** Stores the text in the embedded mailbox, where that runs. */
  show(text: OutgoingText, from: string): Promise<void>
  /** Reports later, as a callback would. */
  report(text: OutgoingText, report: SimulatedReport, in_seconds: number): Promise<void>
}

export interface SimulatedReport {
  type?: "delivered" | "undelivered"
  received?: ReceivedText
}

/** What a provider's answer says, whichever words it uses. */
export type TextMeaning =
  | "sent"
  | "delivered"
  /** The request left, and no answer came: nobody may send it again. */
  | "unconfirmed"
  /** The number cannot get it, or the text cannot be sent. */
  | "refused"
  | "opted_out"
  /** This account or its sender may not send it; another provider's may. */
  | "forbidden"
  | "throttled"
  | "credentials"
  | "outage"
  /** The request did not leave. */
  | "unreachable"

export interface TextAnswer {
  meaning: TextMeaning
  /** The provider's words, for people. */
  said: string | null
  provider_code?: string | undefined
  provider_message_id?: string | undefined
  price?: Price | undefined
  sender?: string | undefined
}

export const UNCONFIRMED = "unconfirmed"

const SECONDS = [5, 30, 120, 600]

/** In seconds; no attempt after the last one (contract 41). */
export const smsSchedule: RetrySchedule = (attempt) => SECONDS[attempt - 1]

type Result = Pick<RecipientOutcome, "status" | "fault" | "held" | "is_unanswered" | "opted_out">

const RESULTS: Record<TextMeaning, Result> = {
  sent: { status: "sent" },
  delivered: { status: "delivered" },
  unconfirmed: { status: "sent", is_unanswered: true },
  refused: { status: "failed" },
  opted_out: { status: "failed", opted_out: true },
  forbidden: { status: "failed", fault: "infrastructure" },
  throttled: { status: "retry", fault: "infrastructure", held: true },
  credentials: { status: "failed", fault: "authentication" },
  outage: { status: "retry", fault: "infrastructure" },
  unreachable: { status: "retry", fault: "connection" },
}

/** Of the words of a provider. */
const MOST_SAID = 500

/** The outcome of one attempt, by what the provider said. */
export function textOutcome(
  provider: string,
  { to: [address = ""] }: Pick<OutgoingText, "to">,
  answer: TextAnswer,
  schedule: RetrySchedule = smsSchedule,
): Outcome {
  const { meaning, provider_code, price, provider_message_id, sender } = answer
  const said = answer.said?.slice(0, MOST_SAID) ?? null
  const result = RESULTS[meaning]
  const is_good = result.status === "sent" || result.status === "delivered"
  const reason = meaning === UNCONFIRMED ? UNCONFIRMED : is_good ? null : (said ?? meaning)
  return {
    ...result,
    address,
    provider,
    reason,
    bounce_subtype: null,
    code: result.status === "failed" ? "provider_error" : null,
    reply: {
      ...NO_REPLY,
      response: said,
      ...(provider_code !== undefined && { provider_code }),
      ...(price && { price }),
    },
    others: [],
    transcript: [],
    schedule,
    ...(provider_message_id !== undefined && { provider_message_id }),
    ...(sender !== undefined && { sender }),
  }
}

/** In milliseconds, for everything together. A service that takes longer has perhaps taken the text. */
const TIMEOUT_MS = 15_000
const CAPTURE_BYTES = 64 * 1024

type TextRequest = Pick<NetRequest, "url" | "method" | "headers" | "body" | "allow_private"> & {
  timeout_ms?: number
}

/**
 * Asks the provider once, through the one function that leaves the server. Without an answer the text is
 * `unreachable` where its request cannot have left, otherwise `unconfirmed`.
 */
export async function exchange(
  asked: TextRequest,
  read: (answer: NetAnswer, text: string) => TextAnswer,
): Promise<TextAnswer> {
  try {
    const answer = await request({
      timeout_ms: TIMEOUT_MS,
      capture_bytes: CAPTURE_BYTES,
      once: true,
      ...asked,
    })
    return read(answer, new TextDecoder().decode(answer.body))
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    return { meaning: hasLeft(error) ? UNCONFIRMED : "unreachable", said: error.message }
  }
}

const NEVER_CONNECTED =
  /^(ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/

/** Whether the request may have been on its way. */
function hasLeft({ kind, cause, unsent }: NetError): boolean {
  if (unsent) return false
  if (kind === "timeout") return true
  return kind === "connection" && !NEVER_CONNECTED.test(codeOf(cause) ?? "")
}

/** For `check` of a provider: what was found, in words. Rejects with ProviderError. */
export async function checked(asking: Promise<TextAnswer>): Promise<string> {
  const { meaning, said } = await asking
  if (meaning === "sent") return said ?? ""
  const fault = meaning === UNCONFIRMED ? "connection" : RESULTS[meaning].fault
  throw new ProviderError(fault ?? "infrastructure", said ?? meaning)
}

/** For a service that chooses no sender by itself. */
export const withoutSender = (service: string): TextAnswer => ({
  meaning: "forbidden",
  said: `Neither the text nor the configuration names a sender, and ${service} needs one.`,
})

/**
 * A service that takes texts under one configuration. Its check shows less than a text would: a key may read and not
 * send, and a gateway may take any login.
 */
export const textService = (
  name: string,
  settings: SmsSettings,
  own: Required<Pick<SmsProvider, "send" | "check">>,
): SmsProvider => ({
  name,
  proves_login: false,
  schedule: smsSchedule,
  takes: ({ to: [number = ""] }) => allows(settings, number),
  close: async () => {},
  ...own,
})

/**
 * Where a service is, and where it may report. The operator names its address, so it may be a private one. A service
 * on the internet refuses a text with an address that it cannot reach, such as that of `belfry up`.
 */
export const serviceAt = (url: string, callbackUrl: () => string | undefined) => ({
  url,
  allow_private: [new URL(url).hostname],
  callbackUrl() {
    const address = callbackUrl()
    return address && isInward(address) && !isInward(url) ? undefined : address
  },
})

function isInward(url: string): boolean {
  const { host, is_literal } = destinationOf(url)
  return is_literal ? !isPublic(host) : /(^|\.)localhost$/.test(host)
}

export const basicAuth = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`

/** What the status of an answer means, where its service has no word of its own for it. */
export function meaningOfStatus(status: number): TextMeaning {
  if (status === 429) return "throttled"
  if (status < 400 || status >= 500) return "outage"
  if (/^(401|402|404|405)$/.test(String(status))) return "credentials"
  return status === 403 ? "forbidden" : "refused"
}

/** A password or key of a service. */
export const Secret = t.String({ minLength: 1, maxLength: 256, pattern: "^[!-~]+$" })

const Sender = nameText(20)

/** What every provider of texts may be set to (contract 41). */
export const SMS_SETTINGS = {
  from: {
    schema: t.Optional(Sender),
    about: "sender of a text that names none",
    value: "address",
  },
  per_country_from: {
    schema: t.Optional(
      t.Record(t.String({ pattern: COUNTRY_PREFIX }), Sender, {
        additionalProperties: false,
        maxProperties: 250,
      }),
    ),
    about: 'senders by country prefix, which win over `from`, as JSON: {"+43": "+43…"}',
    value: "json",
  },
  allowed_countries: {
    schema: t.Optional(t.Array(t.String({ pattern: COUNTRY_PREFIX }), { maxItems: 250 })),
    about: "country prefixes that texts may go to (default: all), such as +43,+49",
    value: "prefixes",
  },
} as const satisfies Record<string, ProviderSetting>

/** The settings of a configuration, as `SMS_SETTINGS` lets them in. */
export interface SmsSettings {
  from?: string
  per_country_from?: Record<string, string>
  allowed_countries?: string[]
  messaging_service_sid?: string
}

/**
 * The sender of the configuration for this number: the longest prefix that it has one for, then `from`. Null where
 * there is none, and where a messaging service chooses it.
 */
export function senderFor(settings: SmsSettings, to: string): string | null {
  const { from, per_country_from = {}, messaging_service_sid } = settings
  if (messaging_service_sid !== undefined) return null
  const prefixes = Object.keys(per_country_from).filter((prefix) => to.startsWith(prefix))
  const longest = prefixes.reduce((best, one) => (one.length > best.length ? one : best), "")
  return per_country_from[longest] ?? from ?? null
}

/** Whether the configuration lets texts go to this number. */
export const allows = ({ allowed_countries = [] }: SmsSettings, to: string): boolean =>
  allowed_countries.length === 0 || allowed_countries.some((prefix) => to.startsWith(prefix))

/** By words from outside: what every object has by itself is none of them. */
export const byWord = <Value>(words: Record<string, Value>): ReadonlyMap<string, Value> =>
  new Map(Object.entries(words))

/** The fields of a callback that are texts, by their names. */
export const textIn = (fields: Record<string, unknown>) => (name: string) =>
  typeof fields[name] === "string" ? fields[name] : undefined

/** What a report says of one text: the service's id, ours where the report carries it, and the notice. */
export const statusReport = (
  provider_message_id: string | undefined,
  message_id: string | undefined,
  notice: ProviderNotice,
): ProviderReport => ({
  ...(provider_message_id !== undefined && { provider_message_id }),
  ...(message_id !== undefined && isUuid(message_id) && { message_id }),
  notices: [notice],
})

/** A text that came in, with its numbers in E.164; undefined where something of it is missing. */
export function receivedReport(
  provider_message_id: string | undefined,
  from: string | undefined,
  to: string | undefined,
  text: string | undefined,
  keyword?: ReceivedText["keyword"],
): ProviderReport | undefined {
  if (from === undefined || to === undefined || text === undefined) return undefined
  // A name or a short code stays as it is.
  const parties = { from: phoneFrom(from) ?? from, to: phoneFrom(to) ?? to }
  const received = { ...parties, text, ...(keyword && { keyword }) }
  return {
    notices: [],
    received: { provider_message_id: provider_message_id ?? null, ...received },
  }
}
