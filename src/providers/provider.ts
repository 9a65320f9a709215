import type { TSchema } from "@sinclair/typebox"
import type { Settings } from "../core/config"
import type { NetRequest } from "../core/net"
import type { RetrySchedule } from "../jobs/work-item"
import type { OUTGOING_CHANNELS } from "../lib/preferences"

/** What the other side said, as far as it said anything. Codes of RFC 5321 and RFC 3463. */
interface RemoteReply {
  smtp_code: number | null
  enhanced_code: string | null
  response: string | null
  mx: string | null
  tls: string | null
  /** The provider's own code of an error. */
  provider_code?: string
  /** What the provider takes for the message, where it says so: a decimal number and an ISO 4217 code. */
  price?: Price
}

export interface Price {
  amount: string
  currency: string
}

/**
 * What went wrong between us and a provider, as opposed to a word about the message: it was not
 * reached, refused our credentials, or would not work for us. Another provider may do better.
 */
export const FAULTS = ["connection", "authentication", "infrastructure"] as const

export type Fault = (typeof FAULTS)[number]

export interface RecipientOutcome {
  /** The address as the message names it; of other channels than email a number or an id. */
  address: string
  /** `expired`: the time in which it was wanted is over. Only some channels know it. */
  status: "sent" | "delivered" | "retry" | "bounced" | "failed" | "expired"
  reason: string | null
  bounce_subtype: string | null
  /** An error code of the contract, for `failed`. */
  code: string | null
  reply: RemoteReply
  /** Only where the message certainly was not taken. */
  fault?: Fault | undefined
  /** For people, where `reason` is a word of ours. */
  text?: string
  /** Beside `retry`: the server speaks of the recipient, such as a full mailbox. */
  is_soft?: true
  /** Beside `retry`: nothing was tried for this recipient, only for others of the same message. */
  held?: true
  /** Beside `sent`: no answer came. That is no good word about the provider. */
  is_unanswered?: true
  /** Beside `failed`: the provider says that the recipient wants no more messages. */
  opted_out?: true
  /** Beside `failed`: there is no such recipient any more, since this time (ISO 8601) where the provider says so. */
  gone?: { since?: string } | undefined
  /** By which notifications will name the message, and whose id it is. One recipient of an answer has both. */
  provider_message_id?: string | undefined
  config_id?: string
}

/**
 * What came of one attempt. Neither channel nor provider throws for a refusal: it says so here.
 * The fields of `RecipientOutcome` speak of the `to` recipient or, once that one is settled, of
 * the first recipient still open; `others` holds the rest.
 */
export interface Outcome extends RecipientOutcome {
  /** Null where none was asked, which is no attempt. */
  provider: string | null
  /** What a mail relay made of our return path, where it was asked with it. */
  return_path?: ReturnPathAnswer | undefined
  /** The sender that the provider was given, where its configuration chose it. */
  sender?: string | undefined
  /** Beside `sent`: the message is expired at this moment (ISO 8601), unless its recipient has acknowledged it. */
  unheard_at?: string | undefined
  others: RecipientOutcome[]
  transcript: string[]
  schedule: RetrySchedule
  /** The provider refused our login. No event tells of the attempt, and the message waits under this hold. */
  login_refused?: { reason: string; by: string; until?: string }
}

/** What a mail relay makes of our return path at a host: its refusal, or null where it takes it. */
export interface ReturnPathAnswer {
  host: string
  refusal: string | null
}

export const NO_REPLY: RemoteReply = {
  smtp_code: null,
  enhanced_code: null,
  response: null,
  mx: null,
  tls: null,
}

/** No connection became free in time. */
export class ProviderBusyError extends Error {
  override readonly name: string = "ProviderBusyError"
}

/** A provider that cannot be used for any message. */
export class ProviderError extends Error {
  override readonly name = "ProviderError"
  readonly fault: Fault

  constructor(fault: Fault, message: string) {
    super(message)
    this.fault = fault
  }
}

/** Which of a project's providers may be asked. Without both: all, in their order. */
export interface AskedOnly {
  /** The configured provider that alone may be asked. */
  config_id?: string | undefined
  /** The name of the provider, whichever of its configurations. */
  service?: string | undefined
}

/** One attempt of a message, composed: a provider delivers it as it is. */
export interface OutgoingMessage extends AskedOnly {
  /** The same over all attempts: hand it on wherever the other side can tell a repetition by it. */
  message_id: string
  project_id: string
  /** Recipients that are still open; the first is the one the message's status follows. */
  to: string[]
}

/**
 * Delivers a message, once. A refusal is an `Outcome` with the reason the server gave, never an
 * exception, and `sent` means that the other side took responsibility for the message.
 */
export interface Provider<Message extends OutgoingMessage = OutgoingMessage> {
  readonly name: string
  readonly schedule: RetrySchedule
  /** Whether its configuration lets it deliver this message; failover passes over one that may not. Absent: any. */
  takes?(message: OutgoingMessage): boolean
  send(message: Message): Promise<Outcome>
  /**
   * Asked before a message is composed: keeps a permit for it until `dismiss`, or rejects with
   * DeferredError where none is free. Absent where there always is one; `send` without it asks itself.
   */
  admit?(
    message_id: string,
    to: string[],
    is_urgent: boolean,
    project_id: string,
    only?: AskedOnly,
  ): Promise<void>
  dismiss?(message_id: string): void
  /**
   * Goes as far as possible without a message: connects and logs in. Resolves with what was found,
   * in words, and rejects with ProviderError. Absent where there is no server to ask.
   */
  check?(): Promise<string>
  /** Its check shows less than a message would: only a message ends a pause. */
  readonly proves_login?: false
  /** Of a mail relay: asks whether it takes this return path, and rejects as `check` does. */
  checkReturnPath?(address: string): Promise<ReturnPathAnswer>
  close(): Promise<void>
}

export type ProviderChannel = (typeof OUTGOING_CHANNELS)[number]

export const PROVIDER_KINDS = ["email_provider", "sms_provider", "push_provider"] as const

export type ProviderKind = (typeof PROVIDER_KINDS)[number]

export const channelOf = (kind: ProviderKind): ProviderChannel =>
  kind.replace(/_provider$/, "") as ProviderChannel

export const kindOf = (channel: string): ProviderKind => `${channel}_provider` as ProviderKind

/** Credentials as they are stored; each provider knows its own fields. */
export type Credentials = Record<string, unknown>

/** One field of a provider's settings. Forms and flags of the command line follow from it. */
export interface ProviderSetting {
  /** `t.Optional(…)` of what the setting is. */
  schema: TSchema
  about: string
  /** What the help of the command line calls its value; the last word of its name without it. */
  value?: string
}

/** One field of a provider's credentials. Forms, masks, SPF and flags of the command line follow from it. */
interface CredentialField {
  /** `t.Optional(…)` for a field that may be absent. */
  schema: TSchema
  about: string
  /** What the help of the command line calls its value; the last word of its name without it. */
  value?: string
  /** Answers show only its last four characters. */
  secret?: true
  /** The command line reads it from stdin, or asks for it, when this other field is given. */
  asked_with?: string
  fallback?: string | number
  /** Also stored in the open, because SPF records are made from it. */
  is_public?: true
}

interface CredentialFault {
  field: string
  code: string
  message: string
}

/** How SPF names a host, and this machine. */
interface SpfNames {
  machine: string[]
  of(host: string): string
}

export type IdentityStatus = "pending" | "success" | "failed"

/** What a provider that keeps identities of its own thinks of a sending domain. */
export interface SenderIdentity {
  provider_identity_status: IdentityStatus
  provider_dkim_status: IdentityStatus
  /** Its CNAMEs: `<selector>._domainkey.<domain>` leads to `target`. None for keys of others. */
  dkim_aliases: { selector: string; target: string }[]
}

/** What a provider says later about one recipient, in the words of our events. */
export interface ProviderNotice {
  type: "sent" | "delivered" | "undelivered" | "bounced" | "complained" | "failed"
  /** Beside `undelivered` and `failed`: the recipient wants no more messages. */
  opted_out?: true
  /** The address as the provider writes it. Absent: the only recipient of the message. */
  recipient?: string
  bounce_type?: "Permanent" | "Transient"
  bounce_subtype?: string
  complaint_feedback_type?: string
  smtp_code?: number | null
  enhanced_code?: string | null
  response: string | null
  provider_code?: string
  price?: Price
}

/** A text that somebody sent to a number of ours. */
export interface ReceivedText {
  /** By which a repetition is known; null where the provider gives none. */
  provider_message_id: string | null
  from: string
  to: string
  text: string
  /** What the provider itself made of it; absent: its words decide. */
  keyword?: "stop" | "start" | "help"
}

/** What one callback tells. */
export interface ProviderReport {
  /** The provider's own id of the message that the notices are about. */
  provider_message_id?: string
  /** Our id of it, where the provider gives that back. */
  message_id?: string
  notices: ProviderNotice[]
  received?: ReceivedText
}

/** A callback as it came. */
export interface CallbackRequest {
  method: "GET" | "POST"
  /** The address that the provider was given, and the query that it added: signatures cover both. */
  url: string
  headers: Headers
  body: Uint8Array
  /** Those of the query and of the body, which may be JSON or a form; of a name that comes twice, the last one. */
  fields: Record<string, unknown>
}

/** How the senders of callbacks are reached, where their word must be checked. */
export interface CallbackNetwork {
  /** PEM of the authority to trust instead of the well-known ones. */
  ca?: string | undefined
  /** Networks where they may be, besides the public internet. */
  allow_private: readonly string[]
  /** Where they are not at their usual port and their public address. */
  port?: number
  resolver?: NetRequest["resolver"]
}

/** A callback, and what it is read with. */
export interface ReceivedCallback<Access, Context> {
  request: CallbackRequest
  /** The stored credentials of the configuration that it came for. */
  access: Access
  context: Context
  network: CallbackNetwork
}

/** The callbacks of a provider: `/v1/callbacks/<channel>/<provider>/<token>`. */
export interface ProviderCallbacks<Access, Context> {
  readonly methods: readonly CallbackRequest["method"][]
  readonly example: object
  readonly about: string
  /**
   * The account that speaks, if the signature is right, or `true` where a secret of the configuration proves it;
   * otherwise undefined. Throws ApiError `provider_error` where it cannot be checked now.
   */
  verify(call: ReceivedCallback<Access, Context>): Promise<string | true | undefined>
  /** Undefined where nothing changes here. A subscription is confirmed here too. */
  read(call: ReceivedCallback<Access, Context>): Promise<ProviderReport | undefined>
  /** What a service wants to hear that asks whether this address is ours; undefined where it asks nothing. */
  challenge?(request: CallbackRequest): { content_type: string; body: string } | undefined
  /** The answer that the provider wants in the place of ours. */
  readonly answer?: { content_type: string; body: string }
}

/** Checks where a host that a project names leads; resolves with its address. */
type Reach = (host: string, port: number) => Promise<string>

/** What a provider is opened with, beside its credentials. */
export interface ProviderOpening {
  /** Those of the configuration that the descriptor declares. */
  settings: Readonly<Record<string, unknown>>
  /** Absent for the instance's own provider, which may be anywhere. */
  reach?: Reach | undefined
  /** Where it calls back; undefined while the public address of this server is not known. */
  callbackUrl(): string | undefined
}

/**
 * A provider: everything that the rest knows about it. `Context` is what its channel gives to each of
 * its providers. List, forms, sealing, masks, SPF, banner, flags and docs are made from it.
 */
export interface ProviderDescriptor<
  Access extends object = object,
  Context = unknown,
  Message extends OutgoingMessage = OutgoingMessage,
> {
  readonly name: string
  readonly channel: ProviderChannel
  /** As a person names it: `Amazon SES`. */
  readonly about: string
  readonly reports: string
  /** Flags of `belfry providers set <name>`, as its help shows them. */
  readonly example?: string
  readonly credentials: Readonly<Record<string, CredentialField>>
  /** What a project may set, beside `max_per_second`. */
  readonly settings?: Readonly<Record<string, ProviderSetting>>
  /** What no single field shows. */
  validate?(access: Access): CredentialFault | undefined
  /** Fills in what Belfry makes itself. `before` is what the configuration had, if it had anything. */
  complete?(given: Access, before: Partial<Access>): Access
  /** The host that the credentials name: a project's may not lead to a private network. */
  destination?(access: Access): { field: string; host: string; port: number }
  /** Mechanisms for the SPF records of sending domains. `open_fields` are those that are `is_public`. */
  spf?(open_fields: Credentials, names: SpfNames): string[] | undefined
  /** The identity of a sending domain, made if there is none. Rejects where it cannot be asked. */
  identity?(access: Access, context: Context, domain: string): Promise<SenderIdentity>
  /**
   * Removes an address from the provider's own list of those it sends nothing to; nothing happens where
   * it is not on it. Rejects where it cannot be asked.
   */
  unsuppress?(access: Access, context: Context, address: string): Promise<void>
  readonly callbacks?: ProviderCallbacks<Access, Context>
  /** The credentials that the operator's settings give to the instance's own provider. */
  fromSettings?(settings: Settings): Access
  banner?(access: Access): string
  obstacle?(context: Context): string | undefined
  /**
   * Opened once for the instance and all projects. Its servers are those of the recipients: they have
   * limits of their own, and trouble with one of them is no trouble with the provider.
   */
  readonly is_shared?: true
  open(access: Access, context: Context, opening: ProviderOpening): Provider<Message>
}

/** The instance's own provider of a channel, by the operator's settings. */
export interface OwnProvider {
  descriptor: ProviderDescriptor
  credentials: object
}

export interface ProviderEnvironment {
  table: readonly ProviderDescriptor[]
  contexts: Partial<Record<ProviderChannel, unknown>>
  own: Partial<Record<ProviderChannel, OwnProvider>>
  /** Networks where a host that a project names may be, besides the public internet. */
  allow_private: readonly string[]
  network: CallbackNetwork
  /** Where people outside reach this server; undefined while that is not known. */
  callback_base?: (() => string | undefined) | undefined
}

export const findDescriptor = (
  table: readonly ProviderDescriptor[],
  kind: ProviderKind,
  name: string,
): ProviderDescriptor | undefined =>
  table.find((one) => one.name === name && one.channel === channelOf(kind))
